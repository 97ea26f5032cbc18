// Whether exact attention takes a problem, before anything is launched.
#pragma once

#include "h3rt/base/status.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt {

// Elements of q, or of k, with sequence and head padded: every buffer of the workspace is a few
// bytes an element, so that all of them fit 63 bits.
inline constexpr int64_t kMostExactElements = int64_t{1} << 59;

// kInvalidArgument, naming the tensor or field, for: negative extents; q_heads not a multiple of
// k_heads; head_dim outside 1..128; null data of a tensor that has elements; data that is not
// aligned to its element; strides that make elements of the output overlap; sizes or offsets that
// do not fit 63 bits; a scale that is not finite or not above 1.8e-5 (where the mask of -5000000
// would leak). Strides of inputs may be zero or negative.
absl::Status CheckExactProblem(const ExactProblem& problem);

// kInvalidArgument that names tensor and index [batch, row, head, channel] when preparation found
// an element that is NaN or infinite. `not_finite`: the three numbers of ExactPrepared, on the
// host.
absl::Status CheckFinite(const ExactProblem& problem, const uint64_t* not_finite);

}  // namespace h3rt
