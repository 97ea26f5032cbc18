// Exact attention of tensor views: what callers outside device code use.
#pragma once

#include "h3rt/base/status.h"
#include "h3rt/kernels/attention/exact/problem.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// q [batch, q_len, q_heads, head_dim], k and v [batch, k_len, k_heads, head_dim], o like q. All
// BF16 or all F16, unit stride in the last dimension, any other strides: an HND tensor is a view
// with two strides exchanged, a fused QKV buffer three views.
struct ExactViews {
  ConstTensorView q;
  ConstTensorView k;
  ConstTensorView v;
  TensorView o;
};

// `options` (path, granularity, causal, smooth_k, lse and so on; sm_scale 0 for the default) with
// the views' memory, extents and strides filled in. kInvalidArgument, naming the view, for a rank
// other than 4, mixed or other types, extents that do not fit each other, a last stride other than
// 1, and whatever CheckExactProblem refuses.
absl::StatusOr<ExactProblem> ExactProblemOf(const ExactViews& views, const ExactProblem& options);

}  // namespace h3rt
