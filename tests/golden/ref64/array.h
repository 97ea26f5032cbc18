// Arrays of double for the float64 reference: row-major, contiguous, owned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace h3rt::ref64 {

struct Array {
  std::vector<int64_t> shape = {};
  std::vector<double> data = {};

  Array() = default;
  explicit Array(std::vector<int64_t> dims) : shape(std::move(dims)) {
    data.assign(static_cast<size_t>(elements()), 0.0);
  }

  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    return n;
  }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i)]; }
  double* p() { return data.data(); }
  const double* p() const { return data.data(); }
};

// The same elements under another shape of equal size.
Array Reshaped(Array x, std::vector<int64_t> shape);

// Elements [begin, end) of dimension d.
Array Slice(const Array& x, int d, int64_t begin, int64_t end);

// Joins arrays that agree in every extent but that of dimension d.
Array Concat(const std::vector<Array>& parts, int d);

}  // namespace h3rt::ref64
