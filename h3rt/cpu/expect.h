// Checks of an op's arguments, shared by the validation files of all ops.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// Collects the first fault of a list of arguments; every fault is kInvalidArgument and names the
// op and the argument. A check after a fault does nothing, so a later check may rely on an earlier
// one only through `ok()`.
class ArgumentCheck {
 public:
  explicit ArgumentCheck(std::string_view op) : op_(op) {}

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

  // F32 only.
  void Float32(std::string_view name, const ConstTensorView& view);
  // F32, BF16 or F16: what weights may be.
  void Weight(std::string_view name, const ConstTensorView& view);
  void Rank(std::string_view name, const ConstTensorView& view, int rank);
  // Extents; the rank follows from the list.
  void Dims(std::string_view name, const ConstTensorView& view,
            std::initializer_list<int64_t> dims);
  void SameShape(std::string_view name, const ConstTensorView& view, const ConstTensorView& like);
  void Contiguous(std::string_view name, const ConstTensorView& view);
  // Stride 1 in the last dimension (extents of 1 and empty views may have any) and no negative
  // stride.
  void UnitStride(std::string_view name, const ConstTensorView& view);
  // For an output: distinct indices must be distinct elements.
  void NoSelfOverlap(std::string_view name, const ConstTensorView& view);
  // The two views share no element. Interleaved columns of one buffer are understood when the
  // strides of all but the last dimension agree.
  void Apart(std::string_view name, const ConstTensorView& view, std::string_view other_name,
             const ConstTensorView& other);
  // As Apart, but the very same view is allowed: for in-place operation.
  void SameOrApart(std::string_view name, const ConstTensorView& view, std::string_view other_name,
                   const ConstTensorView& other);
  void That(bool condition, std::string_view what, const std::string& got,
            const std::string& wanted);

 private:
  void Fail(std::string_view name, const std::string& got, const std::string& wanted);

  std::string_view op_;
  absl::Status status_;
};

// Distance between neighbours of dimension d, `fallback` where the extent makes it meaningless.
inline int64_t StrideOr(const ConstTensorView& view, int d, int64_t fallback) {
  return view.dim(d) > 1 ? view.stride(d) : fallback;
}

}  // namespace h3rt
