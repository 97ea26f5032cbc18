// Rotary position embedding over the first 2 r channels of every head.
#pragma once

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// For j < r: (a, b) = (x_j, x_{j+r}); x_j = a cos_j - b sin_j; x_{j+r} = b cos_j + a sin_j.
// Channels from 2 r on pass through.
struct RopeParams {
  TensorView x;             // [s, h, d] F32, unit stride in d, changed in place
  ConstTensorView cos;      // [s, r] F32, 2 r <= d
  ConstTensorView sin;      // [s, r] F32
  bool round_bf16 = false;  // C4 (e): cos and sin, both products and the sum are each rounded
};
// Source: spec h3 sections 2.5 and 6.3, C8. Implementations: cpu, ref (float64).
[[nodiscard]] absl::Status Rope(const RopeParams& params, const ExecContext& context);

}  // namespace h3rt
