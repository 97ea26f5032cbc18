// Residual addition followed by RMS norm, in bfloat16.
#pragma once

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// h = bf16(x + r); y = bf16(h / sqrt(mean(h^2) + eps) * w) over the last dimension.
struct AddNormParams {
  ConstTensorView x;  // [m, c] BF16, contiguous, 1 <= c <= 16384
  ConstTensorView r;  // as x: what is added
  ConstTensorView w;  // [c] BF16
  TensorView h;       // as x: the new residual; apart from all others
  TensorView y;       // as x; apart from all others
  double eps = 1e-5;  // finite, 0 or more
};
// h is rounded once and the norm reads the rounded h; statistics and products are in float32
// (strict) or float64 (ref) and y is rounded once. Both candidates run on the host; the device
// kernels of fused/ and unfused/ give the bits of `strict`. Source: spec h3, rounding rules of
// section C4.
[[nodiscard]] absl::Status AddNorm(const AddNormParams& params, const ExecContext& context);

}  // namespace h3rt
