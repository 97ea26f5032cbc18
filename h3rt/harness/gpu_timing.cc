// Timing pairs on a device: quads A B B A of samples between two events of one stream.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "h3rt/cuda/runtime_status.h"
#include "h3rt/harness/environment.h"
#include "h3rt/harness/gpu.h"
#include "h3rt/harness/gpu_device.h"
#include "h3rt/harness/gpu_problem.h"

namespace h3rt::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastSampleMs = 0.12;  // 100 us are asked for
constexpr double kWarmUpMs = 200.0;      // device work, for clocks to settle
constexpr int64_t kMostSets = 64;        // of inputs
constexpr int64_t kMostBatch = 10000;
constexpr int64_t kAuditOneIn = 8;  // samples whose outputs are digested
constexpr int kAuditRuns = 21;      // of each side of a ratio
constexpr int kCopyRuns = 21;
constexpr int64_t kCopyBytes = int64_t{1} << 30;
// Slowdown by heat or power of the hardware and its driver; the ordinary power cap is none of them.
constexpr int64_t kThrottleBits = 0x8 | 0x20 | 0x40 | 0x80;

struct Measured {
  double event_ms = 0;   // the calls alone
  double window_ms = 0;  // all that the stream did within the host's window
  double wall_ms = 0;
  size_t last_set = 0;
};

class PairTimer {
 public:
  PairTimer(const Experiment& experiment, const ExperimentWorkload& workload,
            const ExperimentArm& baseline, const ExperimentArm& candidate)
      : experiment_(experiment), workload_(workload), arms_{&baseline, &candidate} {}

  absl::Status Prepare() {
    H3RT_ASSIGN_OR_RETURN(stream_, Stream::Create());
    for (Event* event : {&open_, &start_, &stop_}) {
      H3RT_ASSIGN_OR_RETURN(*event, Event::Create());
    }
    DeviceFacts facts = {};
    H3RT_RETURN_IF_ERROR(CudaStatus(AskDeviceFacts(&facts), "asking what the device is"));
    // Other inputs in every set, in all more than the L2 cache holds; outputs are shared by all
    // sets and by both arms.
    H3RT_RETURN_IF_ERROR(AddSet(workload_.seed));
    const int64_t each = sets_[0].input_bytes();
    const int64_t wanted = 4 * facts.l2_bytes / std::max<int64_t>(each, 1) + 1;
    const int64_t room = facts.free_bytes / 4 / std::max<int64_t>(sets_[0].device_bytes(), 1);
    const int64_t count = std::clamp<int64_t>(std::min(wanted, room), 2, kMostSets);
    for (int64_t k = 1; k < count; ++k) {
      H3RT_RETURN_IF_ERROR(AddSet(workload_.seed + static_cast<uint64_t>(k)));
    }
    H3RT_ASSIGN_OR_RETURN(inputs_before_, InputDigest());
    return ExpectDigests();
  }

  // One sample: `batch` calls of an arm between two events. The stream is kept busy until all of
  // them are queued, so no gap of launching is timed. Every sample begins with poisoned outputs, so
  // the cache is in the same state for both arms. `only` < 0: the sets take turns.
  absl::StatusOr<Measured> Take(size_t arm, int64_t only = -1) {
    H3RT_RETURN_IF_ERROR(sets_[0].Poison(kFirstPoison, stream_));
    H3RT_RETURN_IF_ERROR(CudaStatus(WaitForDevice(), "waiting before a sample"));
    Measured sample;
    const Clock::time_point before = Clock::now();
    H3RT_RETURN_IF_ERROR(open_.Record(stream_));
    H3RT_RETURN_IF_ERROR(
        CudaStatus(LaunchSpin(30000 + 6000 * batch_, stream_.get()), "keeping the device busy"));
    H3RT_RETURN_IF_ERROR(start_.Record(stream_));
    for (int64_t i = 0; i < batch_; ++i) {
      sample.last_set = only >= 0 ? static_cast<size_t>(only) : next_set_++ % pool_;
      H3RT_RETURN_IF_ERROR(sets_[sample.last_set].Run(*arms_[arm], stream_));
    }
    H3RT_RETURN_IF_ERROR(stop_.Record(stream_));
    // The whole device, so that work on another stream ends inside the window too.
    H3RT_RETURN_IF_ERROR(CudaStatus(WaitForDevice(), "timing " + std::string(arms_[arm]->vid)));
    sample.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - before).count();
    H3RT_ASSIGN_OR_RETURN(sample.event_ms, ElapsedMs(start_, stop_));
    H3RT_ASSIGN_OR_RETURN(sample.window_ms, ElapsedMs(open_, stop_));
    durations_ns_.push_back(sample.event_ms * 1e6);
    return sample;
  }

  // Warms both arms up and, unless it is given, finds the length of a batch.
  absl::Status WarmUp(int64_t batch) {
    double shortest_ms = 1e9;
    double spent_ms = 0;
    for (int i = 0; i < 6 || (spent_ms < kWarmUpMs && i < 100000); ++i) {
      H3RT_ASSIGN_OR_RETURN(const Measured sample, Take(static_cast<size_t>(i % 2)));
      spent_ms += sample.window_ms;
      ++warmups_;
      // The first two load code.
      if (i >= 2) shortest_ms = std::min(shortest_ms, sample.event_ms);
    }
    H3RT_RETURN_IF_ERROR(MeasureTick());
    if (batch > 0) {
      batch_ = batch;
      return absl::OkStatus();
    }
    const double least_ms = std::max(kLeastSampleMs, 1000 * static_cast<double>(tick_ns_) * 1e-6);
    batch_ = std::clamp<int64_t>(
        static_cast<int64_t>(std::ceil(least_ms / std::max(shortest_ms, 1e-4))), 1, kMostBatch);
    return absl::OkStatus();
  }

  absl::Status TakeQuads(int64_t quads, uint16_t process, bool candidate_first) {
    DeviceFacts facts = {};
    H3RT_RETURN_IF_ERROR(CudaStatus(AskDeviceFacts(&facts), "asking what the device is"));
    const Nvml nvml(facts.pci_bus_id);
    const uint8_t first = candidate_first ? 1 : 0;
    uint16_t number = 0;
    for (int64_t quad = 0; quad < quads; ++quad) {
      H3RT_RETURN_IF_ERROR(TakeQuad({process, number++, 0, first, 0, 0, 0}, nvml));
      // Every fourth quad is the control.
      if (quad % 3 == 2) {
        H3RT_RETURN_IF_ERROR(TakeQuad({process, number++, 0, 0, 1, 0, 0}, nvml));
      }
    }
    DiscardThrottled();
    return absl::OkStatus();
  }

  absl::Status Audit() {
    // A repeated input must not be faster than inputs that take turns, nor another seed's.
    H3RT_RETURN_IF_ERROR(AddSet(workload_.seed + 1000003));
    const auto other = static_cast<int64_t>(sets_.size()) - 1;
    std::vector<double> turning, same, first, seeded;
    for (int i = 0; i < kAuditRuns; ++i) {
      const std::pair<int64_t, std::vector<double>*> runs[] = {
          {-1, &turning}, {0, &same}, {0, &first}, {other, &seeded}};
      for (const auto& [only, times] : runs) {
        H3RT_ASSIGN_OR_RETURN(const Measured sample, Take(1, only));
        times->push_back(sample.event_ms);
      }
    }
    same_input_ratio_ = Median(turning) / Median(same);
    seed_ratio_ = Median(first) / Median(seeded);
    sets_.pop_back();
    H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> after, InputDigest());
    inputs_unchanged_ = after == inputs_before_;
    return absl::OkStatus();
  }

  // Bytes read and written a second: the driver's copy, and a kernel's.
  absl::Status MeasureCopyRate() {
    DeviceFacts facts = {};
    H3RT_RETURN_IF_ERROR(CudaStatus(AskDeviceFacts(&facts), "asking what the device is"));
    const int64_t bytes = std::min(kCopyBytes, facts.free_bytes / 4) / 4096 * 4096;
    H3RT_ASSIGN_OR_RETURN(DeviceBuffer from, DeviceBuffer::Create(static_cast<uint64_t>(bytes)));
    H3RT_ASSIGN_OR_RETURN(DeviceBuffer to, DeviceBuffer::Create(static_cast<uint64_t>(bytes)));
    H3RT_RETURN_IF_ERROR(CudaStatus(LaunchGenerate({InputType::kU8, InputFill::kUniform, 1.0f, 1},
                                                   from.data(), bytes, stream_.get()),
                                    "filling the source of a copy"));
    for (size_t kind = 0; kind < 2; ++kind) {
      std::vector<double> times_ms;
      for (int i = 0; i < kCopyRuns + 5; ++i) {
        H3RT_RETURN_IF_ERROR(
            CudaStatus(LaunchSpin(30000, stream_.get()), "keeping the device busy"));
        H3RT_RETURN_IF_ERROR(start_.Record(stream_));
        H3RT_RETURN_IF_ERROR(CudaStatus(
            (kind == 0 ? CopyOnDevice : LaunchCopy)(from.data(), to.data(), bytes, stream_.get()),
            "copying on the device"));
        H3RT_RETURN_IF_ERROR(stop_.Record(stream_));
        H3RT_RETURN_IF_ERROR(stop_.Synchronize());
        H3RT_ASSIGN_OR_RETURN(const double ms, ElapsedMs(start_, stop_));
        if (i >= 5) times_ms.push_back(ms);
      }
      copy_rate_[kind] =
          static_cast<int64_t>(2.0 * static_cast<double>(bytes) / (Median(times_ms) * 1e-3));
    }
    return absl::OkStatus();
  }

  GpuTiming Result() {
    return {samples_,
            {{"mode", batch_ == 1 ? "single" : "batched"},
             {"batch", batch_},
             {"timer", "event"},
             {"tick_ns", tick_ns_},
             {"warmups", warmups_},
             {"copy_bytes_per_s", std::max(copy_rate_[0], copy_rate_[1])},
             {"audits",
              {{"same_input_ratio_e9", std::llround(same_input_ratio_ * 1e9)},
               {"seed_ratio_e9", std::llround(seed_ratio_ * 1e9)},
               {"output_digests_ok", digests_ok_},
               {"outputs_audited", audited_},
               {"inputs_unchanged", inputs_unchanged_},
               {"poison_left", poison_left_},
               {"wall_ns", std::llround(wall_ms_ * 1e6)},
               {"event_ns", std::llround(window_ms_ * 1e6)},
               {"input_sets", static_cast<int64_t>(pool_)},
               {"input_bytes", static_cast<int64_t>(pool_) * sets_[0].input_bytes()},
               {"copy_memcpy_bytes_per_s", copy_rate_[0]},
               {"copy_kernel_bytes_per_s", copy_rate_[1]}}}}};
  }

 private:
  absl::Status AddSet(uint64_t seed) {
    H3RT_ASSIGN_OR_RETURN(GpuProblem set, GpuProblem::Create(experiment_, workload_, seed, stream_,
                                                             sets_.empty() ? nullptr : &sets_[0]));
    sets_.push_back(std::move(set));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<uint64_t>> OutputDigest() {
    H3RT_ASSIGN_OR_RETURN(const DigestBuffer buffer,
                          DigestBuffer::Create(2 * sets_[0].outputs(), stream_));
    H3RT_RETURN_IF_ERROR(sets_[0].DigestOutputs(kFirstPoison, buffer.at(0), stream_));
    return buffer.Read(stream_);
  }

  // Of the sets that take turns.
  absl::StatusOr<std::vector<uint64_t>> InputDigest() {
    const size_t each = 2 * (sets_[0].tensors() - sets_[0].outputs());
    H3RT_ASSIGN_OR_RETURN(const DigestBuffer buffer,
                          DigestBuffer::Create(each * sets_.size(), stream_));
    for (size_t k = 0; k < sets_.size(); ++k) {
      H3RT_RETURN_IF_ERROR(sets_[k].DigestInputs(buffer.at(each * k), stream_));
    }
    return buffer.Read(stream_);
  }

  // What each arm writes for each set, from an untimed run.
  absl::Status ExpectDigests() {
    pool_ = sets_.size();
    for (size_t arm = 0; arm < 2; ++arm) {
      for (const GpuProblem& set : sets_) {
        H3RT_RETURN_IF_ERROR(set.Poison(kSecondPoison, stream_));
        H3RT_RETURN_IF_ERROR(set.Run(*arms_[arm], stream_));
        H3RT_RETURN_IF_ERROR(
            CudaStatus(WaitForDevice(), "running " + std::string(arms_[arm]->vid)));
        H3RT_ASSIGN_OR_RETURN(std::vector<uint64_t> digest, OutputDigest());
        expected_[arm].push_back(std::move(digest));
      }
    }
    return absl::OkStatus();
  }

  // `quad` holds what the four samples share; `arm` is the first letter.
  absl::Status TakeQuad(Sample quad, const Nvml& nvml) {
    const GpuState state = nvml.State();
    clocks_.push_back(state);
    const auto first = static_cast<int>(quad.arm);
    for (int slot = 0; slot < 4; ++slot) {
      const bool other = slot == 1 || slot == 2;
      Sample sample = quad;
      sample.slot = static_cast<uint8_t>(slot);
      sample.arm = static_cast<uint8_t>(quad.role == 1 ? 0 : other ? 1 - first : first);
      H3RT_ASSIGN_OR_RETURN(const Measured measured, Take(sample.arm));
      sample.picoseconds =
          std::max<int64_t>(1, std::llround(measured.event_ms * 1e9 / static_cast<double>(batch_)));
      wall_ms_ += measured.wall_ms;
      window_ms_ += measured.window_ms;
      // The host waited long after the stream was done: something else ran.
      if (measured.wall_ms - measured.window_ms > 2.0 + measured.event_ms) sample.flags = 1;
      samples_.push_back(sample);
      if (NextRandom(audit_state_) % kAuditOneIn != 0 && samples_.size() > 8) continue;
      H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> digest, OutputDigest());
      ++audited_;
      digests_ok_ &= digest == expected_[sample.arm][measured.last_set];
      for (size_t k = 1; k < digest.size(); k += 2) poison_left_ += static_cast<int64_t>(digest[k]);
    }
    return absl::OkStatus();
  }

  // All four samples of a quad that began throttled or slower than 95 % of the usual clock.
  void DiscardThrottled() {
    std::vector<double> clocks;
    for (const GpuState& state : clocks_) {
      if (!state.clock_mhz.is_null()) clocks.push_back(state.clock_mhz.get<double>());
    }
    const double usual = clocks.empty() ? 0 : Median(clocks);
    for (Sample& sample : samples_) {
      const GpuState& state = clocks_[sample.quad];
      if ((!state.throttle.is_null() && (state.throttle.get<int64_t>() & kThrottleBits) != 0) ||
          (!state.clock_mhz.is_null() && state.clock_mhz.get<double>() < 0.95 * usual)) {
        sample.flags = 1;
      }
    }
  }

  // The smallest step between durations that the events tell apart.
  absl::Status MeasureTick() {
    for (int i = 0; i < 100; ++i) {
      H3RT_RETURN_IF_ERROR(start_.Record(stream_));
      H3RT_RETURN_IF_ERROR(CudaStatus(LaunchSpin(2000 + 37 * i, stream_.get()), "a short wait"));
      H3RT_RETURN_IF_ERROR(stop_.Record(stream_));
      H3RT_RETURN_IF_ERROR(stop_.Synchronize());
      H3RT_ASSIGN_OR_RETURN(const double ms, ElapsedMs(start_, stop_));
      durations_ns_.push_back(ms * 1e6);
    }
    std::sort(durations_ns_.begin(), durations_ns_.end());
    double step = 1e9;
    for (size_t i = 1; i < durations_ns_.size(); ++i) {
      const double difference = durations_ns_[i] - durations_ns_[i - 1];
      if (difference > 0.5) step = std::min(step, difference);  // below is rounding of the float
    }
    tick_ns_ = std::max<int64_t>(1, std::llround(step));
    return absl::OkStatus();
  }

  const Experiment& experiment_;
  const ExperimentWorkload& workload_;
  const ExperimentArm* arms_[2];
  Stream stream_;
  Event open_, start_, stop_;
  std::vector<GpuProblem> sets_;
  size_t pool_ = 0;  // sets that take turns
  size_t next_set_ = 0;
  int64_t batch_ = 1;
  int64_t warmups_ = 0;
  int64_t tick_ns_ = 0;
  std::vector<std::vector<uint64_t>> expected_[2];
  std::vector<uint64_t> inputs_before_;
  std::vector<double> durations_ns_;
  std::vector<Sample> samples_;
  std::vector<GpuState> clocks_;
  uint64_t audit_state_ = 0x1ab;
  int64_t audited_ = 0;
  int64_t poison_left_ = 0;
  bool digests_ok_ = true;
  bool inputs_unchanged_ = false;
  double wall_ms_ = 0, window_ms_ = 0;
  double same_input_ratio_ = 0, seed_ratio_ = 0;
  int64_t copy_rate_[2] = {};
};

}  // namespace

absl::StatusOr<GpuTiming> GpuTimePair(const Experiment& experiment, const ExperimentArm& baseline,
                                      const ExperimentArm& candidate,
                                      const ExperimentWorkload& workload, int64_t quads,
                                      uint16_t process, bool candidate_first, int64_t batch) {
  if (quads < 1 || quads > 49000) {
    return InvalidArgument({.what = "quads", .got = std::to_string(quads), .wanted = "1 to 49000"});
  }
  PairTimer timer(experiment, workload, baseline, candidate);
  H3RT_RETURN_IF_ERROR(timer.Prepare());
  H3RT_RETURN_IF_ERROR(timer.WarmUp(batch));
  H3RT_RETURN_IF_ERROR(timer.TakeQuads(quads, process, candidate_first));
  H3RT_RETURN_IF_ERROR(timer.Audit());
  H3RT_RETURN_IF_ERROR(timer.MeasureCopyRate());
  return timer.Result();
}

}  // namespace h3rt::lab
