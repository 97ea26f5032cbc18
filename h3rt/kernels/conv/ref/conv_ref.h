// The strict reference of the convolutions: one float64 sum an output element.
#pragma once

#include "h3rt/kernels/conv/conv.h"

namespace h3rt {

absl::Status Conv3dRef(const Conv3dParams& params, const ExecContext& context);
absl::Status ConvTranspose1dRef(const ConvTranspose1dParams& params, const ExecContext& context);

}  // namespace h3rt
