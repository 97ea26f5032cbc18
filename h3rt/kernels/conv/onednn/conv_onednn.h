// Convolutions as oneDNN matrix products on fixed tiles of gathered input.
#pragma once

#include "h3rt/kernels/conv/conv.h"

namespace h3rt {

absl::Status Conv3dOnednn(const Conv3dParams& params, const ExecContext& context);
absl::Status ConvTranspose1dOnednn(const ConvTranspose1dParams& params, const ExecContext& context);

}  // namespace h3rt
