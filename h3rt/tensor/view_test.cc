#include "h3rt/tensor/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "h3rt/tensor/tensor.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> Iota(size_t n) {
  std::vector<int32_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TensorView ViewOf(std::vector<int32_t>& data, const Shape& shape) {
  return TensorView(reinterpret_cast<std::byte*>(data.data()), DType::kI32, shape);
}

// The element of a rank-3 view by naive index arithmetic over bytes.
int32_t At(const ConstTensorView& v, int64_t i, int64_t j, int64_t k) {
  const int64_t element = i * v.stride(0) + j * v.stride(1) + k * v.stride(2);
  int32_t out = 0;
  std::memcpy(&out, v.data() + element * 4, sizeof(out));
  return out;
}

TEST(View, AFreshViewIsRowMajor) {
  std::vector<int32_t> data = Iota(4 * 5 * 6);
  const TensorView view = ViewOf(data, {4, 5, 6});
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view.bytes(), 480);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      for (int64_t k = 0; k < 6; ++k) ASSERT_EQ(At(view, i, j, k), (i * 5 + j) * 6 + k);
    }
  }
}

TEST(View, EverySliceIsThatPartOfTheIndices) {
  std::vector<int32_t> data = Iota(4 * 5 * 6);
  const TensorView view = ViewOf(data, {4, 5, 6});
  for (int d = 0; d < 3; ++d) {
    for (int64_t begin = 0; begin <= view.dim(d); ++begin) {
      for (int64_t end = begin; end <= view.dim(d); ++end) {
        const TensorView slice = view.Slice(d, begin, end);
        ASSERT_EQ(slice.dim(d), end - begin);
        for (int64_t i = 0; i < slice.dim(0); ++i) {
          for (int64_t j = 0; j < slice.dim(1); ++j) {
            for (int64_t k = 0; k < slice.dim(2); ++k) {
              ASSERT_EQ(At(slice, i, j, k), At(view, i + (d == 0 ? begin : 0),
                                               j + (d == 1 ? begin : 0), k + (d == 2 ? begin : 0)));
            }
          }
        }
        ASSERT_EQ(slice.contiguous(), slice.elements() == 0 || d == 0 || end - begin == view.dim(d))
            << d << " " << begin << " " << end;
      }
    }
  }
}

TEST(View, SelectTakesOneIndexAndDropsTheDimension) {
  std::vector<int32_t> data = Iota(4 * 5 * 6);
  const TensorView view = ViewOf(data, {4, 5, 6});
  const TensorView middle = view.Select(1, 3);
  EXPECT_EQ(middle.shape(), (Shape{4, 6}));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t k = 0; k < 6; ++k) {
      ASSERT_EQ(middle.as<int32_t>()[i * middle.stride(0) + k * middle.stride(1)],
                (i * 5 + 3) * 6 + k);
    }
  }
  const TensorView scalar = view.Select(2, 5).Select(0, 1).Select(0, 4);
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(*scalar.as<int32_t>(), (1 * 5 + 4) * 6 + 5);
}

TEST(View, TransposeExchangesIndicesForEveryPair) {
  std::vector<int32_t> data = Iota(4 * 5 * 6);
  const TensorView view = ViewOf(data, {4, 5, 6});
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      const TensorView moved = view.Transpose(a, b);
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 5; ++j) {
          for (int64_t k = 0; k < 6; ++k) {
            std::array<int64_t, 3> at = {i, j, k};
            std::swap(at[static_cast<size_t>(a)], at[static_cast<size_t>(b)]);
            ASSERT_EQ(At(moved, at[0], at[1], at[2]), At(view, i, j, k));
          }
        }
      }
      ASSERT_EQ(moved.contiguous(), a == b);
    }
  }
}

TEST(View, ACopyOfAStridedViewIsItsElementsInOrder) {
  std::vector<int32_t> data = Iota(4 * 5 * 6);
  const TensorView view = ViewOf(data, {4, 5, 6}).Slice(2, 1, 5).Transpose(0, 2).Slice(1, 2, 4);
  ASSERT_EQ(view.shape(), (Shape{4, 2, 4}));
  const auto copy = Tensor::Copy(view);
  ASSERT_TRUE(copy.ok());
  EXPECT_TRUE(copy->view().contiguous());
  int64_t n = 0;
  for (int64_t k = 0; k < 4; ++k) {
    for (int64_t j = 0; j < 2; ++j) {
      for (int64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(copy->as<int32_t>()[n++], (i * 5 + j + 2) * 6 + k + 1);
      }
    }
  }
}

TEST(View, DimensionsOfOneMayHaveAnyStride) {
  std::vector<int32_t> data = Iota(6);
  const std::array<int64_t, 4> strides = {999999999999, 3, -77, 1};
  const TensorView view(reinterpret_cast<std::byte*>(data.data()), DType::kI32, {1, 2, 1, 3},
                        strides);
  EXPECT_TRUE(view.contiguous());
  const auto copy = Tensor::Copy(view);
  ASSERT_TRUE(copy.ok());
  for (int32_t i = 0; i < 6; ++i) EXPECT_EQ(copy->as<int32_t>()[i], i);
  EXPECT_EQ(view.Reshape({6}).as<int32_t>()[5], 5);
  const std::array<int64_t, 2> gap = {4, 1};
  EXPECT_FALSE(
      TensorView(reinterpret_cast<std::byte*>(data.data()), DType::kI32, {2, 2}, gap).contiguous());
}

TEST(View, AnEmptyViewIsContiguousWhateverItsStrides) {
  const std::array<int64_t, 3> strides = {1, 50, 7};
  for (const Shape& shape : {Shape{0, 3, 2}, Shape{3, 0, 2}, Shape{3, 2, 0}}) {
    const TensorView view(nullptr, DType::kF32, shape, strides);
    EXPECT_TRUE(view.contiguous()) << shape.ToString();
    EXPECT_EQ(view.Reshape({0}).elements(), 0);
    EXPECT_TRUE(Tensor::Copy(view).ok());
  }
}

TEST(View, ViewsThatMayWriteConvertToOnesThatMayNot) {
  std::vector<int32_t> data = Iota(6);
  const ConstTensorView view = ViewOf(data, {3, 2}).Transpose(0, 1);
  EXPECT_EQ(view.stride(0), 1);
  EXPECT_EQ(view.stride(1), 2);
  std::vector<float> floats(6);
  EXPECT_EQ(TensorView::Of(floats.data(), {6}).dtype(), DType::kF32);
}

TEST(ViewDeathTest, OwnFaultsStopTheProgram) {
  std::vector<int32_t> data = Iota(6);
  const TensorView view = ViewOf(data, {3, 2});
  EXPECT_DEATH(view.Slice(0, 0, 4), "check failed");
  EXPECT_DEATH(view.Slice(2, 0, 1), "check failed");
  EXPECT_DEATH(view.Slice(0, 2, 1), "check failed");
  EXPECT_DEATH(view.Select(0, 3), "check failed");
  EXPECT_DEATH(view.Transpose(0, 2), "check failed");
  EXPECT_DEATH(view.Reshape({7}), "check failed");
  EXPECT_DEATH(view.Transpose(0, 1).Reshape({6}), "check failed");
  EXPECT_DEATH(view.as<float>(), "check failed");
}

class CheckedViews : public ::testing::Test {
 protected:
  absl::StatusOr<ConstTensorView> Make(const Shape& shape, const std::vector<int64_t>& strides,
                                       int64_t offset, int64_t size_bytes = 96) {
    return CheckedView(reinterpret_cast<const std::byte*>(data_.data()), size_bytes, DType::kI32,
                       shape, strides, offset);
  }
  std::vector<int32_t> data_ = Iota(24);
};

TEST_F(CheckedViews, TheLastElementMayBeTheLastOfTheMemory) {
  const auto view = Make({2, 3}, {10, 5}, 3);
  ASSERT_TRUE(view.ok()) << MessageOf(view.status());
  EXPECT_EQ(view->as<int32_t>()[10 + 2 * 5], 23);
  EXPECT_FALSE(Make({2, 3}, {10, 5}, 4).ok());
  EXPECT_TRUE(Make({24}, {1}, 0).ok());
  EXPECT_FALSE(Make({25}, {1}, 0).ok());
  EXPECT_FALSE(Make({24}, {1}, 1).ok());
  EXPECT_FALSE(Make({24}, {1}, 0, 95).ok()) << "a part of an element is not an element";
  EXPECT_TRUE(Make({}, {}, 23).ok());
  EXPECT_FALSE(Make({}, {}, 24).ok());
}

TEST_F(CheckedViews, EmptyViewsMayBeginAtTheEndButNotBeyond) {
  EXPECT_TRUE(Make({0, 5}, {5, 1}, 24).ok());
  EXPECT_FALSE(Make({0, 5}, {5, 1}, 25).ok());
  EXPECT_TRUE(Make({0}, {1}, 0, 0).ok());
  EXPECT_FALSE(Make({1}, {1}, 0, 0).ok());
  EXPECT_FALSE(Make({1}, {1}, 0, -4).ok());
}

TEST_F(CheckedViews, OffsetsAndStridesUpTo2To63DoNotWrapAround) {
  for (const int64_t offset : {INT64_MAX, INT64_MAX - 1, int64_t{1} << 62, INT64_MIN, int64_t{-1},
                               int64_t{1} << 32, INT64_MAX / 4 + 1}) {
    EXPECT_EQ(Make({2, 3}, {3, 1}, offset).status().code(), absl::StatusCode::kInvalidArgument)
        << offset;
    EXPECT_FALSE(Make({1}, {1}, offset).ok()) << offset;
  }
  // (3 - 1) * 2^63 - ... wraps to small numbers in 64 bits.
  EXPECT_FALSE(Make({3, 1}, {INT64_MAX, 1}, 2).ok());
  EXPECT_FALSE(Make({5, 1}, {int64_t{1} << 62, 1}, 0).ok());
  EXPECT_FALSE(Make({2, 2}, {INT64_MAX, INT64_MAX}, 2).ok());
  EXPECT_TRUE(Make({1, 3}, {INT64_MAX, 1}, 2).ok()) << "the stride of one element is not used";
}

TEST_F(CheckedViews, NegativeStridesAndWrongCountsAreRefused) {
  EXPECT_FALSE(Make({2}, {-1}, 5).ok());
  EXPECT_FALSE(Make({2}, {1, 1}, 0).ok());
  EXPECT_FALSE(Make({2, 2}, {1}, 0).ok());
  EXPECT_TRUE(Make({100}, {0}, 23).ok()) << "one element repeated";
  EXPECT_THAT(MessageOf(Make({25}, {1}, 0).status()), HasSubstr("element 24"));
}

TEST(View, OffsetsBeyond2To32ElementsReachTheRightBytes) {
  // Sparse memory: only the pages that are touched exist.
  constexpr int64_t kRow = (int64_t{1} << 32) + 5;
  constexpr int64_t kBytes = 3 * kRow;
  void* memory = ::mmap(nullptr, static_cast<size_t>(kBytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 12 GiB of address space to reserve";
  auto* bytes = static_cast<uint8_t*>(memory);
  const TensorView view(static_cast<std::byte*>(memory), DType::kU8, {3, kRow});
  EXPECT_EQ(view.elements(), kBytes);
  bytes[2 * kRow + kRow - 1] = 11;
  bytes[kRow + (int64_t{1} << 31)] = 22;
  EXPECT_EQ(*view.Select(0, 2).Select(0, kRow - 1).as<uint8_t>(), 11);
  EXPECT_EQ(*view.Slice(1, int64_t{1} << 31, kRow).Select(0, 1).as<uint8_t>(), 22);
  EXPECT_EQ(*view.Transpose(0, 1).Select(0, kRow - 1).Select(0, 2).as<uint8_t>(), 11);
  // A strided copy of one column: its elements lie 2^32 + 5 bytes apart.
  bytes[7] = 1;
  bytes[kRow + 7] = 2;
  bytes[2 * kRow + 7] = 3;
  const auto column = Tensor::Copy(view.Select(1, 7));
  ASSERT_TRUE(column.ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(column->as<uint8_t>()[i], i + 1);
  const std::array<int64_t, 2> strides = {kRow, 1};
  EXPECT_TRUE(CheckedView(view.data(), kBytes, DType::kU8, {3, kRow}, strides, 0).ok());
  EXPECT_FALSE(CheckedView(view.data(), kBytes - 1, DType::kU8, {3, kRow}, strides, 0).ok());
  ::munmap(memory, static_cast<size_t>(kBytes));
}

}  // namespace
}  // namespace h3rt
