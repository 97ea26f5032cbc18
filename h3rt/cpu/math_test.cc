#include "h3rt/cpu/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace h3rt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// |got - exact| in units of the last place of exact as a float.
double UlpError(float got, double exact) {
  if (static_cast<double>(got) == exact) return 0.0;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent, -125) - 24);
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

// The largest error over every `step`-th float pattern between low and high (same sign).
double LargestUlp(float low, float high, uint32_t step, const std::function<float(float)>& f,
                  const std::function<double(double)>& exact) {
  double worst = 0.0;
  int64_t count = 0;
  const uint32_t a = std::bit_cast<uint32_t>(low);
  const uint32_t b = std::bit_cast<uint32_t>(high);
  for (uint64_t bits = std::min(a, b); bits <= std::max(a, b); bits += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const double error = UlpError(f(x), exact(static_cast<double>(x)));
    if (!(error <= worst)) worst = error;  // keeps NaN
    ++count;
  }
  EXPECT_GT(count, 100000);
  return worst;
}

double ExactExp(double x) { return std::exp(x); }
double ExactSilu(double x) { return x / (1.0 + std::exp(-x)); }

TEST(Math, ExpIsWithinTwoUlpWhereResultsAreNormal) {
  const double positive = LargestUlp(1e-9f, 88.7f, 331, ExpF, ExactExp);
  const double negative = LargestUlp(-1e-9f, -87.3f, 331, ExpF, ExactExp);
  RecordProperty("max_ulp", std::to_string(std::max(positive, negative)));
  EXPECT_TRUE(positive <= 2.0) << positive;
  EXPECT_TRUE(negative <= 2.0) << negative;
}

TEST(Math, ExpGoesThroughSubnormalsToZero) {
  const double worst = LargestUlp(-87.3f, -103.9f, 17, ExpF, ExactExp);
  EXPECT_TRUE(worst <= 2.0) << worst;
  EXPECT_EQ(ExpF(-104.0f), 0.0f);
  EXPECT_EQ(ExpF(-1e30f), 0.0f);
  EXPECT_EQ(ExpF(-kInfinity), 0.0f);
}

TEST(Math, ExpOfSpecialValues) {
  EXPECT_EQ(ExpF(0.0f), 1.0f);
  EXPECT_EQ(ExpF(-0.0f), 1.0f);
  EXPECT_EQ(ExpF(89.0f), kInfinity);
  EXPECT_EQ(ExpF(1e30f), kInfinity);
  EXPECT_EQ(ExpF(kInfinity), kInfinity);
  EXPECT_TRUE(std::isfinite(ExpF(88.7f)));
  EXPECT_TRUE(std::isnan(ExpF(kNan)));
  EXPECT_TRUE(std::isnan(ExpF(-kNan)));
}

TEST(Math, SiluIsWithinFourUlp) {
  // One rounding each of the exponential (2), the sum and the quotient.
  const double positive = LargestUlp(1e-9f, 80.0f, 331, SiluF, ExactSilu);
  const double negative = LargestUlp(-1e-9f, -80.0f, 331, SiluF, ExactSilu);
  EXPECT_TRUE(positive <= 4.0) << positive;
  EXPECT_TRUE(negative <= 4.0) << negative;
  EXPECT_EQ(SiluF(kInfinity), kInfinity);
  // As far as the exponential is finite, and from there on zero.
  const double far = LargestUlp(-80.0f, -88.7f, 1, SiluF, ExactSilu);
  EXPECT_TRUE(far <= 4.0) << far;
  EXPECT_EQ(SiluF(-89.1f), 0.0f);
  EXPECT_LT(std::fabs(ExactSilu(-88.73)), 2.7e-37);
  EXPECT_TRUE(std::isnan(SiluF(kNan)));
}

TEST(Math, SinSquaredKeepsItsAbsoluteErrorOverItsWholeRange) {
  // Four units of the last place of values below 1, as up to pi / 2, and one more for rounding the
  // reduced argument.
  constexpr double kBound = 5 * 0x1p-24;
  double worst = 0.0;
  int64_t count = 0;
  for (float x = -kSinSquaredLimit; x <= kSinSquaredLimit; x += 0.0173f) {
    const double s = std::sin(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(SinSquaredF(x)) - s * s);
    if (!(error <= worst)) worst = error;
    ++count;
  }
  EXPECT_GT(count, 1000000);
  EXPECT_TRUE(worst <= kBound) << worst;
  EXPECT_TRUE(std::isnan(SinSquaredF(kNan)));
}

TEST(Math, SinSquaredIsWithinFourUlpUpToAHalfTurn) {
  const auto exact = [](double x) { return std::sin(x) * std::sin(x); };
  const double worst = LargestUlp(1e-9f, 1.57f, 331, SinSquaredF, exact);
  EXPECT_TRUE(worst <= 4.0) << worst;
}

TEST(Math, SinSquaredNearMultiplesOfPiKeepsItsDigits) {
  for (int n = 1; n < 7900; n += 13) {
    const auto x = static_cast<float>(n * 3.14159265358979323846 + 1e-3);
    const double s = std::sin(static_cast<double>(x));
    // The reduced argument r is off by three errors of at most 7e-11: n * 9e-15 of the third part
    // of pi, the rounding of its product with n (1.2e-3 * 2^-24), that of the last difference (2e-3
    // * 2^-25). Squaring doubles the relative error 2.1e-10 / |r|; the rest is four units of 2^-23.
    const double bound = 4.2e-10 / std::fabs(s) + 4 * 0x1p-23;
    EXPECT_NEAR(static_cast<double>(SinSquaredF(x)) / (s * s), 1.0, bound) << n;
  }
}

TEST(Math, RowsEqualSingleValuesForEveryLength) {
  for (int64_t n = 0; n < 70; ++n) {
    std::vector<float> x(static_cast<size_t>(n));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.7f - 20.0f;
    std::vector<float> y(x.size() + 1, -5.0f);
    ExpRow(x.data(), n, y.data());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], ExpF(x[i]));
    SiluRow(x.data(), n, y.data());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], SiluF(x[i]));
    GeluTanhRow(x.data(), n, y.data());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], GeluTanhF(x[i]));
    EXPECT_EQ(y[x.size()], -5.0f);
  }
}

TEST(Math, SnakeTakesTheSlowWayForFarArgumentsOnly) {
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * (i % 91 == 0 ? 1e5f : 0.1f);
  std::vector<float> y(x.size());
  SnakeRow(x.data(), 1000, 1.5f, 0.25f, y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const float v = 1.5f * x[i];
    const float s = std::fabs(v) > kSinSquaredLimit ? SinSquaredFar(v) : SinSquaredF(v);
    EXPECT_EQ(y[i], x[i] + s * 0.25f) << i;
  }
}

}  // namespace
}  // namespace h3rt
