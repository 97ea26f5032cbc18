// Normalisations: RMS, layer and group.
#pragma once

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// y = x / sqrt(mean(x^2) + eps) * weight over the last dimension.
struct RmsNormParams {
  ConstTensorView x;       // [..., c] F32 (rank 2 or 3), unit stride in c
  ConstTensorView weight;  // [c] F32, BF16 or F16; null: ones
  TensorView y;            // as x; may be x itself
  double eps = 1e-5;
  bool round_bf16 = false;         // one rounding after the weight product (C4 c)
  bool round_weight_bf16 = false;  // use the weight rounded to bfloat16, as if it were stored so
};
[[nodiscard]] absl::Status RmsNorm(const RmsNormParams& params, const ExecContext& context);

// y = (x - mean) / sqrt(var + eps) * weight + bias over the last dimension (population variance).
struct LayerNormParams {
  ConstTensorView x;       // [m, c] F32, unit stride in c
  ConstTensorView weight;  // [c] F32, BF16 or F16
  ConstTensorView bias;    // [c]
  TensorView y;            // as x; may be x itself
  double eps = 1e-5;
};
[[nodiscard]] absl::Status LayerNorm(const LayerNormParams& params, const ExecContext& context);

// Group normalisation of every frame by itself, optionally followed by SiLU. Channels are split
// into `groups` equal runs; statistics are over (channels of the group, h, w) of one frame.
struct GroupNormParams {
  ConstTensorView x;       // [c, t, h, w] F32, contiguous
  ConstTensorView weight;  // [c] F32, BF16 or F16
  ConstTensorView bias;    // [c]
  TensorView y;            // as x; may be x itself
  int64_t groups = 32;
  double eps = 1e-6;
  bool silu = false;
};
[[nodiscard]] absl::Status GroupNorm(const GroupNormParams& params, const ExecContext& context);

// Statistics are accumulated so that their error stays below FP32 rounding of the result.
// Source: spec h3 sections 2.5, 6.2, 6.3, 7. Implementations: cpu, ref (float64).

}  // namespace h3rt
