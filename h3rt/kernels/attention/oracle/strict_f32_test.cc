// Strict float32: against exact arithmetic, at the edges, and with the processor's own flushing on.
#include "h3rt/kernels/attention/oracle/strict_f32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace h3rt::strict {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
// Volatile, so that the operations are done where they stand and not by the compiler.
volatile float kLeast = 0x1p-126f;
volatile float kSubnormal = 0x1.fffffcp-127f;  // the largest

// Values of every kind, many of them near each other in exponent.
std::vector<float> Values() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               -1.0f,
                               0.5f,
                               127.0f,
                               kInf,
                               -kInf,
                               kLeast,
                               -kLeast,
                               kSubnormal,
                               -kSubnormal,
                               0x1p-149f,
                               0x1.fffffep127f,
                               -0x1.fffffep127f,
                               0x1p-63f,
                               0x1.fffffep-64f,
                               FromBits(0x7fc00001),
                               FromBits(0xff800001)};
  uint64_t state = 7;
  for (int i = 0; i < 120; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const auto bits = static_cast<uint32_t>(state >> 32);
    values.push_back(FromBits(bits));
    values.push_back(FromBits((bits & 0x80ffffffu) | 0x3f000000u));
    values.push_back(FromBits((bits & 0x81ffffffu) | 0x20000000u));
  }
  return values;
}

// The same, from long double: 64 bits of fraction hold any product, and sums of near exponents.
uint32_t Rounded(long double exact) {
  if (exact != exact) return kNan;
  const long double magnitude = exact < 0 ? -exact : exact;
  if (magnitude < 0x1p-126L) {
    const bool kept = magnitude >= 0x1p-126L - 0x1p-150L;
    return (std::signbit(exact) ? 0x80000000u : 0u) | (kept ? 0x00800000u : 0u);
  }
  return ToBits(static_cast<float>(exact));
}

TEST(StrictF32Test, SumsAndProductsAreRoundedOnce) {
  for (const float a : Values()) {
    for (const float b : Values()) {
      const long double x = Flush(a);
      const long double y = Flush(b);
      ASSERT_EQ(ToBits(MulFtz(a, b)), Rounded(x * y)) << a << " * " << b;
      const float high = std::max(std::fabs(a), std::fabs(b));
      const float low = std::min(std::fabs(a), std::fabs(b));
      if (IsNan(a) || IsNan(b) || (low >= kLeast && high / 0x1p38f > low)) continue;
      ASSERT_EQ(ToBits(AddFtz(a, b)), Rounded(x + y)) << a << " + " << b;
      ASSERT_EQ(ToBits(SubFtz(a, b)), Rounded(x - y)) << a << " - " << b;
    }
  }
}

TEST(StrictF32Test, FmaIsRoundedOnce) {
  const float e = 0x1p-12f;
  // (1 + e)^2 = 1 + 2e + e^2: e^2 is half a unit of the result and decides with c.
  EXPECT_EQ(FmaFtz(1 + e, 1 + e, 0.0f), 1 + 2 * e);
  EXPECT_EQ(FmaFtz(1 + e, 1 + e, 0x1p-60f), 1 + 2 * e + 0x1p-23f);
  EXPECT_EQ(FmaFtz(1 + e, 1 + e, -0x1p-60f), 1 + 2 * e);
  EXPECT_EQ(FmaFtz(1 + e, 1 - e, -1.0f), -0x1p-24f);
  EXPECT_EQ(ToBits(FmaFtz(1.0f, -0.0f, -0.0f)), 0x80000000u);
  EXPECT_EQ(ToBits(FmaFtz(1.0f, 1.0f, -1.0f)), 0u);
  EXPECT_EQ(ToBits(FmaFtz(kInf, 0.0f, 1.0f)), kNan);
  EXPECT_EQ(ToBits(FmaFtz(kInf, 1.0f, -kInf)), kNan);
  EXPECT_EQ(FmaFtz(0x1p127f, 2.0f, -0x1p127f), 0x1p127f);  // no overflow on the way
}

void ExpectFlushing() {
  EXPECT_EQ(ToBits(AddFtz(kSubnormal, kSubnormal)), 0u);  // operands first
  EXPECT_EQ(ToBits(AddFtz(-kSubnormal, -kSubnormal)), 0x80000000u);
  EXPECT_EQ(ToBits(AddFtz(kLeast * 1.5f, -kLeast)), 0u);  // then the result
  EXPECT_EQ(ToBits(SubFtz(kLeast, kLeast * 1.5f)), 0x80000000u);
  EXPECT_EQ(ToBits(MulFtz(kLeast, 0.5f)), 0u);
  EXPECT_EQ(ToBits(MulFtz(-kLeast, 0.5f)), 0x80000000u);
  EXPECT_EQ(ToBits(MulFtz(kLeast, 1.0f)), ToBits(kLeast));
  EXPECT_EQ(ToBits(MulFtz(kSubnormal, 0x1p100f)), 0u);
  EXPECT_EQ(ToBits(FmaFtz(kLeast, 1.5f, -kLeast)), 0u);
  EXPECT_EQ(ToBits(FmaFtz(-kLeast, 1.5f, kLeast)), 0x80000000u);
  EXPECT_EQ(ToBits(FmaFtz(0x1p-100f, 0x1p-100f, 0.0f)), 0u);
  EXPECT_EQ(ToBits(FmaFtz(kSubnormal, 1.0f, 1.0f)), ToBits(1.0f));
  EXPECT_EQ(ToBits(FmaFtz(0x1p-63f, 0x1p-63f, 0.0f)), ToBits(kLeast));
  // 2^-126 (1 - 2^-24) is half way to the largest subnormal: even is 2^-126, which stays.
  const float down = FromBits(0x3f7fffff);  // 1 - 2^-24
  EXPECT_EQ(ToBits(MulFtz(kLeast, down)), ToBits(kLeast));
  EXPECT_EQ(ToBits(FmaFtz(-kLeast, down, 0.0f)), 0x80000000u | ToBits(kLeast));
  EXPECT_EQ(ToBits(FmaFtz(kLeast, down, 0.0f)), ToBits(kLeast));
  // One step less, 2^-126 (1 - 2^-23), is the largest subnormal itself.
  EXPECT_EQ(ToBits(MulFtz(kLeast, FromBits(0x3f7ffffe))), 0u);
  EXPECT_EQ(ToBits(FmaFtz(kLeast, FromBits(0x3f7ffffe), 0.0f)), 0u);
  EXPECT_EQ(ToBits(MaxFtz(kSubnormal, -1.0f)), 0u);
  EXPECT_EQ(ToBits(MinFtz(-kSubnormal, 1.0f)), 0x80000000u);
  EXPECT_EQ(ToBits(AbsFtz(-kSubnormal)), 0u);
  EXPECT_EQ(Rcp(kSubnormal), kInf);
  EXPECT_EQ(Rcp(-kSubnormal), -kInf);
  EXPECT_EQ(ToBits(Rcp(-0x1p127f)), 0x80000000u);  // 2^-127
  EXPECT_EQ(ToBits(Ex2(-127.0f)), 0u);
  EXPECT_EQ(ToBits(Ex2(-126.0f)), ToBits(kLeast));
  EXPECT_EQ(Lg2(kSubnormal), -kInf);
}

TEST(StrictF32Test, Flushing) { ExpectFlushing(); }

#if defined(__SSE2__)
TEST(StrictF32Test, FlushingDoesNotDependOnTheProcessorsMode) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040u);  // FTZ and DAZ
  ExpectFlushing();
  _mm_setcsr(before);
}
#endif

TEST(StrictF32Test, MaxMinAbsAndNan) {
  const float nan = FromBits(0xffc12345);
  EXPECT_EQ(MaxFtz(nan, 2.0f), 2.0f);
  EXPECT_EQ(MaxFtz(2.0f, nan), 2.0f);
  EXPECT_EQ(MinFtz(nan, -kInf), -kInf);
  EXPECT_EQ(ToBits(MaxFtz(nan, nan)), kNan);
  EXPECT_EQ(ToBits(MaxFtz(-0.0f, 0.0f)), 0u);
  EXPECT_EQ(ToBits(MaxFtz(0.0f, -0.0f)), 0u);
  EXPECT_EQ(ToBits(MinFtz(0.0f, -0.0f)), 0x80000000u);
  EXPECT_EQ(MaxFtz(-3.0f, -4.0f), -3.0f);
  EXPECT_EQ(MinFtz(-3.0f, -4.0f), -4.0f);
  EXPECT_EQ(MinFtz(-4.0f, -4.0f), -4.0f);
  EXPECT_EQ(AbsFtz(-3.0f), 3.0f);
  for (const float result :
       {AddFtz(nan, 1.0f), MulFtz(1.0f, nan), FmaFtz(1.0f, 1.0f, nan), SubFtz(kInf, kInf),
        MulFtz(0.0f, kInf), AbsFtz(nan), Rcp(nan), Ex2(nan), Lg2(-1.0f), Lg2(nan)}) {
    EXPECT_EQ(ToBits(result), kNan);
  }
}

TEST(StrictF32Test, Approximations) {
  EXPECT_EQ(ToBits(Rcp(448.0f)), 0x3b124925u);  // both as measured on an H200
  EXPECT_EQ(ToBits(Rcp(2.25f)), 0x3ee38e39u);
  EXPECT_EQ(Rcp(0.0f), kInf);
  EXPECT_EQ(Rcp(-0.0f), -kInf);
  EXPECT_EQ(ToBits(Rcp(-kInf)), 0x80000000u);
  EXPECT_EQ(Ex2(0.0f), 1.0f);
  EXPECT_EQ(Ex2(8.0f), 256.0f);
  EXPECT_EQ(ToBits(Ex2(-5e6f)), 0u);
  EXPECT_EQ(Ex2(200.0f), kInf);
  EXPECT_EQ(ToBits(Ex2(FromBits(0x410ce979))),
            ToBits(static_cast<float>(std::exp2(static_cast<double>(FromBits(0x410ce979))))));
  EXPECT_EQ(Lg2(1024.0f), 10.0f);
  EXPECT_EQ(Lg2(0.0f), -kInf);
  EXPECT_EQ(Lg2(kInf), kInf);
}

TEST(StrictF32Test, Conversions) {
  const std::pair<float, int> even[] = {
      {0.5f, 0},       {1.5f, 2},     {2.5f, 2},     {-0.5f, 0},       {-1.5f, -2},
      {63.5f, 64},     {62.5f, 62},   {126.5f, 126}, {127.5f, 127},    {400.0f, 127},
      {-128.5f, -128}, {-kInf, -128}, {kInf, 127},   {0.49999997f, 0}, {FromBits(kNan), 0}};
  for (const auto& [value, code] : even) EXPECT_EQ(ToS8Even(value), code) << value;
  const std::pair<float, int> cut[] = {{0.99f, 0},     {-0.99f, 0},     {1.0f, 1},
                                       {127.49f, 127}, {-127.9f, -127}, {FromBits(kNan), 0}};
  for (const auto& [value, code] : cut) EXPECT_EQ(ToS8Truncated(value), code) << value;
  const std::pair<float, int> e4m3[] = {{0.0f, 0},
                                        {-0.0f, 0x80},
                                        {448.0f, 0x7e},
                                        {1e9f, 0x7e},
                                        {-kInf, 0xfe},
                                        {0x1p-9f, 1},
                                        {0x1p-10f, 0},
                                        {0x1.8p-9f, 2},
                                        {0x1.8p-10f, 1},
                                        {1.0f, 0x38},
                                        {432.0f, 0x7e},
                                        {431.9f, 0x7d},
                                        {FromBits(0xffffffff), 0x7f},
                                        {FromBits(kNan), 0x7f}};
  for (const auto& [value, code] : e4m3) EXPECT_EQ(ToE4m3(value), code) << value;
  EXPECT_EQ(IntToFloat(-2064512), -2064512.0f);
}

}  // namespace
}  // namespace h3rt::strict
