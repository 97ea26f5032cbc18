// The statistics against numbers known by hand and against definitions written out again.
#include "h3rt/num/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace h3rt {
namespace {

TEST(PlainMath, AgreesWithTheLibraryToTheLastBitsOverTheWholeRange) {
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(PlainLog(x), std::log(x), 4e-16 * std::max(1.0, std::fabs(std::log(x)))) << x;
  }
  for (double x = 0.5; x < 2; x += 0.00137) {
    EXPECT_NEAR(PlainLog(x), std::log(x), 3e-16) << x;
  }
  for (double x = -740; x < 709; x += 0.7317) {
    EXPECT_NEAR(PlainExp(x) / std::exp(x), 1, x < -708 ? 1e-2 : 1e-15) << x;
  }
  EXPECT_EQ(PlainExp(0), 1);
  EXPECT_EQ(PlainLog(1), 0);
  EXPECT_EQ(PlainExp(1000), std::numeric_limits<double>::infinity());
  EXPECT_EQ(PlainExp(-1000), 0);
  EXPECT_TRUE(std::isnan(PlainLog(-1)));
}

TEST(NextRandom, IsSplitmix64) {
  uint64_t state = 1234567;  // the published first values of this seed
  EXPECT_EQ(NextRandom(state), 6457827717110365317u);
  EXPECT_EQ(NextRandom(state), 3203168211198807973u);
}

TEST(StudentQuantile, AgreesWithPublishedTables) {
  EXPECT_NEAR(StudentQuantile(0.975, 1), 12.706204736, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 2), 4.302652730, 1e-9);
  EXPECT_NEAR(StudentQuantile(0.975, 5), 2.570581836, 1e-9);
  EXPECT_NEAR(StudentQuantile(0.8, 5), 0.919543780, 1e-9);
  EXPECT_NEAR(StudentQuantile(0.995, 9), 3.249835542, 1e-9);
  EXPECT_NEAR(StudentQuantile(0.95, 30), 1.697260887, 1e-9);
  EXPECT_NEAR(StudentQuantile(0.975, 1000), 1.962339081, 1e-9);
  EXPECT_NEAR(StudentQuantile(0.975, 1000000), 1.959966, 1e-6);
  EXPECT_NEAR(StudentQuantile(0.999999, 3), 103.299474, 1e-3);
  EXPECT_NEAR(StudentQuantile(0.75, 1), 1, 1e-14);  // tan(pi / 4)
}

TEST(StudentQuantile, IsOddAndTotal) {
  EXPECT_EQ(StudentQuantile(0.5, 4), 0);
  EXPECT_DOUBLE_EQ(StudentQuantile(0.025, 5), -StudentQuantile(0.975, 5));
  EXPECT_TRUE(std::isinf(StudentQuantile(1, 5)));
  EXPECT_TRUE(std::isinf(StudentQuantile(0.9, 0)));
  EXPECT_TRUE(std::isnan(StudentQuantile(std::nan(""), 5)));
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Quantile({10, 20, 30, 40, 50}, 0.25), 20);
  EXPECT_DOUBLE_EQ(Quantile({10, 20, 30, 40}, 0.95), 38.5);
  EXPECT_EQ(Quantile({7}, 0.95), 7);
  EXPECT_TRUE(std::isnan(Median({})));
}

TEST(ExactMedianInterval, HasTheRanksOfTheBinomialTable) {
  // n = 6: 1 - 2 / 64 = 96.9 % between the extremes; n = 10: 1 - 2 x 11 / 1024 = 97.9 % between the
  // second values; n = 30: ranks 10 and 21 have 95.7 %, 11 and 20 have 90.1 %.
  auto upto = [](int n) {
    std::vector<double> values;
    for (int i = n; i >= 1; --i) values.push_back(i);
    return values;
  };
  const Interval six = ExactMedianInterval(upto(6), 0.95);
  EXPECT_EQ(six.low, 1);
  EXPECT_EQ(six.high, 6);
  const Interval ten = ExactMedianInterval(upto(10), 0.95);
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
  const Interval thirty = ExactMedianInterval(upto(30), 0.95);
  EXPECT_EQ(thirty.low, 10);
  EXPECT_EQ(thirty.high, 21);
  // Exactly the confidence that is asked for counts: five values, 1 - 2 / 32.
  EXPECT_EQ(ExactMedianInterval(upto(5), 0.9375).high, 5);
  EXPECT_TRUE(std::isinf(ExactMedianInterval(upto(5), 0.95).high));
  EXPECT_TRUE(std::isinf(ExactMedianInterval({}, 0.95).low));
  // Normal approximation for many: 5000 +- 0.98 sqrt(10000).
  EXPECT_NEAR(ExactMedianInterval(upto(10000), 0.95).low, 5000.5 - 98, 2);
}

TEST(MeanInterval, IsTheTextbookTInterval) {
  // 1..6: mean 3.5, sd sqrt(3.5), half width 2.570582 sqrt(3.5 / 6).
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const Interval interval = MeanInterval(values, 0.95);
  EXPECT_NEAR(interval.low, 3.5 - 2.570581836 * std::sqrt(3.5 / 6), 1e-9);
  EXPECT_NEAR(interval.high, 3.5 + 2.570581836 * std::sqrt(3.5 / 6), 1e-9);
  EXPECT_TRUE(std::isinf(MeanInterval(std::vector<double>{1}, 0.95).high));
}

TEST(ClusterBootstrap, IsDeterministicInItsSeedAndQuick) {
  std::vector<std::vector<double>> processes(6);
  uint64_t state = 5;
  for (auto& process : processes) {
    for (int i = 0; i < 120; ++i) process.push_back(static_cast<double>(NextRandom(state) >> 40));
  }
  const auto start = std::chrono::steady_clock::now();
  const Interval one = ClusterBootstrap(processes, 0.95, 10000, 3);
  const auto end = std::chrono::steady_clock::now();
  EXPECT_LT(std::chrono::duration<double>(end - start).count(), 0.3);
  const Interval again = ClusterBootstrap(processes, 0.95, 10000, 3);
  EXPECT_EQ(one.low, again.low);
  EXPECT_EQ(one.high, again.high);
  const Interval other = ClusterBootstrap(processes, 0.95, 10000, 4);
  EXPECT_NE(one.low, other.low);
  EXPECT_NEAR(one.low, other.low, (one.high - one.low) / 10);
}

TEST(ClusterBootstrap, DrawsProcessesAndThenQuads) {
  // Two processes of one value: the mean of two drawn is 0, 1 or 2 with 1/4, 1/2, 1/4.
  const std::vector<std::vector<double>> two = {{0}, {2}};
  const Interval half = ClusterBootstrap(two, 0.4, 10000, 1);  // 30 % to 70 %
  EXPECT_EQ(half.low, 1);
  EXPECT_EQ(half.high, 1);
  const Interval most = ClusterBootstrap(two, 0.6, 10000, 1);  // 20 % to 80 %
  EXPECT_EQ(most.low, 0);
  EXPECT_EQ(most.high, 2);
  // Within: the median of three draws of {0, 1, 2} is 0 with 7/27, 1 with 13/27.
  const std::vector<std::vector<double>> within = {{0, 1, 2}, {0, 1, 2}};
  const Interval inner = ClusterBootstrap(within, 0.95, 10000, 1);
  EXPECT_EQ(inner.low, 0);  // (7/27)^2 = 6.7 % of both 0
  EXPECT_EQ(inner.high, 2);
  EXPECT_TRUE(std::isinf(ClusterBootstrap({{1, 2, 3}}, 0.95, 100, 1).high));
}

TEST(LagOneAutocorrelation, SeesAlternationAndTrend) {
  EXPECT_NEAR(LagOneAutocorrelation(std::vector<double>{1, -1, 1, -1, 1, -1}), -5.0 / 6, 1e-12);
  EXPECT_GT(LagOneAutocorrelation(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}), 0.6);
  EXPECT_EQ(LagOneAutocorrelation(std::vector<double>{2, 2, 2, 2}), 0);
}

TEST(RelativeDrift, IsTheMedianSlopeAndIgnoresOneOutlier) {
  std::vector<double> line;
  for (int i = 0; i < 100; ++i) line.push_back(1000 + i);
  EXPECT_NEAR(RelativeDrift(line), 100 / 1049.5, 1e-12);
  line[50] = 1e9;
  EXPECT_NEAR(RelativeDrift(line), 100 / 1049.5, 1e-3);
  std::vector<double> longer;
  for (int i = 0; i < 5000; ++i) longer.push_back(100000 + i);
  EXPECT_NEAR(RelativeDrift(longer), 5000 / 102499.5, 1e-4);
}

}  // namespace
}  // namespace h3rt
