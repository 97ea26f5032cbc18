#include "h3rt/tensor/shape.h"

#include "h3rt/base/check.h"

namespace h3rt {

Shape::Shape(std::initializer_list<int64_t> dims) {
  H3RT_CHECK(dims.size() <= static_cast<size_t>(kMaxRank));
  for (const int64_t d : dims) {
    H3RT_CHECK(d >= 0);
    dims_[static_cast<size_t>(rank_++)] = d;
  }
}

absl::StatusOr<Shape> Shape::FromDims(std::span<const int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return InvalidArgument(
        {.what = "tensor rank", .got = std::to_string(dims.size()), .wanted = "at most 8"});
  }
  Shape shape;
  int64_t elements = 1;
  bool empty = false;
  for (const int64_t d : dims) {
    if (d < 0) {
      return InvalidArgument(
          {.what = "tensor extent", .got = std::to_string(d), .wanted = "0 or more"});
    }
    shape.dims_[static_cast<size_t>(shape.rank_++)] = d;
    if (d == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(elements, d, &elements) || elements > (int64_t{1} << 62)) {
      return InvalidArgument({.what = "tensor elements", .wanted = "at most 2^62"});
    }
  }
  if (empty) elements = 0;
  return shape;
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (const int64_t d : dims()) n *= d;
  return n;
}

std::string Shape::ToString() const {
  std::string out = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string((*this)[i]);
  }
  return out + "]";
}

}  // namespace h3rt
