#include "tests/golden/ref64/array.h"

#include <algorithm>
#include <utility>

#include "h3rt/base/check.h"

namespace h3rt::ref64 {
namespace {

int64_t Product(const Array& x, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= x.dim(i);
  return n;
}

}  // namespace

Array Reshaped(Array x, std::vector<int64_t> shape) {
  const int64_t before = x.elements();
  x.shape = std::move(shape);
  H3RT_CHECK(x.elements() == before);
  return x;
}

Array Slice(const Array& x, int d, int64_t begin, int64_t end) {
  H3RT_CHECK(0 <= begin && begin <= end && end <= x.dim(d));
  const int rank = static_cast<int>(x.shape.size());
  const int64_t outer = Product(x, 0, d);
  const int64_t inner = Product(x, d + 1, rank);
  std::vector<int64_t> shape = x.shape;
  shape[static_cast<size_t>(d)] = end - begin;
  Array y(shape);
  for (int64_t o = 0; o < outer; ++o) {
    const double* from = x.p() + (o * x.dim(d) + begin) * inner;
    std::copy(from, from + (end - begin) * inner, y.p() + o * (end - begin) * inner);
  }
  return y;
}

Array Concat(const std::vector<Array>& parts, int d) {
  H3RT_CHECK(!parts.empty());
  const int rank = static_cast<int>(parts[0].shape.size());
  const int64_t outer = Product(parts[0], 0, d);
  const int64_t inner = Product(parts[0], d + 1, rank);
  std::vector<int64_t> shape = parts[0].shape;
  int64_t total = 0;
  for (const Array& part : parts) total += part.dim(d);
  shape[static_cast<size_t>(d)] = total;
  Array y(shape);
  int64_t at = 0;
  for (const Array& part : parts) {
    H3RT_CHECK(part.elements() == outer * part.dim(d) * inner);
    for (int64_t o = 0; o < outer; ++o) {
      const double* from = part.p() + o * part.dim(d) * inner;
      std::copy(from, from + part.dim(d) * inner, y.p() + (o * total + at) * inner);
    }
    at += part.dim(d);
  }
  return y;
}

}  // namespace h3rt::ref64
