#include "h3rt/tensor/tensor.h"

#include <cstdlib>
#include <cstring>

#include "h3rt/base/units.h"

namespace h3rt {
namespace {

constexpr int64_t kAlignment = 64;

// One element after the other; kSize is a constant so that each copy is a plain load and store.
template <size_t kSize>
void CopyStrided(const std::byte* src, int64_t src_step, std::byte* dst, int64_t dst_step,
                 int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * dst_step, src + i * src_step, kSize);
}

void CopyInnermost(int64_t size, const std::byte* src, int64_t src_stride, std::byte* dst,
                   int64_t dst_stride, int64_t n) {
  if (src_stride == 1 && dst_stride == 1) {
    std::memcpy(dst, src, static_cast<size_t>(n * size));
    return;
  }
  const auto copy = size == 1   ? CopyStrided<1>
                    : size == 2 ? CopyStrided<2>
                    : size == 4 ? CopyStrided<4>
                                : CopyStrided<8>;
  copy(src, src_stride * size, dst, dst_stride * size, n);
}

// Copies dimension d and below.
void CopyDim(const ConstTensorView& from, const TensorView& to, int d, const std::byte* src,
             std::byte* dst) {
  const int64_t size = SizeOf(from.dtype());
  if (d == from.rank()) {
    std::memcpy(dst, src, static_cast<size_t>(size));
    return;
  }
  if (d == from.rank() - 1) {
    CopyInnermost(size, src, from.stride(d), dst, to.stride(d), from.dim(d));
    return;
  }
  for (int64_t i = 0; i < from.dim(d); ++i) {
    CopyDim(from, to, d + 1, src + i * from.stride(d) * size, dst + i * to.stride(d) * size);
  }
}

}  // namespace

std::string NameOf(const Device& device) {
  if (device.kind == Device::Kind::kCpu) return "cpu";
  return "cuda:" + std::to_string(device.index);
}

void Tensor::Free::operator()(std::byte* p) const { std::free(p); }

absl::StatusOr<Tensor> Tensor::Create(DType dtype, const Shape& shape) {
  int64_t bytes = 0;
  H3RT_ASSIGN_OR_RETURN(const Shape checked, Shape::FromDims(shape.dims()));
  if (__builtin_mul_overflow(checked.elements(), SizeOf(dtype), &bytes) ||
      bytes > INT64_MAX - kAlignment) {
    return InvalidArgument({.what = "tensor size overflows", .got = shape.ToString()});
  }
  const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  Tensor tensor;
  tensor.data_.reset(static_cast<std::byte*>(std::aligned_alloc(
      static_cast<size_t>(kAlignment), static_cast<size_t>(rounded > 0 ? rounded : kAlignment))));
  if (tensor.data_ == nullptr) {
    return ResourceExhausted({.what = "cannot allocate a tensor",
                              .got = FormatBytes(static_cast<uint64_t>(bytes)) + " for " +
                                     std::string(NameOf(dtype)) + " " + shape.ToString()});
  }
  tensor.dtype_ = dtype;
  tensor.shape_ = checked;
  return tensor;
}

absl::StatusOr<Tensor> Tensor::Zeros(DType dtype, const Shape& shape) {
  H3RT_ASSIGN_OR_RETURN(Tensor tensor, Create(dtype, shape));
  std::memset(tensor.data_.get(), 0, static_cast<size_t>(tensor.bytes()));
  return tensor;
}

absl::StatusOr<Tensor> Tensor::Copy(const ConstTensorView& view) {
  H3RT_ASSIGN_OR_RETURN(Tensor tensor, Create(view.dtype(), view.shape()));
  H3RT_RETURN_IF_ERROR(CopyElements(view, tensor.view()));
  return tensor;
}

absl::Status CopyElements(const ConstTensorView& from, const TensorView& to) {
  if (from.dtype() != to.dtype() || from.shape() != to.shape()) {
    return InvalidArgument(
        {.what = "copy between unlike tensors",
         .got = std::string(NameOf(from.dtype())) + " " + from.shape().ToString(),
         .wanted = std::string(NameOf(to.dtype())) + " " + to.shape().ToString()});
  }
  if (from.elements() == 0) return absl::OkStatus();
  CopyDim(from, to, 0, from.data(), to.data());
  return absl::OkStatus();
}

}  // namespace h3rt
