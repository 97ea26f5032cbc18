// The strict references of the normalisations: two passes in float64.
#pragma once

#include "h3rt/kernels/norm/norm.h"

namespace h3rt {

absl::Status RmsNormRef(const RmsNormParams& params, const ExecContext& context);
absl::Status LayerNormRef(const LayerNormParams& params, const ExecContext& context);
absl::Status GroupNormRef(const GroupNormParams& params, const ExecContext& context);

}  // namespace h3rt
