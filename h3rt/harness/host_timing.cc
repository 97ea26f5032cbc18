// Timings on the host: quads A B B A of samples by the steady clock.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "h3rt/harness/host.h"
#include "h3rt/harness/host_problem.h"

namespace h3rt::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastSampleNs = 120e3;  // 100 us are asked for
constexpr double kWarmUpNs = 100e6;
constexpr int64_t kMostSets = 64;
constexpr int64_t kMostSetBytes = int64_t{256} << 20;
constexpr int64_t kMostBatch = 1000000;
constexpr size_t kAuditOneIn = 8;  // samples whose outputs are digested
constexpr int kAuditRuns = 31;     // of each side of a ratio
constexpr int kCopyRuns = 11;
constexpr size_t kCopyBytes = size_t{64} << 20;

double Nanoseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

class HostTimer {
 public:
  HostTimer(const Experiment& experiment, const ExperimentWorkload& workload,
            std::vector<const ExperimentArm*> arms)
      : experiment_(experiment), workload_(workload), arms_(std::move(arms)) {}

  // Inputs that take turns, in all more than the caches hold; then what each arm writes for each of
  // them, from an untimed run.
  absl::Status Prepare() {
    sets_.emplace_back(experiment_, workload_, workload_.seed);
    const int64_t cache = std::max<int64_t>(::sysconf(_SC_LEVEL3_CACHE_SIZE), int64_t{32} << 20);
    const int64_t each = std::max<int64_t>(sets_[0].input_bytes(), 1);
    pool_ = static_cast<size_t>(
        std::clamp<int64_t>(std::min(4 * cache / each + 1, kMostSetBytes / each), 2, kMostSets));
    sets_.reserve(pool_ + 1);
    for (size_t k = 1; k < pool_; ++k) AddSet(workload_.seed + k);
    for (const HostProblem& set : sets_) inputs_before_.push_back(set.Digests(false));
    for (const ExperimentArm* arm : arms_) {
      std::vector<std::vector<uint64_t>>& digests = expected_.emplace_back();
      for (const HostProblem& set : sets_) {
        set.Poison(kSecondPoison);
        H3RT_RETURN_IF_ERROR(set.Run(*arm));
        digests.push_back(set.Digests(true));
      }
    }
    return absl::OkStatus();
  }

  // One sample: `batch` calls of an arm over poisoned outputs. `only` < 0: the sets take turns.
  absl::StatusOr<double> Take(size_t arm, int64_t only = -1) {
    sets_[0].Poison(kFirstPoison);
    const Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < batch_; ++i) {
      last_set_ = only >= 0 ? static_cast<size_t>(only) : next_set_++ % pool_;
      const int error = arms_[arm]->run(sets_[last_set_].Call());
      if (error != 0) return sets_[last_set_].Run(*arms_[arm]);
    }
    return Nanoseconds(begin, Clock::now());
  }

  // Warms the arms up and, unless it is given, finds the length of a batch.
  absl::Status WarmUp(int64_t batch) {
    double shortest = 1e18;
    double spent = 0;
    for (size_t i = 0; i < 6 || (spent < kWarmUpNs && i < 100000); ++i) {
      H3RT_ASSIGN_OR_RETURN(const double ns, Take(i % arms_.size()));
      spent += ns;
      ++warmups_;
      if (i >= 2) shortest = std::min(shortest, ns);
    }
    MeasureTick();
    const double least = std::max(kLeastSampleNs, 1200 * static_cast<double>(tick_ns_));
    const double calls = std::ceil(least / std::max(shortest, 1.0));
    batch_ = batch > 0 ? batch : std::clamp<int64_t>(static_cast<int64_t>(calls), 1, kMostBatch);
    return absl::OkStatus();
  }

  absl::Status TakeQuads(int64_t quads, uint16_t process, bool candidate_first) {
    const uint8_t first = candidate_first ? 1 : 0;
    uint16_t number = 0;
    for (int64_t quad = 0; quad < quads; ++quad) {
      H3RT_RETURN_IF_ERROR(TakeQuad({process, number++, 0, first, 0, 0, 0}));
      // Every fourth quad is the control.
      if (quad % 3 == 2) H3RT_RETURN_IF_ERROR(TakeQuad({process, number++, 0, 0, 1, 0, 0}));
    }
    return absl::OkStatus();
  }

  absl::Status TakeOne(Sample sample) {
    H3RT_ASSIGN_OR_RETURN(const double ns, Take(sample.arm));
    timed_ns_ += ns;
    sample.picoseconds = std::max<int64_t>(1, std::llround(ns * 1e3 / static_cast<double>(batch_)));
    samples_.push_back(sample);
    if (samples_.size() > 8 && NextRandom(audit_state_) % kAuditOneIn != 0) return {};
    ++audited_;
    digests_ok_ &= sets_[0].Digests(true) == expected_[sample.arm][last_set_];
    poison_left_ += sets_[0].PoisonLeft(kFirstPoison);
    return absl::OkStatus();
  }

  // A repeated input must not be faster than inputs that take turns, nor another seed's. What runs
  // beside us only ever adds time, so the least time of each is compared.
  absl::Status Audit() {
    AddSet(workload_.seed + 1000003);
    const auto other = static_cast<int64_t>(sets_.size()) - 1;
    const size_t arm = arms_.size() - 1;
    double turning = 1e18, same = 1e18, first = 1e18, seeded = 1e18;
    for (int i = 0; i < kAuditRuns; ++i) {
      const std::pair<int64_t, double*> runs[] = {
          {-1, &turning}, {0, &same}, {0, &first}, {other, &seeded}};
      for (const auto& [only, least] : runs) {
        H3RT_ASSIGN_OR_RETURN(const double ns, Take(arm, only));
        *least = std::min(*least, ns);
      }
    }
    same_input_ratio_ = turning / same;
    seed_ratio_ = first / seeded;
    sets_.pop_back();
    for (size_t k = 0; k < pool_; ++k) {
      inputs_unchanged_ &= sets_[k].Digests(false) == inputs_before_[k];
    }
    return absl::OkStatus();
  }

  GpuTiming Result() const {
    // Both times are of one clock: nothing can run on after a call has returned to us but threads
    // of its own, whose output the audits would miss.
    const int64_t ns = std::llround(timed_ns_);
    return {samples_,
            {{"mode", batch_ == 1 ? "single" : "batched"},
             {"batch", batch_},
             {"timer", "host"},
             {"tick_ns", tick_ns_},
             {"warmups", warmups_},
             {"copy_bytes_per_s", CopyRate()},
             {"audits",
              {{"same_input_ratio_e9", std::llround(same_input_ratio_ * 1e9)},
               {"seed_ratio_e9", std::llround(seed_ratio_ * 1e9)},
               {"output_digests_ok", digests_ok_},
               {"outputs_audited", audited_},
               {"inputs_unchanged", inputs_unchanged_},
               {"poison_left", poison_left_},
               {"wall_ns", ns},
               {"event_ns", ns},
               {"input_sets", static_cast<int64_t>(pool_)},
               {"input_bytes", static_cast<int64_t>(pool_) * sets_[0].input_bytes()}}}}};
  }

 private:
  void AddSet(uint64_t seed) { sets_.emplace_back(experiment_, workload_, seed, &sets_[0]); }

  // `quad` holds what the four samples share; `arm` is the first letter.
  absl::Status TakeQuad(const Sample& quad) {
    for (uint8_t slot = 0; slot < 4; ++slot) {
      Sample sample = quad;
      sample.slot = slot;
      const bool other = slot == 1 || slot == 2;
      if (quad.role == 0 && other) sample.arm = quad.arm == 0 ? 1 : 0;
      H3RT_RETURN_IF_ERROR(TakeOne(sample));
    }
    return absl::OkStatus();
  }

  // The smallest step of the clock.
  void MeasureTick() {
    double least = 1e9;
    for (int i = 0; i < 1000; ++i) {
      const Clock::time_point before = Clock::now();
      Clock::time_point after = before;
      while (after == before) after = Clock::now();
      least = std::min(least, Nanoseconds(before, after));
    }
    tick_ns_ = std::max<int64_t>(1, std::llround(least));
  }

  // Bytes read and written a second by a copy of one thread.
  static int64_t CopyRate() {
    std::vector<std::byte> from(kCopyBytes, std::byte{1}), to(kCopyBytes);
    std::vector<double> times;
    for (int i = 0; i < kCopyRuns; ++i) {
      from[static_cast<size_t>(i)] = std::byte{2};
      const Clock::time_point begin = Clock::now();
      std::memcpy(to.data(), from.data(), kCopyBytes);
      times.push_back(Nanoseconds(begin, Clock::now()));
    }
    const bool copied = to == from;  // a copy that nobody reads may be left out
    return copied ? std::llround(2e9 * static_cast<double>(kCopyBytes) / Median(times)) : 0;
  }

  const Experiment& experiment_;
  const ExperimentWorkload& workload_;
  const std::vector<const ExperimentArm*> arms_;
  std::vector<HostProblem> sets_;
  size_t pool_ = 0;  // sets that take turns
  size_t next_set_ = 0, last_set_ = 0;
  int64_t batch_ = 1, warmups_ = 0, tick_ns_ = 1;
  std::vector<std::vector<std::vector<uint64_t>>> expected_;  // by arm and set
  std::vector<std::vector<uint64_t>> inputs_before_;
  std::vector<Sample> samples_;
  uint64_t audit_state_ = 0x1ab;
  int64_t audited_ = 0, poison_left_ = 0;
  bool digests_ok_ = true, inputs_unchanged_ = true;
  double timed_ns_ = 0, same_input_ratio_ = 0, seed_ratio_ = 0;
};

absl::Status CheckCount(const char* what, int64_t count) {
  if (count >= 1 && count <= 49000) return absl::OkStatus();
  return InvalidArgument({.what = what, .got = std::to_string(count), .wanted = "1 to 49000"});
}

}  // namespace

absl::StatusOr<GpuTiming> HostTimePair(const Experiment& experiment, const ExperimentArm& baseline,
                                       const ExperimentArm& candidate,
                                       const ExperimentWorkload& workload, int64_t quads,
                                       uint16_t process, bool candidate_first, int64_t batch) {
  H3RT_RETURN_IF_ERROR(CheckCount("quads", quads));
  HostTimer timer(experiment, workload, {&baseline, &candidate});
  H3RT_RETURN_IF_ERROR(timer.Prepare());
  H3RT_RETURN_IF_ERROR(timer.WarmUp(batch));
  H3RT_RETURN_IF_ERROR(timer.TakeQuads(quads, process, candidate_first));
  H3RT_RETURN_IF_ERROR(timer.Audit());
  return timer.Result();
}

absl::StatusOr<GpuTiming> HostTimeSingle(const Experiment& experiment, const ExperimentArm& arm,
                                         const ExperimentWorkload& workload, int64_t count,
                                         uint16_t process, int64_t batch) {
  H3RT_RETURN_IF_ERROR(CheckCount("samples", count));
  HostTimer timer(experiment, workload, {&arm});
  H3RT_RETURN_IF_ERROR(timer.Prepare());
  H3RT_RETURN_IF_ERROR(timer.WarmUp(batch));
  for (int64_t i = 0; i < count; ++i) {
    H3RT_RETURN_IF_ERROR(timer.TakeOne({process, static_cast<uint16_t>(i), 0, 0, 0, 0, 0}));
  }
  H3RT_RETURN_IF_ERROR(timer.Audit());
  GpuTiming timing = timer.Result();
  const Doc& audits = timing.facts["audits"];
  // Its body has no room for audits, so what they find ends the run.
  if (!BoolAt(audits, "output_digests_ok") || !BoolAt(audits, "inputs_unchanged") ||
      IntAt(audits, "poison_left") != 0) {
    return Internal({.what = "timed calls did not do their work",
                     .got = CanonicalText(audits),
                     .where = arm.vid});
  }
  return timing;
}

}  // namespace h3rt::lab
