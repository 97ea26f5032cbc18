// Owned tensors: contiguous, 64-byte aligned memory of one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// Where memory lies. index counts devices of a kind; the host has only 0.
struct Device {
  enum class Kind : uint8_t { kCpu, kCuda };
  Kind kind = Kind::kCpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

// "cpu" or "cuda:0".
std::string NameOf(const Device& device);

// Move-only. Fresh memory is not initialised; use Zeros where zeros are meant.
class Tensor {
 public:
  Tensor() = default;
  // kResourceExhausted when the memory is not there, kInvalidArgument when bytes overflow.
  static absl::StatusOr<Tensor> Create(DType dtype, const Shape& shape);
  static absl::StatusOr<Tensor> Zeros(DType dtype, const Shape& shape);
  // A contiguous copy of any host view, same dtype.
  static absl::StatusOr<Tensor> Copy(const ConstTensorView& view);

  TensorView view() { return TensorView(data_.get(), dtype_, shape_); }
  ConstTensorView view() const { return ConstTensorView(data_.get(), dtype_, shape_); }
  template <typename T>
  T* as() {
    return view().as<T>();
  }
  template <typename T>
  const T* as() const {
    return view().template as<T>();
  }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * SizeOf(dtype_); }
  bool empty() const { return data_ == nullptr; }
  Device device() const { return device_; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  DType dtype_ = DType::kF32;
  Shape shape_;
  Device device_;
};

// Copies element by element between host views of equal shape and dtype; strides may differ.
absl::Status CopyElements(const ConstTensorView& from, const TensorView& to);

}  // namespace h3rt
