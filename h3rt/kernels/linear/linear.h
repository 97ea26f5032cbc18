// Linear layer: y = x W^T + b.
#pragma once

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

struct LinearParams {
  ConstTensorView x;        // [m, k] F32, unit stride in k
  ConstTensorView weight;   // [n, k], or [g, r, k] with n = g * r and any outer strides (rows of a
                            // head-interleaved tensor); F32, BF16 or F16; unit stride in k
  ConstTensorView bias;     // [n] or [g, r], F32, BF16 or F16; null: no bias
  TensorView y;             // [m, n] F32, unit stride in n; may not overlap x
  bool round_bf16 = false;  // round the biased sum once to bfloat16 (values stay F32)
  // Use weight and bias rounded to bfloat16, as if they were stored so.
  bool round_weight_bf16 = false;
};

// FP32 products and sums (BF16 and F16 weights are widened exactly, tile by tile, never kept), then
// the bias, then one optional rounding. The tiles do not depend on the number of threads, so the
// bytes do not either; nor do the type and layout of the weight, and the strides of x only where
// there is a single column (n = 1). Errors: kInvalidArgument for shapes, dtypes and strides.
// Source: spec h3 section 2.5 and C4 (b). Implementations: onednn, ref.
[[nodiscard]] absl::Status Linear(const LinearParams& params, const ExecContext& context);

// Most bytes that one running task of Linear ([m, k] by [n, k]) allocates: the widened weight tile,
// oneDNN's packing, and the bias, which a call widens once. A call runs at most as many tasks at a
// time as its pool has threads. Grows with m, n and k. Of the implementation that runs by default.
int64_t LinearScratchBytes(int64_t m, int64_t n, int64_t k);

}  // namespace h3rt
