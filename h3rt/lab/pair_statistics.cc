// From samples to the statistics of a pair, to the integers in documents, to a verdict.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "h3rt/lab/stats.h"

namespace h3rt::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kConfidence = 0.95;
constexpr int64_t kRepeats = 10000;
constexpr uint64_t kSeedMask = (uint64_t{1} << 53) - 1;
constexpr double kMadToDeviation = 1.4826;  // of a normal distribution

// What a document holds of the statistics: integers of these names.
constexpr std::pair<const char*, int64_t PairStatistics::*> kCounts[] = {
    {"processes", &PairStatistics::processes},
    {"quads", &PairStatistics::quads},
    {"aa_quads", &PairStatistics::aa_quads},
    {"samples_baseline", &PairStatistics::samples_baseline},
    {"samples_candidate", &PairStatistics::samples_candidate},
    {"discarded_baseline", &PairStatistics::discarded_baseline},
    {"discarded_candidate", &PairStatistics::discarded_candidate}};
constexpr std::tuple<const char*, double PairStatistics::*, double> kNumbers[] = {
    {"baseline_p50_ps", &PairStatistics::baseline_p50_ps, 1},
    {"baseline_p95_ps", &PairStatistics::baseline_p95_ps, 1},
    {"candidate_p50_ps", &PairStatistics::candidate_p50_ps, 1},
    {"candidate_p95_ps", &PairStatistics::candidate_p95_ps, 1},
    {"baseline_cv_ppm", &PairStatistics::baseline_cv, 1e6},
    {"candidate_cv_ppm", &PairStatistics::candidate_cv, 1e6},
    {"robust_cv_ppm", &PairStatistics::robust_cv, 1e6},
    {"lag1_e6", &PairStatistics::lag_one, 1e6},
    {"drift_ppm", &PairStatistics::drift, 1e6}};
constexpr std::pair<const char*, double PairStatistics::*> kGains[] = {
    {"ratio_e9", &PairStatistics::log_gain}, {"aa_ratio_e9", &PairStatistics::aa_log_gain}};
constexpr std::pair<const char*, Interval PairStatistics::*> kIntervals[] = {
    {"ci", &PairStatistics::clustered},
    {"exact", &PairStatistics::exact},
    {"bootstrap", &PairStatistics::bootstrap},
    {"aa", &PairStatistics::aa}};

struct Quad {
  const Sample* slots[4] = {};
  bool whole = true;  // no slot twice, none discarded
};

// All of one process, in the order in which it was taken.
struct Process {
  std::map<std::pair<uint8_t, uint16_t>, Quad> quads = {};  // by role and number
  std::vector<double> times[2] = {};                        // of the pair, by arm
  std::vector<const Sample*> sequence = {};                 // of the pair, not discarded
  std::vector<double> gains = {};
  std::vector<double> aa_gains = {};
  double first = 1;  // +1 where the baseline comes first (ABBA), -1 for BAAB
};

void Append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

double QuantileOrZero(const std::vector<double>& values, double q) {
  return values.empty() ? 0 : Quantile(values, q);
}

bool Complete(const Quad& quad) {
  return quad.whole && std::all_of(std::begin(quad.slots), std::end(quad.slots),
                                   [](const Sample* sample) { return sample != nullptr; });
}

double LogTime(const Sample* sample) { return PlainLog(static_cast<double>(sample->picoseconds)); }

// Splits by process; counts what was discarded.
std::map<uint16_t, Process> SplitByProcess(std::span<const Sample> samples,
                                           PairStatistics& statistics) {
  std::map<uint16_t, Process> processes;
  for (const Sample& sample : samples) {
    Process& process = processes[sample.process];
    Quad& quad = process.quads[{sample.role, sample.quad}];
    const Sample*& slot = quad.slots[sample.slot & 3];
    if (slot != nullptr || sample.flags != 0) quad.whole = false;
    slot = &sample;
    if (sample.role != 0) continue;
    ++(sample.arm == 0 ? statistics.samples_baseline : statistics.samples_candidate);
    if (sample.flags != 0) {
      ++(sample.arm == 0 ? statistics.discarded_baseline : statistics.discarded_candidate);
      continue;
    }
    process.times[sample.arm & 1].push_back(static_cast<double>(sample.picoseconds));
    process.sequence.push_back(&sample);
  }
  return processes;
}

// Quad values: log baseline over candidate, the order effect beside it.
void TakeQuads(Process& process, std::vector<double>& order_effects) {
  for (const auto& [key, quad] : process.quads) {
    if (key.first != 0 || !Complete(quad)) continue;
    double gain = 0;
    int candidates = 0;
    for (const Sample* sample : quad.slots) {
      candidates += sample->arm;
      gain += sample->arm == 0 ? LogTime(sample) : -LogTime(sample);
    }
    if (candidates != 2) continue;
    process.gains.push_back(gain / 2);
    process.first = quad.slots[0]->arm == 0 ? 1 : -1;
    order_effects.push_back((LogTime(quad.slots[1]) + LogTime(quad.slots[3]) -
                             LogTime(quad.slots[0]) - LogTime(quad.slots[2])) /
                            2);
  }
  // The control has no candidate: the slots that the candidate has in a pair stand for it.
  for (const auto& [key, quad] : process.quads) {
    if (key.first != 1 || !Complete(quad)) continue;
    const double gain = (LogTime(quad.slots[0]) - LogTime(quad.slots[1]) - LogTime(quad.slots[2]) +
                         LogTime(quad.slots[3])) /
                        2;
    process.aa_gains.push_back(process.first * gain);
  }
}

// The largest over processes of what is reported of each sequence.
void DescribeSequence(const Process& process, PairStatistics& statistics,
                      std::vector<double>& robust_deviations) {
  double medians[2] = {0, 0};
  for (const int arm : {0, 1}) {
    const std::vector<double>& times = process.times[arm];
    if (times.empty()) continue;
    medians[arm] = Median(times);
    double& cv = arm == 0 ? statistics.baseline_cv : statistics.candidate_cv;
    cv = std::max(cv, Deviation(times) / MeanOf(times));
    for (const double time : times) {
      robust_deviations.push_back(std::fabs(time - medians[arm]) / medians[arm]);
    }
    const double drift = RelativeDrift(times);
    if (std::fabs(drift) > std::fabs(statistics.drift)) statistics.drift = drift;
  }
  std::vector<double> relative;
  for (const Sample* sample : process.sequence) {
    relative.push_back(static_cast<double>(sample->picoseconds) / medians[sample->arm & 1]);
  }
  const double lag_one = LagOneAutocorrelation(relative);
  if (std::fabs(lag_one) > std::fabs(statistics.lag_one)) statistics.lag_one = lag_one;
}

int64_t Rounded(double value) {
  constexpr double kLimit = 9007199254740991.0;  // 2^53 - 1, the largest in a document
  return std::isnan(value) ? 0 : std::llround(std::clamp(value, -kLimit, kLimit));
}

// Null where there is no such number: an interval of one process, say.
Doc Parts(double value, double scale) {
  return std::isfinite(value) ? Doc(Rounded(value * scale)) : Doc(nullptr);
}
Doc Ratio(double log_gain) {
  return std::isfinite(log_gain) ? Parts(PlainExp(log_gain), 1e9) : Doc(nullptr);
}
double LogOf(const Doc& ratio, double otherwise) {
  return ratio.is_number_integer() && ratio.get<int64_t>() > 0
             ? PlainLog(static_cast<double>(ratio.get<int64_t>()) / 1e9)
             : otherwise;
}
double PartOf(const Doc& value, double scale) {
  return value.is_number_integer() ? static_cast<double>(value.get<int64_t>()) / scale : kInfinity;
}

// 1234 thousandths as "1.234".
std::string Decimal(int64_t value, int64_t one) {
  const std::string digits = std::to_string(one + std::llabs(value) % one).substr(1);
  return (value < 0 ? "-" : "") + std::to_string(std::llabs(value) / one) + "." + digits;
}
std::string Percent(double part) {
  if (!std::isfinite(part)) return part > 0 ? "unbounded" : "-unbounded";
  return Decimal(Rounded(part * 1e5), 1000) + " %";
}
std::string Microseconds(double nanoseconds) {
  if (!std::isfinite(nanoseconds)) return "unbounded";
  return Decimal(Rounded(nanoseconds / 10), 100) + " us";
}

double PartsOfLog(double log_gain) {
  return std::isfinite(log_gain) ? PlainExp(log_gain) - 1 : log_gain;
}
Interval PartsOfLog(const Interval& interval) {
  return {PartsOfLog(interval.low), PartsOfLog(interval.high)};
}
std::string Text(const Interval& interval) {
  return Percent(interval.low) + " to " + Percent(interval.high);
}

// Time saved by a log gain on the baseline's median, all calls of a step, in nanoseconds.
double Saving(const PairStatistics& statistics, double log_gain, int64_t calls) {
  if (!std::isfinite(log_gain)) return log_gain;
  return statistics.baseline_p50_ps / 1000 * (1 - PlainExp(-log_gain)) * static_cast<double>(calls);
}

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Why these samples can decide nothing, or empty.
std::string WhyUndecidable(const PairStatistics& statistics, const PairThresholds& thresholds) {
  const double wanted = static_cast<double>(std::llabs(thresholds.min_gain_ppm)) / 1e6;
  if (statistics.processes < thresholds.min_processes) {
    return "only " + std::to_string(statistics.processes) + " processes, " +
           std::to_string(thresholds.min_processes) + " are needed";
  }
  const double lost[2] = {Share(statistics.discarded_baseline, statistics.samples_baseline),
                          Share(statistics.discarded_candidate, statistics.samples_candidate)};
  const double limit = static_cast<double>(thresholds.max_discard_ppm) / 1e6;
  if (std::max(lost[0], lost[1]) > limit) {
    return "too many samples were discarded: " + Percent(std::max(lost[0], lost[1])) +
           " of an arm, " + Percent(limit) + " are allowed";
  }
  const double difference = static_cast<double>(thresholds.max_discard_difference_ppm) / 1e6;
  if (std::fabs(lost[0] - lost[1]) > difference) {
    return "the arms lost samples unequally: " + Percent(lost[0]) + " of the baseline, " +
           Percent(lost[1]) + " of the candidate";
  }
  if (!std::isfinite(statistics.aa.low) || !std::isfinite(statistics.aa.high)) {
    return "there is no A/A control";
  }
  const Interval aa = PartsOfLog(statistics.aa);
  if (statistics.aa.low > 0 || statistics.aa.high < 0) {
    return "noisy: the A/A control tells the baseline from itself (" + Text(aa) + ")";
  }
  if ((statistics.aa.high - statistics.aa.low) / 2 > wanted / 3) {
    return "noisy: half of the A/A interval, " + Percent((aa.high - aa.low) / 2) +
           ", is over a third of the threshold of " + Percent(wanted);
  }
  if (PartsOfLog(statistics.mde) > wanted) {
    return "noisy: the least effect that could be seen, " + Percent(PartsOfLog(statistics.mde)) +
           ", is over the threshold of " + Percent(wanted);
  }
  return {};
}

}  // namespace

PairStatistics AnalysePair(std::span<const Sample> samples, uint64_t bootstrap_seed,
                           bool describe) {
  PairStatistics statistics;
  statistics.bootstrap_seed = bootstrap_seed & kSeedMask;
  std::map<uint16_t, Process> processes = SplitByProcess(samples, statistics);
  std::vector<double> times[2];
  std::vector<double> robust_deviations;
  std::vector<double> order_effects;
  std::vector<double> all_gains;
  std::vector<double> aa_medians;
  std::vector<std::vector<double>> gains;
  for (auto& [number, process] : processes) {
    TakeQuads(process, order_effects);
    if (describe) DescribeSequence(process, statistics, robust_deviations);
    for (const int arm : {0, 1}) Append(times[arm], process.times[arm]);
    if (!process.aa_gains.empty()) aa_medians.push_back(Median(process.aa_gains));
    statistics.aa_quads += static_cast<int64_t>(process.aa_gains.size());
    if (process.gains.empty()) continue;
    statistics.process_log_gain.push_back(Median(process.gains));
    Append(all_gains, process.gains);
    gains.push_back(std::move(process.gains));
  }
  statistics.processes = static_cast<int64_t>(gains.size());
  statistics.quads = static_cast<int64_t>(all_gains.size());
  statistics.log_gain = MeanOf(statistics.process_log_gain);
  statistics.clustered = MeanInterval(statistics.process_log_gain, kConfidence);
  statistics.exact = ExactMedianInterval(std::move(all_gains), kConfidence);
  statistics.bootstrap =
      ClusterBootstrap(gains, kConfidence, describe ? kRepeats : 0, statistics.bootstrap_seed);
  statistics.baseline_p50_ps = QuantileOrZero(times[0], 0.5);
  statistics.baseline_p95_ps = QuantileOrZero(times[0], 0.95);
  statistics.candidate_p50_ps = QuantileOrZero(times[1], 0.5);
  statistics.candidate_p95_ps = QuantileOrZero(times[1], 0.95);
  statistics.robust_cv = kMadToDeviation * QuantileOrZero(robust_deviations, 0.5);
  statistics.order_effect = QuantileOrZero(order_effects, 0.5);
  statistics.aa_log_gain = MeanOf(aa_medians);
  statistics.aa = MeanInterval(aa_medians, kConfidence);
  const auto count = static_cast<double>(aa_medians.size());
  const auto degrees = static_cast<int64_t>(aa_medians.size()) - 1;
  statistics.mde = degrees < 1 ? kInfinity
                               : (StudentQuantile(0.975, degrees) + StudentQuantile(0.8, degrees)) *
                                     Deviation(aa_medians) / std::sqrt(count);
  return statistics;
}

Doc PairStatisticsDoc(const PairStatistics& statistics) {
  Doc doc = Doc::object();
  for (const auto& [key, member] : kCounts) doc[key] = statistics.*member;
  for (const auto& [key, member, scale] : kNumbers) doc[key] = Rounded(statistics.*member * scale);
  for (const auto& [key, member] : kGains) doc[key] = Ratio(statistics.*member);
  for (const auto& [key, member] : kIntervals) {
    doc[std::string(key) + "_lo_e9"] = Ratio((statistics.*member).low);
    doc[std::string(key) + "_hi_e9"] = Ratio((statistics.*member).high);
  }
  doc["bootstrap_repeats"] = kRepeats;
  doc["bootstrap_seed"] = statistics.bootstrap_seed;
  doc["order_effect_ppm"] = Rounded(PartsOfLog(statistics.order_effect) * 1e6);
  doc["mde_e9"] = Parts(PartsOfLog(statistics.mde), 1e9);
  doc["gain_ps"] = Rounded(Saving(statistics, statistics.log_gain, 1) * 1000);
  Doc each = Doc::array();
  for (const double gain : statistics.process_log_gain) each.push_back(Ratio(gain));
  doc["process_ratio_e9"] = std::move(each);
  return doc;
}

PairStatistics PairStatisticsOf(const Doc& document) {
  PairStatistics s;
  for (const auto& [key, member] : kCounts) s.*member = IntAt(document, key);
  for (const auto& [key, member, scale] : kNumbers) {
    s.*member = static_cast<double>(IntAt(document, key)) / scale;
  }
  for (const auto& [key, member] : kGains) s.*member = LogOf(At(document, key), 0);
  for (const auto& [key, member] : kIntervals) {
    s.*member = {LogOf(At(document, std::string(key) + "_lo_e9"), -kInfinity),
                 LogOf(At(document, std::string(key) + "_hi_e9"), kInfinity)};
  }
  s.bootstrap_seed = static_cast<uint64_t>(IntAt(document, "bootstrap_seed"));
  s.order_effect = PlainLog(1 + static_cast<double>(IntAt(document, "order_effect_ppm")) / 1e6);
  s.mde = PlainLog(1 + PartOf(At(document, "mde_e9"), 1e9));
  for (const Doc& ratio : At(document, "process_ratio_e9")) {
    s.process_log_gain.push_back(LogOf(ratio, 0));
  }
  return s;
}

Doc SingleStatisticsDoc(std::span<const Sample> samples) {
  std::vector<double> times;
  for (const Sample& sample : samples) {
    if (sample.flags == 0) times.push_back(static_cast<double>(sample.picoseconds));
  }
  Doc doc = Doc::object();
  doc["n"] = times.size();
  doc["discarded"] = samples.size() - times.size();
  if (times.empty()) times.push_back(0);
  const double median = Median(times);
  std::vector<double> distances;
  for (const double time : times) distances.push_back(std::fabs(time - median));
  const double mad = Median(distances);
  const double mean = MeanOf(times);
  const double deviation = Deviation(times);
  constexpr std::pair<const char*, double> kQuantiles[] = {
      {"min_ps", 0},    {"p05_ps", 0.05}, {"p25_ps", 0.25}, {"p50_ps", 0.5},
      {"p75_ps", 0.75}, {"p95_ps", 0.95}, {"p99_ps", 0.99}, {"max_ps", 1}};
  for (const auto& [key, q] : kQuantiles) doc[key] = Rounded(Quantile(times, q));
  if (times.size() < 1000) doc["p99_ps"] = nullptr;
  doc["mean_ps"] = Rounded(mean);
  doc["sd_ps"] = Rounded(deviation);
  doc["cv_ppm"] = mean > 0 ? Rounded(deviation / mean * 1e6) : 0;
  doc["robust_cv_ppm"] = median > 0 ? Rounded(kMadToDeviation * mad / median * 1e6) : 0;
  doc["iqr_ps"] = Rounded(Quantile(times, 0.75) - Quantile(times, 0.25));
  doc["lag1_e6"] = Rounded(LagOneAutocorrelation(times) * 1e6);
  doc["drift_ppm"] = Rounded(RelativeDrift(times) * 1e6);
  doc["outliers"] = std::count_if(distances.begin(), distances.end(),
                                  [mad](double distance) { return distance > 5 * mad; });
  return doc;
}

PairVerdict DecidePair(const PairStatistics& statistics, const PairThresholds& thresholds) {
  const double wanted = static_cast<double>(thresholds.min_gain_ppm) / 1e6;
  const auto wanted_ns = static_cast<double>(thresholds.min_abs_ns);
  const bool absolute = thresholds.min_abs_ns > 0;
  const double gain = PartsOfLog(statistics.log_gain);
  const Interval bounds = PartsOfLog(statistics.clustered);
  const Interval drawn = PartsOfLog(statistics.bootstrap);
  const double saved = Saving(statistics, statistics.log_gain, thresholds.calls);
  const double most_saved = Saving(statistics, statistics.clustered.high, thresholds.calls);
  const double variation = std::max(statistics.baseline_cv, statistics.candidate_cv);
  PairVerdict verdict;
  verdict.arithmetic = {
      "gain " + Percent(gain) + ", 95 % interval over " + std::to_string(statistics.processes) +
          " processes " + Text(bounds) + ", wanted " + Percent(wanted),
      "bootstrap interval " + Text(drawn) + ", exact interval over " +
          std::to_string(statistics.quads) + " quads " + Text(PartsOfLog(statistics.exact)),
      "saves " + Microseconds(saved) + " in " + std::to_string(thresholds.calls) +
          " calls, at most " + Microseconds(most_saved) + ", wanted " + Microseconds(wanted_ns),
      "A/A " + Text(PartsOfLog(statistics.aa)) + ", least effect that could be seen " +
          Percent(PartsOfLog(statistics.mde)) + " (80 % power)"};
  if (variation > 0.03) {
    verdict.arithmetic.push_back("samples vary by " + Percent(variation) +
                                 ": longer batches would say more");
  }
  const auto decide = [&](Decision decision, const std::string& reason) {
    verdict.decision = decision;
    verdict.reason = reason;
    return verdict;
  };
  constexpr Decision kOpen = Decision::kInconclusive;
  if (const std::string why = WhyUndecidable(statistics, thresholds); !why.empty()) {
    return decide(kOpen, why);
  }
  const bool too_small = bounds.high < wanted;
  if (too_small && !(drawn.high < wanted)) {
    return decide(kOpen, "the bootstrap interval reaches " + Percent(drawn.high) +
                             " and does not share the fail of the interval over processes");
  }
  if (too_small || (absolute && most_saved < wanted_ns)) {
    return decide(Decision::kFail,
                  bounds.high < 0 ? "slower: the interval ends at " + Percent(bounds.high)
                  : too_small     ? "the interval ends at " + Percent(bounds.high) +
                                    ", below the threshold of " + Percent(wanted)
                              : "it saves at most " + Microseconds(most_saved) +
                                    ", below the threshold of " + Microseconds(wanted_ns));
  }
  if (!(wanted >= 0 ? bounds.low > 0 && gain >= wanted : bounds.low > wanted)) {
    return decide(kOpen, "the interval of " + Text(bounds) + " leaves open whether the gain is " +
                             (wanted >= 0 ? "there and " : "") + "over " + Percent(wanted));
  }
  if (absolute && saved < wanted_ns) {
    return decide(kOpen, "the saving of " + Microseconds(saved) + " is below " +
                             Microseconds(wanted_ns) + ", but not with confidence");
  }
  if (!(drawn.low > std::min(wanted, 0.0))) {
    return decide(kOpen, "the bootstrap interval starts at " + Percent(drawn.low) +
                             " and does not share the pass of the interval over processes");
  }
  return decide(Decision::kPass,
                "gain " + Percent(gain) + ", interval from " + Percent(bounds.low) +
                    ", threshold " + Percent(wanted) +
                    (absolute ? "; saves " + Microseconds(saved) + " a step" : std::string()));
}

}  // namespace h3rt::lab
