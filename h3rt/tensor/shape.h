// Shapes: up to eight 64-bit extents, row-major unless a view says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "h3rt/base/status.h"

namespace h3rt {

// Extents are never negative. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  // For extents that the program itself made; a bad rank or extent is our own fault.
  Shape(std::initializer_list<int64_t> dims);
  // For extents from outside: refuses rank over 8, negative extents, and products over 2^62.
  static absl::StatusOr<Shape> FromDims(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t elements() const;
  std::string ToString() const;  // "[24, 7, 4, 4]"
  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace h3rt
