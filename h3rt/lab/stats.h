// Statistics of paired timings on noisy machines (specification, section 6).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "h3rt/ledger/document.h"
#include "h3rt/num/statistics.h"

namespace h3rt::lab {

// One timed call. Time in picoseconds of one call (a batch is divided by its length before).
struct Sample {
  uint16_t process = 0;
  uint16_t quad = 0;
  uint8_t slot = 0;   // 0..3 within the quad
  uint8_t arm = 0;    // 0 baseline, 1 candidate
  uint8_t role = 0;   // 0 pair, 1 A/A control: all four slots ran the baseline
  uint8_t flags = 0;  // 1: discarded for a recorded cause
  int64_t picoseconds = 0;
};
std::string PackSamples(std::span<const Sample> samples);
// Empty with a reason when the text is no whole number of samples or holds a time <= 0.
std::vector<Sample> UnpackSamples(std::string_view packed, std::string& reason);

// Gain of the candidate: log(baseline / candidate), so positive is faster. In parts: exp - 1.
struct PairStatistics {
  int64_t processes = 0;
  int64_t quads = 0;        // of the pair, all processes
  double log_gain = 0;      // mean of process medians
  Interval clustered = {};  // t interval over processes, 95 %
  Interval exact = {};      // order statistics over all quads
  Interval bootstrap = {};  // two-stage, B = 10,000, seed in the body
  double baseline_p50_ps = 0;
  double baseline_p95_ps = 0;
  double candidate_p50_ps = 0;
  double candidate_p95_ps = 0;
  double baseline_cv = 0;  // largest over processes
  double candidate_cv = 0;
  double robust_cv = 0;  // from the MAD, pooled over arms
  double lag_one = 0;
  double drift = 0;
  double order_effect = 0;  // median of slots 2,4 over slots 1,3
  double aa_log_gain = 0;
  Interval aa = {};  // clustered, 95 %
  double mde = 0;    // (t(.975) + t(.8)) s / sqrt(S) from A/A, in log
  int64_t aa_quads = 0;
  int64_t samples_baseline = 0;  // of the pair, with the discarded ones
  int64_t samples_candidate = 0;
  int64_t discarded_baseline = 0;
  int64_t discarded_candidate = 0;
  uint64_t bootstrap_seed = 0;
  std::vector<double> process_log_gain = {};
};
// A quad counts when its four slots are there, two an arm, none discarded. The seed is cut to 53
// bits so that a document can hold it. Without `describe` the bootstrap interval is infinite and
// what is reported of sequences zero (for simulations).
PairStatistics AnalysePair(std::span<const Sample> samples, uint64_t bootstrap_seed,
                           bool describe = true);

// The `statistics` object of a timing_pair body: integers only (_e9, _ps, _ppm), exactly as
// `lab verify --recompute` compares it.
Doc PairStatisticsDoc(const PairStatistics& statistics);
// Back again, as far as the integers carry it: what verdicts are decided on.
PairStatistics PairStatisticsOf(const Doc& document);
// The `statistics` object of a timing_single body: n, min, p05, p25, p50, p75, p95, p99 (null below
// 1000), max, mean, sd, cv_ppm, robust_cv_ppm, iqr, lag1_e6, drift_ppm, outliers, discarded.
Doc SingleStatisticsDoc(std::span<const Sample> samples);

enum class Decision { kPass, kFail, kInconclusive };
struct PairVerdict {
  Decision decision = Decision::kInconclusive;
  std::string reason;                   // one sentence, the rule that decided
  std::vector<std::string> arithmetic;  // the numbers, a line each
};
struct PairThresholds {
  int64_t min_gain_ppm = 10000;
  int64_t min_abs_ns = 20000;  // gain times calls
  int64_t calls = 1;
  int64_t min_processes = 6;
  int64_t max_discard_ppm = 50000;
  int64_t max_discard_difference_ppm = 20000;
};
// Pass, fail or inconclusive with the rule. Noise is inconclusive, never a fail. A threshold below
// zero asks for no loss larger than that (non-inferiority): pass when the interval lies above it.
PairVerdict DecidePair(const PairStatistics& statistics, const PairThresholds& thresholds);

}  // namespace h3rt::lab
