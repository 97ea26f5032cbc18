// Pointwise activations.
#pragma once

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// y = silu(gate) * value, silu(x) = x / (1 + exp(-x)).
struct SwiGluParams {
  ConstTensorView gate;     // [m, f] F32, unit stride in f
  ConstTensorView value;    // [m, f] F32
  TensorView y;             // [m, f] F32; may be gate or value itself
  bool round_bf16 = false;  // C4 (g): RN(RN(silu(gate)) * value)
};
[[nodiscard]] absl::Status SwiGlu(const SwiGluParams& params, const ExecContext& context);

enum class Pointwise {
  kSilu,      // x / (1 + exp(-x))
  kGeluTanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};
// y = f(x) for every element; x and y contiguous F32 of one shape, y may be x itself.
[[nodiscard]] absl::Status Activate(Pointwise function, const ConstTensorView& x,
                                    const TensorView& y, const ExecContext& context);

// Snake of the audio VAE's encoder: y = x + sin^2(a x) / (a + 1e-9), one a a channel.
struct SnakeParams {
  ConstTensorView x;      // [c, n] F32 contiguous
  ConstTensorView alpha;  // [c] F32
  TensorView y;           // [c, n]; may be x itself
};
[[nodiscard]] absl::Status Snake(const SnakeParams& params, const ExecContext& context);

// Anti-aliased SnakeBeta of the audio VAE's decoder: upsample x2, x + sin^2(e^alpha x) /
// (e^beta + 1e-9), downsample x2, with the 12-tap filters of spec h3 section 7 (replicate padding
// 5/5 and 5/6, transposed convolution with gain 2 cropped by 15).
struct AntiAliasedSnakeParams {
  ConstTensorView x;            // [c, n] F32 contiguous
  ConstTensorView alpha;        // [c] F32, log scale
  ConstTensorView beta;         // [c] F32, log scale
  ConstTensorView up_filter;    // [12] F32
  ConstTensorView down_filter;  // [12] F32
  TensorView y;                 // [c, n]; not x
};
[[nodiscard]] absl::Status AntiAliasedSnake(const AntiAliasedSnakeParams& params,
                                            const ExecContext& context);

// Source: spec h3 sections 2.5, 6, 7. Implementations: cpu, ref (float64).

}  // namespace h3rt
