// The statistics against numbers known by hand and against definitions written out again.
#include "h3rt/lab/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace h3rt::lab
