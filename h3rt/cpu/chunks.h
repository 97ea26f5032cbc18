// Passes over the elements of large tensors: in fixed chunks, side by side, each of which looks at
// the cancel token first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "h3rt/base/check.h"
#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// Elements of a task: 256 KiB of F32, so that starting a task costs little next to reading it.
inline constexpr int64_t kElementChunk = int64_t{1} << 16;

// body(begin, end) for chunks of [0, n), in any order. kCancelled when the token says so before
// the last chunk began; chunks that had begun are finished.
template <typename Body>
absl::Status ForChunks(int64_t n, const ExecContext& context, const Body& body) {
  const int64_t chunks = (n + kElementChunk - 1) / kElementChunk;
  return context.ParallelFor(chunks, [&](int64_t chunk) {
    body(chunk * kElementChunk, std::min(n, (chunk + 1) * kElementChunk));
    return absl::OkStatus();
  });
}

// values[i] = f(values[i], channel of i) for i in [begin, end) of a row-major [..., channels,
// inner] tensor.
template <typename F>
void ByChannelRange(float* values, int64_t channels, int64_t inner, int64_t begin, int64_t end,
                    const F& f) {
  for (int64_t i = begin; i < end;) {
    const int64_t row = i / inner;
    const int64_t stop = std::min(end, (row + 1) * inner);
    const auto channel = static_cast<size_t>(row % channels);
    for (; i < stop; ++i) values[i] = f(values[i], channel);
  }
}

// f(value, channel) for every element of x, in place; x is contiguous F32 and dimension `axis`
// counts `channels`.
template <typename F>
absl::Status ByChannel(const TensorView& x, int axis, int64_t channels, const ExecContext& context,
                       const F& f) {
  H3RT_CHECK(x.dtype() == DType::kF32 && x.contiguous() && axis < x.rank() &&
             x.dim(axis) == channels);
  int64_t inner = 1;
  for (int d = axis + 1; d < x.rank(); ++d) inner *= x.dim(d);
  return ForChunks(x.elements(), context, [&](int64_t begin, int64_t end) {
    ByChannelRange(x.as<float>(), channels, inner, begin, end, f);
  });
}

// The same on the calling thread alone.
template <typename F>
void ByChannel(const TensorView& x, int axis, int64_t channels, const F& f) {
  H3RT_CHECK(x.dtype() == DType::kF32 && x.contiguous() && axis < x.rank() &&
             x.dim(axis) == channels);
  int64_t inner = 1;
  for (int d = axis + 1; d < x.rank(); ++d) inner *= x.dim(d);
  ByChannelRange(x.as<float>(), channels, inner, 0, x.elements(), f);
}

}  // namespace h3rt
