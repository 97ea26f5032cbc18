// Validation shared by every implementation of the normalisations.
#pragma once

#include "h3rt/kernels/norm/norm.h"

namespace h3rt {

absl::Status CheckRmsNorm(const RmsNormParams& params);
absl::Status CheckLayerNorm(const LayerNormParams& params);
absl::Status CheckGroupNorm(const GroupNormParams& params);

}  // namespace h3rt
