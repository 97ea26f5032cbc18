#include "h3rt/cpu/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "h3rt/cpu/expect.h"
#include "h3rt/cpu/test_support.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

TEST(Convert, EverySixteenBitPatternWidensAsTheScalarDoes) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(65536);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const ConstTensorView view = test::ViewOf(bits, dtype, {65536});
    WidenRow(view, 0, 65536, wide.data());
    for (size_t i = 0; i < bits.size(); ++i) {
      const float expected = dtype == DType::kBF16 ? Bf16ToFloat(bits[i]) : F16ToFloat(bits[i]);
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << i;
      if (!std::isnan(expected)) {
        ASSERT_EQ(LoadElement(view, static_cast<int64_t>(i)), static_cast<double>(expected));
      }
    }
  }
}

TEST(Convert, WidenRowStaysInsideItsRow) {
  const std::vector<uint16_t> bits = test::ToBf16(test::RandomFloats(100, 1));
  for (int64_t n = 0; n < 40; ++n) {
    test::GuardedOutput out(n);
    WidenRow(test::ViewOf(bits, DType::kBF16, {100}), 3, n, out.data());
    EXPECT_TRUE(out.GuardsIntact());
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(out.values()[static_cast<size_t>(i)],
                Bf16ToFloat(bits[static_cast<size_t>(i + 3)]));
    }
  }
}

TEST(Convert, RowsRoundAsTheScalarDoes) {
  std::vector<float> x = test::RandomFloats(1001, 1, 1e3f);
  std::vector<float> expected = x;
  for (float& v : expected) v = RoundToBf16(v);
  RoundRowToBf16(x.data(), 1001);
  EXPECT_EQ(x, expected);
}

TEST(ArgumentCheck, FirstFaultIsKeptAndNamesOpAndArgument) {
  const std::vector<float> x(12);
  ArgumentCheck check("some_op");
  check.Rank("a", test::ViewOf(x, {3, 4}), 3);
  check.Dims("b", test::ViewOf(x, {3, 4}), {4, 3});
  EXPECT_EQ(check.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(check.status()), HasSubstr("a"));
  EXPECT_THAT(MessageOf(check.status()), HasSubstr("some_op"));
  EXPECT_THAT(MessageOf(check.status()), ::testing::Not(HasSubstr("[4, 3]")));
}

TEST(ArgumentCheck, OverlapKnowsColumnsOfOneBuffer) {
  std::vector<float> x(60);
  const auto view = [&](int64_t begin, int64_t columns) {
    const int64_t strides[] = {12, 1};
    return TensorView(reinterpret_cast<std::byte*>(x.data() + begin), DType::kF32, {5, columns},
                      strides);
  };
  const auto apart = [](const ConstTensorView& a, const ConstTensorView& b) {
    ArgumentCheck check("op");
    check.Apart("a", a, "b", b);
    return check.ok();
  };
  EXPECT_TRUE(apart(view(0, 4), view(4, 8)));
  EXPECT_TRUE(apart(view(4, 8), view(0, 4)));
  EXPECT_FALSE(apart(view(0, 5), view(4, 8)));
  EXPECT_FALSE(apart(view(0, 12), view(0, 12)));
  EXPECT_TRUE(apart(view(0, 12).Slice(0, 0, 2), view(0, 12).Slice(0, 2, 5)));
  EXPECT_FALSE(apart(view(0, 12).Slice(0, 0, 3), view(0, 12).Slice(0, 2, 5)));
  ArgumentCheck check("op");
  check.SameOrApart("a", view(0, 12), "b", view(0, 12));
  EXPECT_TRUE(check.ok());
}

TEST(ArgumentCheck, OutputStridesMustNotFold) {
  std::vector<float> x(60);
  const auto folds = [&](std::vector<int64_t> strides) {
    ArgumentCheck check("op");
    check.NoSelfOverlap(
        "y", TensorView(reinterpret_cast<std::byte*>(x.data()), DType::kF32, {3, 4}, strides));
    return !check.ok();
  };
  EXPECT_FALSE(folds({4, 1}));
  EXPECT_FALSE(folds({9, 1}));
  EXPECT_FALSE(folds({1, 3}));
  EXPECT_TRUE(folds({3, 1}));
  EXPECT_TRUE(folds({0, 1}));
  EXPECT_TRUE(folds({1, 1}));
}

}  // namespace
}  // namespace h3rt
