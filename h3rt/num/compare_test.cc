// The comparators are tested by planting faults: each fault must fail every verdict.
#include "h3rt/num/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Sample(size_t n) {
  std::mt19937 random(31);
  std::uniform_real_distribution<float> uniform(-2.0f, 2.0f);
  std::vector<float> out(n);
  for (float& value : out) value = uniform(random);
  return out;
}

std::span<const std::byte> BytesOf(const std::vector<float>& v) {
  return std::as_bytes(std::span<const float>(v));
}

TEST(Compare, EqualInputIsIdenticalWithZeroError) {
  const std::vector<float> x = Sample(1000);
  const CompareResult result = CompareFloats(x, x);
  EXPECT_TRUE(result.comparable);
  EXPECT_EQ(result.n, 1000);
  EXPECT_EQ(result.finite, 1000);
  EXPECT_EQ(result.relative_l2, 0);
  EXPECT_EQ(result.max_abs, 0);
  EXPECT_EQ(result.max_ulp, 0);
  EXPECT_EQ(result.mismatched_bytes, 0);
  EXPECT_EQ(result.worst_index, -1);
  EXPECT_TRUE(Identical(result));
  EXPECT_TRUE(Within(result, 0));
  EXPECT_TRUE(WithinAbs(result, 0));
  EXPECT_TRUE(WithinUlp(result, 0));
  EXPECT_TRUE(Identical(CompareBytes(BytesOf(x), BytesOf(x))));
}

TEST(Compare, MeasuresAreThoseOfTheDefinition) {
  const std::vector<float> expected = {3.0f, 4.0f, 0.0f};
  const std::vector<float> actual = {3.0f, 4.5f, -0.0f};
  const CompareResult result = CompareFloats(actual, expected);
  EXPECT_DOUBLE_EQ(result.relative_l2, 0.1);  // 0.5 / 5
  EXPECT_EQ(result.max_abs, 0.5);
  EXPECT_EQ(result.worst_index, 1);
  EXPECT_EQ(result.worst_actual, 4.5);
  EXPECT_EQ(result.worst_expected, 4.0);
  EXPECT_EQ(result.max_ulp, 1 << 20);  // 4 to 4.5 is an eighth of the 2^23 floats of [4, 8)
  EXPECT_EQ(result.mismatched_bytes, 2) << "0x40800000 and 0x40900000, +0 and -0";
  EXPECT_FALSE(Identical(result));
  EXPECT_TRUE(Within(result, 0.1000001));
  EXPECT_FALSE(Within(result, 0.0999999));
  EXPECT_TRUE(WithinAbs(result, 0.5));
  EXPECT_FALSE(WithinAbs(result, 0.4999999));
}

TEST(Compare, UlpCountsAcrossZeroAndPowersOfTwo) {
  const auto ulp = [](float a, float b) {
    return CompareFloats(std::span(&a, 1), std::span(&b, 1)).max_ulp;
  };
  EXPECT_EQ(ulp(0.0f, -0.0f), 0);
  EXPECT_EQ(ulp(0x1p-149f, -0x1p-149f), 2);
  EXPECT_EQ(ulp(1.0f, std::nextafter(1.0f, 0.0f)), 1);
  EXPECT_EQ(ulp(1.0f, 2.0f), 1 << 23);
  const std::array<uint16_t, 2> bf16_a = {FloatToBf16(1.0f), 0x8000};
  const std::array<uint16_t, 2> bf16_b = {FloatToBf16(1.0078125f), 0x0001};
  EXPECT_EQ(CompareBf16(bf16_a, bf16_b).max_ulp, 1);
  const std::array<uint16_t, 1> f16_a = {FloatToF16(1.0f)};
  const std::array<uint16_t, 1> f16_b = {FloatToF16(0.5f)};
  EXPECT_EQ(CompareF16(f16_a, f16_b).max_ulp, 1024);
  const double most = std::numeric_limits<double>::max();
  const double least = -most;
  EXPECT_EQ(CompareDoubles(std::span(&most, 1), std::span(&least, 1)).max_ulp,
            std::numeric_limits<int64_t>::max());
}

// Every verdict of every comparator that sees floats must be false at any bound.
void ExpectFails(const std::vector<float>& actual, const std::vector<float>& expected,
                 const std::string& fault) {
  std::vector<double> wide(expected.begin(), expected.end());
  for (const CompareResult& result :
       {CompareFloats(actual, expected), CompareToReference(actual, wide)}) {
    EXPECT_FALSE(Identical(result)) << fault;
    EXPECT_FALSE(Within(result, 1e-2)) << fault << ": " << Describe(result);
    EXPECT_FALSE(WithinAbs(result, 1e-2)) << fault << ": " << Describe(result);
    EXPECT_FALSE(WithinUlp(result, 1000)) << fault << ": " << Describe(result);
  }
  EXPECT_FALSE(Identical(CompareBytes(BytesOf(actual), BytesOf(expected)))) << fault;
}

TEST(CompareMutation, APlantedFaultFailsEveryVerdict) {
  const std::vector<float> good = Sample(257);
  const std::vector<std::pair<std::string, std::function<void(std::vector<float>&)>>> faults = {
      {"NaN", [](auto& v) { v[100] = kNan; }},
      {"NaN at the end", [](auto& v) { v.back() = kNan; }},
      {"all NaN", [](auto& v) { std::fill(v.begin(), v.end(), kNan); }},
      {"infinity", [](auto& v) { v[0] = kInf; }},
      {"minus infinity", [](auto& v) { v[3] = -kInf; }},
      {"one sign flipped", [](auto& v) { v[17] = -v[17]; }},
      {"all signs flipped",
       [](auto& v) {
         for (float& x : v) x = -x;
       }},
      {"not written, poison 1e30", [](auto& v) { std::fill(v.begin(), v.end(), 1e30f); }},
      {"not written, zeros", [](auto& v) { std::fill(v.begin(), v.end(), 0.0f); }},
      {"tail not written", [](auto& v) { v.back() = 1e30f; }},
      {"rotated by one", [](auto& v) { std::rotate(v.begin(), v.begin() + 1, v.end()); }},
      {"reversed", [](auto& v) { std::reverse(v.begin(), v.end()); }},
      {"two exchanged", [](auto& v) { std::swap(v[10], v[200]); }},
      {"one too short", [](auto& v) { v.pop_back(); }},
      {"one too long", [](auto& v) { v.push_back(0.0f); }},
      {"empty", [](auto& v) { v.clear(); }},
      {"scaled by 1.02",
       [](auto& v) {
         for (float& x : v) x *= 1.02f;
       }},
  };
  for (const auto& [name, plant] : faults) {
    std::vector<float> bad = good;
    plant(bad);
    ExpectFails(bad, good, name);
    ExpectFails(good, bad, name + ", on the other side");
  }
}

TEST(CompareMutation, OneFlippedBitFailsIdentical) {
  const std::vector<float> good = Sample(64);
  for (uint32_t bit = 0; bit < 32; ++bit) {
    std::vector<float> bad = good;
    bad[41] = std::bit_cast<float>(std::bit_cast<uint32_t>(bad[41]) ^ (1u << bit));
    const CompareResult result = CompareFloats(bad, good);
    EXPECT_FALSE(Identical(result)) << bit;
    EXPECT_EQ(result.mismatched_bytes, 1) << bit;
    EXPECT_EQ(result.worst_index, 41) << bit;
    EXPECT_FALSE(Identical(CompareBytes(BytesOf(bad), BytesOf(good)))) << bit;
  }
}

TEST(CompareMutation, HalfFloatComparatorsFailOnTheSameFaults) {
  std::vector<uint16_t> good(64);
  for (size_t i = 0; i < good.size(); ++i) good[i] = FloatToBf16(static_cast<float>(i) - 20.0f);
  for (const int planted : {0x7fc0, 0x7f80, 0xff80, 0x7149}) {
    std::vector<uint16_t> bad = good;
    bad[5] = static_cast<uint16_t>(planted);
    const CompareResult result = CompareBf16(bad, good);
    EXPECT_FALSE(Identical(result));
    EXPECT_FALSE(Within(result, 0.5));
    EXPECT_FALSE(WithinAbs(result, 0.5));
    EXPECT_FALSE(WithinUlp(result, 10));
    EXPECT_EQ(result.worst_index, 5);
  }
  EXPECT_FALSE(Identical(CompareBf16(std::span(good).first(63), good)));
  EXPECT_FALSE(Identical(CompareF16({}, {})));
}

TEST(Compare, NanOfTheSameBitsIsEqualButANanOfOtherBitsIsNot) {
  std::vector<float> a = Sample(8);
  a[2] = kNan;
  EXPECT_TRUE(Identical(CompareFloats(a, a)));
  EXPECT_TRUE(Within(CompareFloats(a, a), 0));
  std::vector<float> b = a;
  b[2] = std::bit_cast<float>(0x7fc00001u);
  const CompareResult result = CompareFloats(b, a);
  EXPECT_EQ(result.nonfinite_mismatches, 1);
  EXPECT_EQ(result.worst_index, 2);
  EXPECT_FALSE(Identical(result));
  EXPECT_FALSE(Within(result, 1e30));
  EXPECT_FALSE(WithinUlp(result, std::numeric_limits<int64_t>::max()));
  std::vector<float> c = Sample(8);
  c[0] = kInf;
  std::vector<float> d = c;
  EXPECT_TRUE(Within(CompareFloats(d, c), 0)) << "the same infinity";
  d[0] = -kInf;
  EXPECT_FALSE(WithinAbs(CompareFloats(d, c), kInf)) << "the opposite infinity";
}

TEST(Compare, ANonFiniteFaultIsReportedBeforeALargerDifference) {
  const std::vector<float> expected(10, 1.0f);
  std::vector<float> actual = expected;
  actual[1] = 1e20f;
  actual[7] = kNan;
  actual[8] = kInf;
  const CompareResult result = CompareFloats(actual, expected);
  EXPECT_EQ(result.worst_index, 7);
  EXPECT_EQ(result.nonfinite_mismatches, 2);
  EXPECT_TRUE(std::isnan(result.relative_l2));
}

TEST(Compare, NanThroughoutOnBothSidesIsNotWithinAnything) {
  const std::vector<float> poison(16, kNan);
  const CompareResult result = CompareFloats(poison, poison);
  EXPECT_EQ(result.finite, 0);
  EXPECT_FALSE(Within(result, 1e30));
  EXPECT_FALSE(WithinAbs(result, 1e30));
  EXPECT_FALSE(WithinUlp(result, 1));
}

TEST(Compare, NothingComparedIsAFailure) {
  const CompareResult result = CompareFloats({}, {});
  EXPECT_FALSE(result.comparable);
  EXPECT_EQ(result.reason, "nothing to compare");
  EXPECT_FALSE(Identical(result));
  EXPECT_FALSE(Within(result, kInf));
  EXPECT_FALSE(Identical(CompareBytes({}, {})));
  EXPECT_FALSE(Identical(CompareResult{}));
  EXPECT_FALSE(Within(CompareResult{}, kInf));
  const std::array<int64_t, 2> shape = {0, 4};
  EXPECT_FALSE(Identical(CompareFloats({}, shape, {}, shape)));
}

TEST(Compare, UnlikeShapesFailWhereTheCountsAgree) {
  const std::vector<float> x = Sample(24);
  const std::array<int64_t, 2> a = {4, 6};
  const std::array<int64_t, 2> b = {6, 4};
  const std::array<int64_t, 3> c = {1, 4, 6};
  const std::array<int64_t, 2> wrong = {4, 7};
  const std::array<int64_t, 2> negative = {-4, -6};
  const std::array<int64_t, 2> huge = {int64_t{1} << 62, 8};
  EXPECT_TRUE(Identical(CompareFloats(x, a, x, a)));
  const CompareResult result = CompareFloats(x, a, x, b);
  EXPECT_FALSE(Identical(result));
  EXPECT_EQ(Describe(result), "not comparable: unlike shapes: got [4, 6], wanted [6, 4]");
  EXPECT_FALSE(Identical(CompareFloats(x, a, x, c)));
  EXPECT_FALSE(Identical(CompareFloats(x, wrong, x, wrong)));
  EXPECT_FALSE(Identical(CompareFloats(x, negative, x, negative)));
  EXPECT_FALSE(Identical(CompareFloats(x, huge, x, huge)));
  EXPECT_TRUE(Identical(CompareBytes(BytesOf(x), a, BytesOf(x), a, 4)));
  EXPECT_FALSE(Identical(CompareBytes(BytesOf(x), a, BytesOf(x), b, 4)));
  EXPECT_FALSE(Identical(CompareBytes(BytesOf(x), a, BytesOf(x), a, 8)));
  EXPECT_FALSE(Identical(CompareBytes(BytesOf(x), a, BytesOf(x), a, 0)));
}

TEST(Compare, ZerosExpectedMakeAnyDifferenceInfinite) {
  const std::vector<float> zeros(5, 0.0f);
  std::vector<float> actual = zeros;
  EXPECT_TRUE(Within(CompareFloats(actual, zeros), 0));
  actual[4] = 1e-30f;
  EXPECT_FALSE(Within(CompareFloats(actual, zeros), 1e30));
  EXPECT_TRUE(WithinAbs(CompareFloats(actual, zeros), 1e-29));
}

TEST(Compare, ABoundThatIsNanOrNegativeFailsEvenEqualInput) {
  const std::vector<float> x = Sample(5);
  const CompareResult result = CompareFloats(x, x);
  EXPECT_FALSE(Within(result, kNan));
  EXPECT_FALSE(WithinAbs(result, kNan));
  EXPECT_FALSE(Within(result, -1));
  EXPECT_FALSE(WithinUlp(result, -1));
  // Bytes have no distance, so only Identical can pass.
  EXPECT_FALSE(Within(CompareBytes(BytesOf(x), BytesOf(x)), kInf));
  EXPECT_FALSE(WithinUlp(CompareBytes(BytesOf(x), BytesOf(x)), 5));
}

TEST(Compare, RelativeL2IsSummedInDouble) {
  // 2^24 + 1 ones: a float32 sum of squares would stop at 2^24.
  const size_t n = (size_t{1} << 24) + 4096;
  const std::vector<float> expected(n, 1.0f);
  std::vector<float> actual(n, 1.0f);
  for (size_t i = n - 4096; i < n; ++i) actual[i] = 2.0f;
  EXPECT_DOUBLE_EQ(CompareFloats(actual, expected).relative_l2,
                   std::sqrt(4096.0 / static_cast<double>(n)));
}

TEST(Compare, AReferenceInDoubleIsComparedUnrounded) {
  const std::vector<double> expected = {1.0 + 0x1p-30};
  const std::vector<float> actual = {1.0f};
  const CompareResult result = CompareToReference(actual, expected);
  EXPECT_TRUE(Identical(result)) << "the bytes are those of the rounded reference";
  EXPECT_EQ(result.max_ulp, 0);
  EXPECT_EQ(result.max_abs, 0x1p-30);
}

TEST(Compare, TheDescriptionNamesTheWorstElement) {
  const std::vector<float> expected = {1.0f, 2.0f};
  const std::vector<float> actual = {1.0f, 2.5f};
  const std::string text = Describe(CompareFloats(actual, expected));
  EXPECT_NE(text.find("worst at 1: got 2.5, wanted 2"), std::string::npos) << text;
}

}  // namespace
}  // namespace h3rt
