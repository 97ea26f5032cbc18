// Linear on fixed tiles with oneDNN's single-precision product.
#pragma once

#include "h3rt/kernels/linear/linear.h"

namespace h3rt {

absl::Status LinearOnednn(const LinearParams& params, const ExecContext& context);

}  // namespace h3rt
