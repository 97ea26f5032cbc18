#include "h3rt/tensor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "h3rt/tensor/dtype.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Shape> From(const std::vector<int64_t>& dims) { return Shape::FromDims(dims); }

TEST(Shape, ElementsAreTheProductOfTheExtents) {
  EXPECT_EQ(Shape().elements(), 1) << "a scalar";
  EXPECT_EQ((Shape{24, 7, 4, 6}).elements(), 4032);
  EXPECT_EQ((Shape{24, 0, 4}).elements(), 0);
  EXPECT_EQ((Shape{24, 7, 4, 6}).ToString(), "[24, 7, 4, 6]");
  EXPECT_EQ(Shape().ToString(), "[]");
}

TEST(Shape, EqualityLooksAtRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), From({2, 3}).value());
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE(Shape(), Shape{1});
}

TEST(Shape, ExtentsFromOutsideAreCheckedForOverflow) {
  constexpr int64_t k62 = int64_t{1} << 62;
  EXPECT_EQ(From({k62}).value().elements(), k62);
  EXPECT_EQ(From({int64_t{1} << 31, int64_t{1} << 31}).value().elements(), k62);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {k62 + 1},
           {INT64_MAX},
           {k62, 2},
           {int64_t{1} << 32, int64_t{1} << 32},  // the product wraps to 0
           {3, k62, 4},
           {int64_t{1} << 21, int64_t{1} << 21, int64_t{1} << 21},
           {k62, 0, 8},  // empty, but strides would overflow
           {-1},
           {2, INT64_MIN},
           {-1, -1}}) {
    EXPECT_EQ(From(dims).status().code(), absl::StatusCode::kInvalidArgument) << dims[0];
  }
}

TEST(Shape, EightDimensionsAreTheMost) {
  EXPECT_EQ(From({1, 2, 1, 2, 1, 2, 1, 2}).value().rank(), 8);
  const auto nine = From({1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(nine.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(nine.status()), HasSubstr("got 9, wanted at most 8"));
}

TEST(ShapeDeathTest, OwnFaultsStopTheProgram) {
  EXPECT_DEATH((Shape{1, -1}), "check failed");
  EXPECT_DEATH((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), "check failed");
}

TEST(DType, NamesAndSizesAreThoseOfSafetensors) {
  const std::vector<std::tuple<DType, std::string_view, int64_t>> table = {
      {DType::kF64, "F64", 8},   {DType::kF32, "F32", 4},      {DType::kF16, "F16", 2},
      {DType::kBF16, "BF16", 2}, {DType::kE4M3, "F8_E4M3", 1}, {DType::kE5M2, "F8_E5M2", 1},
      {DType::kI64, "I64", 8},   {DType::kI32, "I32", 4},      {DType::kI16, "I16", 2},
      {DType::kI8, "I8", 1},     {DType::kU8, "U8", 1},        {DType::kBool, "BOOL", 1}};
  std::set<std::string_view> names;
  for (const auto& [dtype, name, bytes] : table) {
    EXPECT_EQ(NameOf(dtype), name);
    EXPECT_EQ(SizeOf(dtype), bytes) << name;
    EXPECT_EQ(DTypeFromName(name), dtype);
    EXPECT_TRUE(names.insert(name).second);
    // Exactly one C++ type holds each.
    const int holders = HoldsDType<double>(dtype) + HoldsDType<float>(dtype) +
                        HoldsDType<uint16_t>(dtype) + HoldsDType<uint8_t>(dtype) +
                        HoldsDType<int8_t>(dtype) + HoldsDType<int16_t>(dtype) +
                        HoldsDType<int32_t>(dtype) + HoldsDType<int64_t>(dtype);
    EXPECT_EQ(holders, 1) << name;
  }
  for (const char* unknown : {"", "f32", "F8_E8M0", "BF16 ", "U16", "COMPLEX64"}) {
    EXPECT_EQ(DTypeFromName(unknown), std::nullopt) << unknown;
  }
}

}  // namespace
}  // namespace h3rt
