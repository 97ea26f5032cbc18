// Validation shared by every implementation of the convolutions.
#pragma once

#include "h3rt/kernels/conv/conv.h"

namespace h3rt {

absl::Status CheckConv3d(const Conv3dParams& params);
absl::Status CheckConvTranspose1d(const ConvTranspose1dParams& params);

}  // namespace h3rt
