// Strided views of memory that somebody else owns. Offsets and strides are 64-bit and count
// elements, not bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "h3rt/base/check.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/dtype.h"
#include "h3rt/tensor/shape.h"

namespace h3rt {

// kConst: elements may not be written. TensorView converts to ConstTensorView.
template <bool kConst>
class BasicTensorView {
 public:
  using Byte = std::conditional_t<kConst, const std::byte, std::byte>;
  template <typename T>
  using Element = std::conditional_t<kConst, const T, T>;

  BasicTensorView() = default;
  // Row-major over `data`, which holds at least shape.elements() elements.
  BasicTensorView(Byte* data, DType dtype, const Shape& shape)
      : data_(data), dtype_(dtype), shape_(shape) {
    int64_t stride = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      strides_[static_cast<size_t>(i)] = stride;
      stride *= shape[i] > 0 ? shape[i] : 1;
    }
  }
  BasicTensorView(Byte* data, DType dtype, const Shape& shape, std::span<const int64_t> strides)
      : data_(data), dtype_(dtype), shape_(shape) {
    H3RT_CHECK(strides.size() == static_cast<size_t>(shape.rank()));
    for (size_t i = 0; i < strides.size(); ++i) strides_[i] = strides[i];
  }
  // Over a typed array: float* gives kF32, and so on for types with one dtype.
  static BasicTensorView Of(Element<float>* data, const Shape& shape) {
    return BasicTensorView(reinterpret_cast<Byte*>(data), DType::kF32, shape);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a view that may write is one that may read
  operator BasicTensorView<true>() const requires(!kConst) {
    return BasicTensorView<true>(data_, dtype_, shape_, strides());
  }

  bool is_null() const { return data_ == nullptr; }
  Byte* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t stride(int i) const { return strides_[static_cast<size_t>(i)]; }
  std::span<const int64_t> strides() const {
    return {strides_.data(), static_cast<size_t>(shape_.rank())};
  }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * SizeOf(dtype_); }

  // The first element as T; T must be the type that holds the dtype.
  template <typename T>
  Element<T>* as() const {
    H3RT_CHECK(HoldsDType<T>(dtype_));
    return reinterpret_cast<Element<T>*>(data_);
  }

  // True when the elements lie row-major without gaps. Extents of 1 may have any stride.
  bool contiguous() const {
    if (elements() == 0) return true;
    int64_t expected = 1;
    for (int i = rank() - 1; i >= 0; --i) {
      if (dim(i) != 1 && stride(i) != expected) return false;
      expected *= dim(i);
    }
    return true;
  }

  // Elements [begin, end) of dimension d.
  BasicTensorView Slice(int d, int64_t begin, int64_t end) const {
    H3RT_CHECK(d >= 0 && d < rank() && 0 <= begin && begin <= end && end <= dim(d));
    std::array<int64_t, Shape::kMaxRank> dims{};
    for (int i = 0; i < rank(); ++i) dims[static_cast<size_t>(i)] = i == d ? end - begin : dim(i);
    return Restrided(Offset(begin * stride(d)), {dims.data(), static_cast<size_t>(rank())},
                     strides());
  }

  // Element i of dimension d, which goes away.
  BasicTensorView Select(int d, int64_t i) const {
    H3RT_CHECK(d >= 0 && d < rank() && 0 <= i && i < dim(d));
    std::array<int64_t, Shape::kMaxRank> dims{};
    std::array<int64_t, Shape::kMaxRank> kept{};
    size_t n = 0;
    for (int k = 0; k < rank(); ++k) {
      if (k == d) continue;
      dims[n] = dim(k);
      kept[n++] = stride(k);
    }
    return Restrided(Offset(i * stride(d)), {dims.data(), n}, {kept.data(), n});
  }

  BasicTensorView Transpose(int a, int b) const {
    H3RT_CHECK(a >= 0 && a < rank() && b >= 0 && b < rank());
    std::array<int64_t, Shape::kMaxRank> dims{};
    std::array<int64_t, Shape::kMaxRank> moved{};
    for (int k = 0; k < rank(); ++k) {
      const int from = k == a ? b : k == b ? a : k;
      dims[static_cast<size_t>(k)] = dim(from);
      moved[static_cast<size_t>(k)] = stride(from);
    }
    const auto n = static_cast<size_t>(rank());
    return Restrided(data_, {dims.data(), n}, {moved.data(), n});
  }

  // The same elements under another shape; only for contiguous views of equal size.
  BasicTensorView Reshape(const Shape& shape) const {
    H3RT_CHECK(contiguous() && shape.elements() == elements());
    return BasicTensorView(data_, dtype_, shape);
  }

 private:
  Byte* Offset(int64_t n) const { return data_ == nullptr ? nullptr : data_ + n * SizeOf(dtype_); }
  BasicTensorView Restrided(Byte* data, std::span<const int64_t> dims,
                            std::span<const int64_t> new_strides) const {
    return BasicTensorView(data, dtype_, Shape::FromDims(dims).value(), new_strides);
  }

  Byte* data_ = nullptr;
  DType dtype_ = DType::kF32;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};
};

using TensorView = BasicTensorView<false>;
using ConstTensorView = BasicTensorView<true>;

// A view over foreign memory of `size_bytes`, refused (kInvalidArgument) when an element would lie
// outside it. `offset` and `strides` count elements; negative strides are refused.
absl::StatusOr<ConstTensorView> CheckedView(const std::byte* data, int64_t size_bytes, DType dtype,
                                            const Shape& shape, std::span<const int64_t> strides,
                                            int64_t offset);

}  // namespace h3rt
