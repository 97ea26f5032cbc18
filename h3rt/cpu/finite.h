// What stands in front of a network that would spread a NaN, or a clamp that would hide an
// infinity, and behind it.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/cpu/chunks.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

namespace finite_internal {

inline bool IsFinite(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
}

// Offset of row-major element `index` of the view.
inline int64_t OffsetOf(const ConstTensorView& x, int64_t index) {
  int64_t offset = 0;
  for (int d = x.rank() - 1; d >= 0; --d) {
    offset += index % x.dim(d) * x.stride(d);
    index /= x.dim(d);
  }
  return offset;
}

// The first of `n` values, `stride` apart, that is not finite; n when all are.
inline int64_t FirstInRun(const float* values, int64_t n, int64_t stride) {
  if (stride == 1) {
    // Without a way out the loop runs on whole vectors.
    uint32_t broken = 0;
    for (int64_t i = 0; i < n; ++i) broken |= IsFinite(values[i]) ? 0u : 1u;
    if (broken == 0) return n;
  }
  int64_t i = 0;
  while (i < n && IsFinite(values[i * stride])) ++i;
  return i;
}

// "nan at [1, 0, 2]".
inline std::string Describe(const ConstTensorView& x, int64_t index) {
  std::string place;
  int64_t rest = index;
  for (int d = x.rank() - 1; d >= 0; --d) {
    place = std::to_string(rest % x.dim(d)) + (place.empty() ? "" : ", ") + place;
    rest /= x.dim(d);
  }
  return std::to_string(x.as<float>()[OffsetOf(x, index)]) + " at [" + place + "]";
}

}  // namespace finite_internal

// Row-major index of the first element of an F32 view, of any strides, that is NaN or infinite; -1
// when all are finite. Errors: kCancelled.
inline absl::StatusOr<int64_t> FirstNonFinite(const ConstTensorView& x,
                                              const ExecContext& context) {
  const int64_t n = x.elements();
  if (n == 0) return -1;
  const bool dense = x.contiguous();
  const int64_t row = dense ? n : x.dim(x.rank() - 1);
  const int64_t stride = dense ? 1 : x.stride(x.rank() - 1);
  std::vector<int64_t> found(static_cast<size_t>((n + kElementChunk - 1) / kElementChunk), -1);
  H3RT_RETURN_IF_ERROR(ForChunks(n, context, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t run = std::min(end, (i / row + 1) * row) - i;
      const int64_t offset = dense ? i : finite_internal::OffsetOf(x, i);
      const int64_t first = finite_internal::FirstInRun(x.as<float>() + offset, run, stride);
      if (first < run) {
        found[static_cast<size_t>(begin / kElementChunk)] = i + first;
        return;
      }
      i += run;
    }
  }));
  for (const int64_t index : found) {
    if (index >= 0) return index;
  }
  return -1;
}

// kInvalidArgument with the value and place of the first element that is not finite.
inline absl::Status RefuseNonFinite(const ConstTensorView& x, std::string_view what,
                                    const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const int64_t index, FirstNonFinite(x, context));
  if (index < 0) return absl::OkStatus();
  return InvalidArgument({.what = std::string(what) + " hold a value that is not finite",
                          .got = finite_internal::Describe(x, index),
                          .wanted = "finite values"});
}

// The network itself made a value that is not finite: its weights are broken, kDataLoss. `where`
// may be empty.
inline absl::Status CheckProduced(const ConstTensorView& x, std::string_view where,
                                  const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const int64_t index, FirstNonFinite(x, context));
  if (index < 0) return absl::OkStatus();
  return DataLoss({.what = "the network made a value that is not finite from finite input",
                   .got = finite_internal::Describe(x, index),
                   .wanted = "finite values",
                   .where = std::string(where)});
}

}  // namespace h3rt
