// Vectorised normalisations for the host; statistics in float64.
#pragma once

#include "h3rt/kernels/norm/norm.h"

namespace h3rt {

absl::Status RmsNormCpu(const RmsNormParams& params, const ExecContext& context);
absl::Status LayerNormCpu(const LayerNormParams& params, const ExecContext& context);
absl::Status GroupNormCpu(const GroupNormParams& params, const ExecContext& context);

}  // namespace h3rt
