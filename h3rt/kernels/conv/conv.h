// Convolutions (cross-correlation, as the field calls it) with zero padding.
#pragma once

#include <array>
#include <cstdint>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// 3-D convolution of one sample. A 2-D or 1-D convolution has extents, kernel and stride 1 in the
// dimensions that it lacks.
struct Conv3dParams {
  ConstTensorView x;       // [ci, t, h, w] F32 contiguous
  ConstTensorView weight;  // [co, ci, kt, kh, kw] F32, BF16 or F16, contiguous
  ConstTensorView bias;    // [co] F32, BF16 or F16; null: none
  TensorView y;  // [co, ot, oh, ow] F32 contiguous, o = (i + pads - dil*(k-1) - 1)/stride + 1
  std::array<int64_t, 3> stride = {1, 1, 1};
  std::array<int64_t, 3> dilation = {1, 1, 1};
  std::array<int64_t, 3> pad_begin = {0, 0, 0};  // zeros before, per dimension
  std::array<int64_t, 3> pad_end = {0, 0, 0};    // zeros after
};
[[nodiscard]] absl::Status Conv3d(const Conv3dParams& params, const ExecContext& context);

// 1-D transposed convolution of one sample: y[o] = b + sum_i x[i] w[:, o - i*stride + pad].
struct ConvTranspose1dParams {
  ConstTensorView x;       // [ci, n] F32 contiguous
  ConstTensorView weight;  // [ci, co, k] F32, BF16 or F16, contiguous
  ConstTensorView bias;    // [co]; null: none
  TensorView y;            // [co, (n - 1) * stride + k - 2 * pad] F32 contiguous
  int64_t stride = 1;
  int64_t pad = 0;
};
[[nodiscard]] absl::Status ConvTranspose1d(const ConvTranspose1dParams& params,
                                           const ExecContext& context);

// Most bytes that one running task of Conv3d allocates: gathered input, the widened weight tile
// (none for F32 weights) and oneDNN's packing. `depth` is ci * kt * kh * kw, `positions` is
// ot * oh * ow. A call runs at most as many tasks at a time as its pool has threads. Of the
// implementation that runs by default.
int64_t ConvScratchBytes(int64_t co, int64_t depth, int64_t positions, DType weight);

// The same of ConvTranspose1d, for any length of x. A call with weights that are not F32 also
// widens all ci * co * kernel of them once, which is not in this number.
int64_t ConvTransposeScratchBytes(int64_t ci, int64_t co, int64_t kernel, int64_t stride);

// FP32 products and sums; tiles do not depend on the number of threads, so bytes do not either.
// Errors: kInvalidArgument for shapes that do not fit each other.
// Source: spec h3 sections 6.2 and 7. Implementations: onednn, ref (float64).

}  // namespace h3rt
