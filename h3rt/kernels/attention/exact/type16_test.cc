#include "h3rt/kernels/attention/exact/type16.h"

#include "gtest/gtest.h"

namespace h3rt {
namespace {

// Values beside a tie of the 16-bit type that a float32 rounds onto it.
TEST(ExactTypeTest, OnceIsNotTwice) {
  struct Case {
    ExactType type;
    double tie;    // between `low` and its neighbour above
    uint16_t low;  // even: what the tie itself gives
  };
  for (const Case& c : {Case{ExactType::kBf16, 1.0 + 0x1p-8, 0x3f80},
                        Case{ExactType::kF16, 1.0 + 0x1p-11, 0x3c00}}) {
    for (const double sign : {1.0, -1.0}) {
      const auto of = [&](uint16_t bits) { return static_cast<uint16_t>(bits | (sign < 0) << 15); };
      EXPECT_EQ(NarrowExactOnce(c.type, sign * c.tie), of(c.low));
      EXPECT_EQ(NarrowExactOnce(c.type, sign * (c.tie + 0x1p-40)), of(c.low + 1));
      EXPECT_EQ(NarrowExactOnce(c.type, sign * (c.tie - 0x1p-40)), of(c.low));
      // What two roundings make of it: the case can fail.
      const auto twice = static_cast<float>(sign * (c.tie + 0x1p-40));
      EXPECT_EQ(NarrowExact(c.type, twice), of(c.low));
    }
  }
}

TEST(ExactTypeTest, OnceKeepsWhatIsExactOrOutside) {
  for (const ExactType type : {ExactType::kBf16, ExactType::kF16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto element = static_cast<uint16_t>(bits);
      const float value = WidenExact(type, element);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(WidenExact(type, NarrowExactOnce(type, value))));
        continue;
      }
      ASSERT_EQ(NarrowExactOnce(type, value), element) << bits;
      ASSERT_EQ(NarrowExact(type, value), element) << bits;
    }
    EXPECT_TRUE(std::isinf(WidenExact(type, NarrowExactOnce(type, 1e300))));
  }
}

}  // namespace
}  // namespace h3rt
