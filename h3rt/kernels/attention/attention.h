// Softmax attention: o = softmax(scale * q k^T) v, head by head.
#pragma once

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

struct AttentionParams {
  ConstTensorView q;        // [sq, hq, d] F32, unit stride in d, any other strides
  ConstTensorView k;        // [sk, hk, d] F32; hq is a multiple of hk (grouped queries)
  ConstTensorView v;        // [sk, hk, d] F32
  TensorView o;             // [sq, hq, d] F32
  float scale = 0.0f;       // 0: 1 / sqrt(d)
  bool causal = false;      // key j is seen by query i when j <= i + (sk - sq)
  bool round_bf16 = false;  // rounding points C4 (f): exp(s - max) rounded to bfloat16 before P V,
                            // the sum from unrounded values, o rounded once
};

// FP32 scores, maximum, exponentials and sums; no sq x sk matrix is formed. A query that sees no
// key gives zeros. Bytes do not depend on the number of threads. Errors: kInvalidArgument for
// shapes, dtypes, strides, hq not a multiple of hk. Source: spec h3 sections 2.5, 6.3, 7 and C4
// (f). Implementations: cpu, ref.
[[nodiscard]] absl::Status Attention(const AttentionParams& params, const ExecContext& context);

// Most bytes that one running task of Attention allocates, whatever the lengths: a block of scores,
// packed queries, keys, values and output, and oneDNN's packing. A call runs at most as many tasks
// at a time as its pool has threads. Of the implementation that runs by default.
int64_t AttentionScratchBytes(int64_t head_dim);

}  // namespace h3rt
