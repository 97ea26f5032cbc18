#include "h3rt/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace h3rt {
namespace {

using ::testing::HasSubstr;

TEST(Tensor, MemoryIsAlignedTo64BytesForEverySize) {
  for (const int64_t n : {0, 1, 3, 15, 16, 17, 1000}) {
    const auto tensor = Tensor::Create(DType::kF32, {n});
    ASSERT_TRUE(tensor.ok());
    ASSERT_FALSE(tensor->empty());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->view().data()) % 64, 0u);
    EXPECT_EQ(tensor->bytes(), 4 * n);
    EXPECT_EQ(tensor->device(), Device{});
  }
}

TEST(Tensor, ZerosAreZeros) {
  const auto tensor = Tensor::Zeros(DType::kF64, {7, 11});
  ASSERT_TRUE(tensor.ok());
  for (int64_t i = 0; i < 77; ++i) ASSERT_EQ(tensor->as<double>()[i], 0.0);
}

TEST(Tensor, SizesThatOverflowOrCannotBeAllocatedAreTyped) {
  const Shape overflowing = Shape::FromDims(std::vector<int64_t>{int64_t{1} << 62}).value();
  const auto overflow = Tensor::Create(DType::kF32, overflowing);
  EXPECT_EQ(overflow.status().code(), absl::StatusCode::kInvalidArgument);
  // 2^60 bytes: a legal size that no machine has.
  const auto huge = Tensor::Create(DType::kF32, {int64_t{1} << 58});
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(huge.status()), HasSubstr("1024.00 PiB for F32 [288230376151711744]"));
  // A product that the program's own shape let overflow is refused here.
  EXPECT_FALSE(Tensor::Create(DType::kU8, Shape{int64_t{1} << 32, int64_t{1} << 32}).ok());
}

TEST(Tensor, MovingLeavesNothingBehind) {
  auto tensor = Tensor::Zeros(DType::kI8, {5});
  ASSERT_TRUE(tensor.ok());
  const std::byte* data = tensor->view().data();
  const Tensor moved = *std::move(tensor);
  EXPECT_EQ(moved.view().data(), data);
  EXPECT_TRUE(Tensor().empty());
  EXPECT_EQ(Tensor().device(), Device{});
}

TEST(Tensor, DevicesHaveNames) {
  EXPECT_EQ(NameOf(Device{}), "cpu");
  EXPECT_EQ(NameOf(Device{.kind = Device::Kind::kCuda, .index = 2}), "cuda:2");
}

template <typename T>
void CopyTransposed(DType dtype) {
  constexpr int64_t kRows = 37;
  constexpr int64_t kCols = 53;
  auto from = Tensor::Create(dtype, {kRows, kCols});
  auto to = Tensor::Create(dtype, {kCols, kRows});
  ASSERT_TRUE(from.ok() && to.ok());
  for (int64_t i = 0; i < kRows * kCols; ++i) from->as<T>()[i] = static_cast<T>(i * 7 + 1);
  std::memset(to->view().data(), 0xee, static_cast<size_t>(to->bytes()));
  ASSERT_TRUE(CopyElements(from->view().Transpose(0, 1), to->view()).ok());
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kCols; ++j) {
      ASSERT_EQ(to->as<T>()[j * kRows + i], from->as<T>()[i * kCols + j]) << NameOf(dtype);
    }
  }
}

TEST(CopyElements, TransposesElementsOfEverySize) {
  CopyTransposed<uint8_t>(DType::kE4M3);
  CopyTransposed<uint16_t>(DType::kBF16);
  CopyTransposed<float>(DType::kF32);
  CopyTransposed<int64_t>(DType::kI64);
}

TEST(CopyElements, WritesOnlyTheElementsOfTheTarget) {
  std::vector<float> from = {1, 2, 3, 4, 5, 6};
  std::vector<float> to(3 * 10, -1.0f);
  const TensorView target = TensorView::Of(to.data(), {3, 10}).Slice(1, 4, 6);
  ASSERT_TRUE(CopyElements(TensorView::Of(from.data(), {3, 2}), target).ok());
  for (size_t row = 0; row < 3; ++row) {
    for (size_t col = 0; col < 10; ++col) {
      const bool inside = col == 4 || col == 5;
      ASSERT_EQ(to[row * 10 + col], inside ? from[row * 2 + col - 4] : -1.0f);
    }
  }
}

TEST(CopyElements, AStrideOfZeroRepeatsAnElement) {
  float value = 2.5f;
  const std::array<int64_t, 2> strides = {0, 0};
  const ConstTensorView repeated(reinterpret_cast<const std::byte*>(&value), DType::kF32, {2, 3},
                                 strides);
  const auto copy = Tensor::Copy(repeated);
  ASSERT_TRUE(copy.ok());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(copy->as<float>()[i], 2.5f);
}

TEST(CopyElements, ScalarsAndEmptyViewsCopy) {
  float value = 3.0f;
  const auto scalar = Tensor::Copy(TensorView::Of(&value, {}));
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(*scalar->as<float>(), 3.0f);
  const auto empty = Tensor::Copy(TensorView::Of(&value, {4, 0, 2}));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->elements(), 0);
}

TEST(CopyElements, UnlikeShapesAndTypesAreRefused) {
  std::vector<float> a(6);
  std::vector<float> b(6);
  const TensorView view = TensorView::Of(a.data(), {2, 3});
  const absl::Status status = CopyElements(view, TensorView::Of(b.data(), {3, 2}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status), "copy between unlike tensors: got F32 [2, 3], wanted F32 [3, 2]");
  const TensorView ints(view.data(), DType::kI32, {2, 3});
  EXPECT_FALSE(CopyElements(view, ints).ok());
}

}  // namespace
}  // namespace h3rt
