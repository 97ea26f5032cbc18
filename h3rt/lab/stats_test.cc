// The statistics against numbers known by hand and against definitions written out again.
#include "h3rt/lab/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace h3rt::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A quad A B B A of one process with given times in nanoseconds.
void AddQuad(std::vector<Sample>& samples, uint16_t process, uint16_t quad,
             std::initializer_list<int64_t> nanoseconds, uint8_t role = 0,
             bool candidate_first = false) {
  uint8_t slot = 0;
  for (const int64_t time : nanoseconds) {
    Sample sample;
    sample.process = process;
    sample.quad = quad;
    sample.slot = slot;
    const bool inner = slot == 1 || slot == 2;
    sample.arm = role == 0 && inner != candidate_first ? 1 : 0;
    sample.role = role;
    sample.picoseconds = time * 1000;
    samples.push_back(sample);
    ++slot;
  }
}

// Six processes with an A/A quad a process; gains of exactly `gain_ppm`, scattered by
// `scatter_ppm`.
PairStatistics Made(int64_t gain_ppm, int64_t scatter_ppm, int64_t aa_scatter_ppm = 100) {
  std::vector<Sample> samples;
  for (uint16_t p = 0; p < 6; ++p) {
    const int64_t sign = p % 2 == 0 ? 1 : -1;
    const int64_t candidate = 1000000 - gain_ppm + sign * scatter_ppm;
    for (uint16_t q = 0; q < 8; ++q) {
      AddQuad(samples, p, q, {1000000, candidate + q, candidate - q, 1000000});
    }
    const int64_t control = 1000000 + sign * aa_scatter_ppm;
    AddQuad(samples, p, 8, {1000000, control, control, 1000000}, 1);
  }
  return AnalysePair(samples, 7);
}

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

TEST(PackSamples, RoundTripsAndRefusesWhatIsNoSample) {
  std::vector<Sample> samples;
  AddQuad(samples, 513, 1027, {1, 2, 3, 4});
  samples[2].flags = 1;
  const std::string packed = PackSamples(samples);
  ASSERT_EQ(packed.size(), 64u);
  EXPECT_EQ(packed.substr(0, 4), std::string("\x01\x02\x03\x04", 4));  // little-endian
  std::string reason;
  const std::vector<Sample> back = UnpackSamples(packed, reason);
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(reason, "");
  EXPECT_EQ(back[2].picoseconds, 3000);
  EXPECT_EQ(back[2].flags, 1);
  EXPECT_EQ(back[1].arm, 1);
  EXPECT_TRUE(UnpackSamples(packed.substr(1), reason).empty());
  EXPECT_THAT(reason, HasSubstr("63 bytes"));
  EXPECT_TRUE(UnpackSamples("", reason).empty());
  EXPECT_NE(reason, "");
  samples[1].picoseconds = 0;
  EXPECT_TRUE(UnpackSamples(PackSamples(samples), reason).empty());
  EXPECT_THAT(reason, HasSubstr("sample 1 has a time of 0 ps"));
  samples[1].picoseconds = -5;
  EXPECT_TRUE(UnpackSamples(PackSamples(samples), reason).empty());
  samples[1].picoseconds = 0x7FF8000000000000;  // the bits of a NaN
  EXPECT_TRUE(UnpackSamples(PackSamples(samples), reason).empty());
  samples[1].picoseconds = 5;
  samples[1].slot = 4;
  EXPECT_TRUE(UnpackSamples(PackSamples(samples), reason).empty());
}

TEST(AnalysePair, TakesTheMedianOfQuadsAndTheMeanOfProcesses) {
  std::vector<Sample> samples;
  // Process 0: quad gains log 2, log 4, log 8 -> log 4. Process 1, candidate first: log 1 alone.
  AddQuad(samples, 0, 0, {200, 100, 100, 200});
  AddQuad(samples, 0, 1, {400, 100, 100, 400});
  AddQuad(samples, 0, 2, {800, 100, 100, 800});
  AddQuad(samples, 1, 0, {100, 100, 100, 100}, 0, true);
  const PairStatistics s = AnalysePair(samples, 1);
  EXPECT_EQ(s.processes, 2);
  EXPECT_EQ(s.quads, 4);
  ASSERT_EQ(s.process_log_gain.size(), 2u);
  EXPECT_NEAR(s.process_log_gain[0], std::log(4), 1e-12);
  EXPECT_NEAR(s.process_log_gain[1], 0, 1e-12);
  EXPECT_NEAR(s.log_gain, std::log(2), 1e-12);
  EXPECT_NEAR(s.clustered.high - s.log_gain, 12.706204736 * std::log(2), 1e-7);
  EXPECT_EQ(s.candidate_p50_ps, 100000);
  EXPECT_EQ(s.samples_baseline, 8);
  const Doc doc = PairStatisticsDoc(s);
  EXPECT_EQ(IntAt(doc, "ratio_e9"), 2000000000);
  EXPECT_EQ(doc["process_ratio_e9"], Doc({4000000000, 1000000000}));
  EXPECT_TRUE(doc["aa_lo_e9"].is_null());  // no control: no interval rather than a number
  EXPECT_TRUE(doc["mde_e9"].is_null());
}

TEST(AnalysePair, CancelsTheOrderEffectAndReportsIt) {
  std::vector<Sample> samples;
  for (uint16_t p = 0; p < 6; ++p) {
    // Every second call of a pair takes 10 % longer, whichever arm it is.
    AddQuad(samples, p, 0, {1000, 1100, 1000, 1100}, 0, p % 2 == 1);
  }
  const PairStatistics s = AnalysePair(samples, 1);
  EXPECT_NEAR(s.log_gain, 0, 1e-12);
  EXPECT_NEAR(s.order_effect, std::log(1.1), 1e-12);
}

TEST(AnalysePair, LeavesOutQuadsThatAreNotWholeAndCountsDiscards) {
  std::vector<Sample> samples;
  AddQuad(samples, 0, 0, {200, 100, 100, 200});
  AddQuad(samples, 0, 1, {900, 100, 100, 900});
  samples.back().flags = 1;
  AddQuad(samples, 0, 2, {900, 100, 100, 900});
  samples.pop_back();
  const PairStatistics s = AnalysePair(samples, 1);
  EXPECT_EQ(s.quads, 1);
  EXPECT_NEAR(s.log_gain, std::log(2), 1e-12);
  EXPECT_EQ(s.discarded_baseline, 1);
  EXPECT_EQ(s.discarded_candidate, 0);
  EXPECT_EQ(s.samples_baseline, 5);
  EXPECT_EQ(s.samples_candidate, 6);
  EXPECT_EQ(AnalysePair({}, 1).processes, 0);
}

TEST(AnalysePair, ComputesTheLeastEffectFromTheControl) {
  std::vector<Sample> samples;
  std::vector<double> logs;
  for (uint16_t p = 0; p < 6; ++p) {
    AddQuad(samples, p, 0, {1000, 1000, 1000, 1000});
    AddQuad(samples, p, 1, {1000, 1000 + p, 1000 + p, 1000}, 1);
    logs.push_back(-std::log((1000.0 + p) / 1000));
  }
  double mean = 0;
  for (const double value : logs) mean += value / 6;
  double squares = 0;
  for (const double value : logs) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / 5 / 6);
  const PairStatistics s = AnalysePair(samples, 1);
  EXPECT_NEAR(s.aa_log_gain, mean, 1e-12);
  EXPECT_NEAR(s.mde, (2.570581836 + 0.919543780) * error, 1e-9);
  EXPECT_NEAR(s.aa.low, mean - 2.570581836 * error, 1e-9);
  EXPECT_EQ(s.aa_quads, 6);
}

TEST(PairStatisticsDoc, HoldsIntegersAloneAndReadsBack) {
  const PairStatistics s = Made(30000, 500);
  const Doc doc = PairStatisticsDoc(s);
  for (const auto& [key, value] : doc.items()) {
    EXPECT_TRUE(value.is_number_integer() || value.is_null() || value.is_array()) << key;
  }
  EXPECT_EQ(PairStatisticsDoc(AnalysePair({}, 1))["ratio_e9"], 1000000000);
  const PairStatistics back = PairStatisticsOf(doc);
  EXPECT_NEAR(back.log_gain, s.log_gain, 1e-9);
  EXPECT_NEAR(back.clustered.low, s.clustered.low, 1e-9);
  EXPECT_NEAR(back.mde, s.mde, 1e-9);
  EXPECT_EQ(back.process_log_gain.size(), 6u);
  EXPECT_EQ(DecidePair(back, {}).reason, DecidePair(s, {}).reason);
  // An absent interval reads back as one that decides nothing.
  EXPECT_TRUE(std::isinf(PairStatisticsOf(Doc::object()).clustered.high));
}

TEST(PairStatisticsDoc, KeepsASeedThatADocumentCanHold) {
  const PairStatistics s = AnalysePair({}, ~uint64_t{0});
  EXPECT_EQ(IntAt(PairStatisticsDoc(s), "bootstrap_seed"), (int64_t{1} << 53) - 1);
}

TEST(SingleStatisticsDoc, DescribesOneArm) {
  std::vector<Sample> samples(11);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].picoseconds = 1000 + 100 * static_cast<int64_t>(i);
  }
  samples[10].picoseconds = 100000;
  samples.push_back(samples[0]);
  samples.back().flags = 1;
  const Doc doc = SingleStatisticsDoc(samples);
  EXPECT_EQ(IntAt(doc, "n"), 11);
  EXPECT_EQ(IntAt(doc, "discarded"), 1);
  EXPECT_EQ(IntAt(doc, "min_ps"), 1000);
  EXPECT_EQ(IntAt(doc, "p50_ps"), 1500);
  EXPECT_EQ(IntAt(doc, "p25_ps"), 1250);
  EXPECT_EQ(IntAt(doc, "iqr_ps"), 500);
  EXPECT_EQ(IntAt(doc, "max_ps"), 100000);
  EXPECT_EQ(IntAt(doc, "mean_ps"), 10409);  // (14500 + 100000) / 11
  EXPECT_EQ(IntAt(doc, "outliers"), 1);
  EXPECT_TRUE(doc["p99_ps"].is_null());            // under 1,000 samples
  EXPECT_EQ(IntAt(doc, "robust_cv_ppm"), 296520);  // 1.4826 x 300 / 1500
  samples.assign(1000, samples[3]);
  EXPECT_EQ(IntAt(SingleStatisticsDoc(samples), "p99_ps"), 1300);
}

TEST(DecidePair, PassesAClearGain) {
  const PairVerdict verdict = DecidePair(Made(30000, 500), {.calls = 50});
  EXPECT_EQ(verdict.decision, Decision::kPass);
  EXPECT_THAT(verdict.reason, HasSubstr("gain 3.09"));  // 1 / 0.97
  EXPECT_THAT(verdict.reason, HasSubstr("saves 1500.")) << "30 us of 1 ms, 50 calls";
  EXPECT_GE(verdict.arithmetic.size(), 4u);
}

TEST(DecidePair, FailsWhatIsBelowTheThresholdWithConfidence) {
  const PairVerdict none = DecidePair(Made(0, 500), {});
  EXPECT_EQ(none.decision, Decision::kFail);
  EXPECT_THAT(none.reason, HasSubstr("below the threshold of 1.000 %"));
  const PairVerdict slower = DecidePair(Made(-20000, 500), {});
  EXPECT_EQ(slower.decision, Decision::kFail);
  EXPECT_THAT(slower.reason, HasSubstr("slower"));
}

TEST(DecidePair, FailsASavingThatIsTooSmallInTime) {
  // 3 % of 1 ms is 30 us a call: enough relative, too little where 10 ms are wanted.
  const PairVerdict verdict = DecidePair(Made(30000, 500), {.min_abs_ns = 10000000});
  EXPECT_EQ(verdict.decision, Decision::kFail);
  EXPECT_THAT(verdict.reason, HasSubstr("saves at most"));
}

TEST(DecidePair, IsInconclusiveWhereTheIntervalStraddles) {
  // Half width about 1 %: the interval around 1 % holds the threshold.
  const PairVerdict verdict = DecidePair(Made(10000, 9000), {});
  EXPECT_EQ(verdict.decision, Decision::kInconclusive);
  EXPECT_THAT(verdict.reason, HasSubstr("leaves open"));
}

TEST(DecidePair, IsInconclusiveOnNoiseDiscardsAndTooFewProcesses) {
  EXPECT_THAT(DecidePair(Made(30000, 500, 4000), {}).reason, HasSubstr("over a third"));
  PairStatistics s = Made(30000, 500);
  s.mde = 0.02;
  EXPECT_THAT(DecidePair(s, {}).reason, HasSubstr("least effect"));
  s = Made(30000, 500);
  s.aa = {0.0001, 0.0002};
  EXPECT_THAT(DecidePair(s, {}).reason, HasSubstr("tells the baseline from itself"));
  s = Made(30000, 500);
  s.processes = 5;
  EXPECT_THAT(DecidePair(s, {}).reason, HasSubstr("only 5 processes, 6 are needed"));
  s = Made(30000, 500);
  s.discarded_baseline = 6;  // of 96: 6.25 %
  s.discarded_candidate = 6;
  EXPECT_THAT(DecidePair(s, {}).reason, HasSubstr("too many samples were discarded"));
  s.discarded_baseline = 4;  // 4.2 % against 2.1 %
  s.discarded_candidate = 2;
  EXPECT_THAT(DecidePair(s, {}).reason, HasSubstr("unequally"));
  s.aa = PairStatisticsOf(Doc::object()).aa;
  s.discarded_baseline = 0;
  s.discarded_candidate = 0;
  EXPECT_THAT(DecidePair(s, {}).reason, HasSubstr("no A/A control"));
  EXPECT_EQ(DecidePair(s, {}).decision, Decision::kInconclusive);
  EXPECT_EQ(DecidePair(PairStatistics{}, {}).decision, Decision::kInconclusive);
}

TEST(DecidePair, IsInconclusiveWhereTheBootstrapDisagrees) {
  PairStatistics s = Made(30000, 500);
  s.bootstrap.low = -0.001;
  EXPECT_EQ(DecidePair(s, {}).decision, Decision::kInconclusive);
  EXPECT_THAT(DecidePair(s, {}).reason, HasSubstr("bootstrap"));
  s = Made(0, 500);
  s.bootstrap.high = 0.02;
  EXPECT_EQ(DecidePair(s, {}).decision, Decision::kInconclusive);
}

TEST(DecidePair, BelowZeroAsksForNoLossLargerThanThat) {
  const PairThresholds thresholds = {.min_gain_ppm = -2000, .min_abs_ns = 0};
  EXPECT_EQ(DecidePair(Made(0, 200, 100), thresholds).decision, Decision::kPass);
  EXPECT_EQ(DecidePair(Made(-5000, 200, 100), thresholds).decision, Decision::kFail);
  EXPECT_EQ(DecidePair(Made(-2000, 1000, 100), thresholds).decision, Decision::kInconclusive);
}

TEST(QuadsNeeded, AgreesWithTheTableOfTheMethod) {
  // The table counts pairs; a quad holds two.
  EXPECT_NEAR(2 * static_cast<double>(QuadsNeeded(0.002, 0.0001)), 9865, 4);
  EXPECT_NEAR(2 * static_cast<double>(QuadsNeeded(0.005, 0.001)), 618, 3);
  EXPECT_NEAR(2 * static_cast<double>(QuadsNeeded(0.0087, 0.003)), 208, 2);
  EXPECT_NEAR(2 * static_cast<double>(QuadsNeeded(0.0595, 0.01)), 882, 15);
  EXPECT_EQ(QuadsNeeded(0, 0.01), 1);
  EXPECT_EQ(QuadsNeeded(0.01, 0), 1);
}

}  // namespace
}  // namespace h3rt::lab
