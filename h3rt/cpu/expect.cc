#include "h3rt/cpu/expect.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace h3rt {
namespace {

// Elements reached from the first one, one past the last; 0 for an empty view.
int64_t Reach(const ConstTensorView& view) {
  if (view.elements() == 0) return 0;
  int64_t last = 0;
  for (int i = 0; i < view.rank(); ++i) last += (view.dim(i) - 1) * StrideOr(view, i, 0);
  return last + 1;
}

bool SameView(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.data() != b.data() || !(a.shape() == b.shape())) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) > 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

// Two row-major slices of one buffer, side by side in their last dimension: equal outer strides
// and last-dimension ranges that do not meet modulo the smallest outer stride.
bool SideBySide(const ConstTensorView& a, const ConstTensorView& b, int64_t distance) {
  if (a.rank() != b.rank() || a.rank() < 2) return false;
  int64_t period = 0;
  for (int i = 0; i + 1 < a.rank(); ++i) {
    if (a.stride(i) != b.stride(i)) return false;
    if (a.dim(i) <= 1 && b.dim(i) <= 1) continue;
    if (period == 0 || a.stride(i) < period) period = a.stride(i);
  }
  if (period <= 0) return false;
  for (int i = 0; i + 1 < a.rank(); ++i) {
    if ((a.dim(i) > 1 || b.dim(i) > 1) && a.stride(i) % period != 0) return false;
  }
  const int last = a.rank() - 1;
  const int64_t shift = ((distance % period) + period) % period;  // b's column, a's being 0
  return shift >= a.dim(last) && shift + b.dim(last) <= period;
}

bool Overlap(const ConstTensorView& a, const ConstTensorView& b) {
  const int64_t a_bytes = Reach(a) * SizeOf(a.dtype());
  const int64_t b_bytes = Reach(b) * SizeOf(b.dtype());
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto a_begin = reinterpret_cast<uintptr_t>(a.data());
  const auto b_begin = reinterpret_cast<uintptr_t>(b.data());
  if (a_begin + static_cast<uintptr_t>(a_bytes) <= b_begin ||
      b_begin + static_cast<uintptr_t>(b_bytes) <= a_begin) {
    return false;
  }
  const int64_t size = SizeOf(a.dtype());
  const auto gap = static_cast<int64_t>(b_begin - a_begin);
  if (a.dtype() != b.dtype() || gap % size != 0) return true;
  return !SideBySide(a, b, gap / size);
}

}  // namespace

void ArgumentCheck::Fail(std::string_view name, const std::string& got, const std::string& wanted) {
  if (!status_.ok()) return;
  status_ = InvalidArgument(
      {.what = std::string(name), .got = got, .wanted = wanted, .where = std::string(op_)});
}

void ArgumentCheck::That(bool condition, std::string_view what, const std::string& got,
                         const std::string& wanted) {
  if (!condition) Fail(what, got, wanted);
}

void ArgumentCheck::Float32(std::string_view name, const ConstTensorView& view) {
  if (view.dtype() != DType::kF32) {
    Fail(name, std::string(NameOf(view.dtype())), "F32");
  } else if (view.is_null() && view.elements() > 0) {
    Fail(name, "no memory", "elements of shape " + view.shape().ToString());
  }
}

void ArgumentCheck::Weight(std::string_view name, const ConstTensorView& view) {
  if (view.dtype() != DType::kF32 && view.dtype() != DType::kBF16 && view.dtype() != DType::kF16) {
    Fail(name, std::string(NameOf(view.dtype())), "F32, BF16 or F16");
  } else if (view.is_null() && view.elements() > 0) {
    Fail(name, "no memory", "elements of shape " + view.shape().ToString());
  }
}

void ArgumentCheck::Rank(std::string_view name, const ConstTensorView& view, int rank) {
  if (view.rank() != rank) {
    Fail(name, "shape " + view.shape().ToString(), "rank " + std::to_string(rank));
  }
}

void ArgumentCheck::Dims(std::string_view name, const ConstTensorView& view,
                         std::initializer_list<int64_t> dims) {
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
    Fail(name, "shape " + view.shape().ToString(), "an extent of 0 or more everywhere");
    return;
  }
  const Shape wanted(dims);
  if (!(view.shape() == wanted)) {
    Fail(name, "shape " + view.shape().ToString(), wanted.ToString());
  }
}

void ArgumentCheck::SameShape(std::string_view name, const ConstTensorView& view,
                              const ConstTensorView& like) {
  if (!(view.shape() == like.shape())) {
    Fail(name, "shape " + view.shape().ToString(), like.shape().ToString());
  }
}

void ArgumentCheck::Contiguous(std::string_view name, const ConstTensorView& view) {
  if (!view.contiguous()) Fail(name, "a strided view", "contiguous elements");
}

void ArgumentCheck::UnitStride(std::string_view name, const ConstTensorView& view) {
  if (view.elements() == 0) return;
  const int last = view.rank() - 1;
  if (last >= 0 && view.dim(last) > 1 && view.stride(last) != 1) {
    Fail(name, "stride " + std::to_string(view.stride(last)) + " in the last dimension", "1");
  }
  for (int i = 0; i < last; ++i) {
    if (view.dim(i) > 1 && view.stride(i) < 0) {
      Fail(name, "stride " + std::to_string(view.stride(i)), "0 or more");
    }
  }
}

void ArgumentCheck::NoSelfOverlap(std::string_view name, const ConstTensorView& view) {
  if (view.elements() == 0) return;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, extent
  for (int i = 0; i < view.rank(); ++i) {
    if (view.dim(i) > 1) dims.emplace_back(view.stride(i), view.dim(i));
  }
  std::sort(dims.begin(), dims.end());
  int64_t covered = 1;
  for (const auto& [stride, extent] : dims) {
    if (stride < covered) {
      Fail(name, "stride " + std::to_string(stride),
           "at least " + std::to_string(covered) + ": outputs must be distinct elements");
      return;
    }
    covered += stride * (extent - 1);
  }
}

void ArgumentCheck::Apart(std::string_view name, const ConstTensorView& view,
                          std::string_view other_name, const ConstTensorView& other) {
  if (status_.ok() && Overlap(view, other)) {
    Fail(name, "memory that overlaps " + std::string(other_name), "memory of its own");
  }
}

void ArgumentCheck::SameOrApart(std::string_view name, const ConstTensorView& view,
                                std::string_view other_name, const ConstTensorView& other) {
  if (status_.ok() && !SameView(view, other)) Apart(name, view, other_name, other);
}

}  // namespace h3rt
