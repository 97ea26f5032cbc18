// The strict reference of Linear: one float64 sum an element.
#pragma once

#include "h3rt/kernels/linear/linear.h"

namespace h3rt {

absl::Status LinearRef(const LinearParams& params, const ExecContext& context);

}  // namespace h3rt
