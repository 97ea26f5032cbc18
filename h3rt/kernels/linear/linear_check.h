// Validation shared by every implementation of Linear.
#pragma once

#include "h3rt/kernels/linear/linear.h"

namespace h3rt {

absl::Status CheckLinear(const LinearParams& params);

}  // namespace h3rt
