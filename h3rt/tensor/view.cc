#include "h3rt/tensor/view.h"

#include <string>

namespace h3rt {

absl::StatusOr<ConstTensorView> CheckedView(const std::byte* data, int64_t size_bytes, DType dtype,
                                            const Shape& shape, std::span<const int64_t> strides,
                                            int64_t offset) {
  if (strides.size() != static_cast<size_t>(shape.rank())) {
    return InvalidArgument({.what = "number of strides",
                            .got = std::to_string(strides.size()),
                            .wanted = std::to_string(shape.rank())});
  }
  const int64_t capacity = size_bytes / SizeOf(dtype);
  bool inside = offset >= 0 && offset <= capacity;
  int64_t last = offset;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t stride = strides[static_cast<size_t>(i)];
    if (stride < 0) {
      return InvalidArgument(
          {.what = "stride", .got = std::to_string(stride), .wanted = "0 or more"});
    }
    int64_t reach = 0;
    if (shape[i] > 0 && (__builtin_mul_overflow(shape[i] - 1, stride, &reach) ||
                         __builtin_add_overflow(last, reach, &last))) {
      inside = false;
    }
  }
  if (!inside || (shape.elements() > 0 && last >= capacity)) {
    return InvalidArgument(
        {.what = "view reaches past its memory",
         .got = "element " + std::to_string(last) + " of shape " + shape.ToString(),
         .wanted = "below " + std::to_string(capacity)});
  }
  return ConstTensorView(data + offset * SizeOf(dtype), dtype, shape, strides);
}

}  // namespace h3rt
