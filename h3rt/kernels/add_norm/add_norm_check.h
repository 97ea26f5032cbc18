// Validation shared by every implementation of the op.
#pragma once

#include "h3rt/kernels/add_norm/add_norm.h"

namespace h3rt {

absl::Status CheckAddNorm(const AddNormParams& params);

}  // namespace h3rt
