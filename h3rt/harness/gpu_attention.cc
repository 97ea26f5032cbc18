#include <algorithm>
#include <functional>
#include <set>
#include <span>

#include "h3rt/cuda/device_buffer.h"
#include "h3rt/cuda/runtime_status.h"
#include "h3rt/cuda/stream.h"
#include "h3rt/harness/attention_device.h"
#include "h3rt/harness/gpu_device.h"
#include "h3rt/harness/gpu_problem.h"
#include "h3rt/harness/inputs.h"
#include "h3rt/kernels/attention/oracle/compare.h"
#include "h3rt/kernels/attention/sage2_public/launch.h"

namespace h3rt::lab {
namespace {

constexpr int64_t kCancelEvery = 10;  // launches between two looks at the token
constexpr int kWarmUps = 3;
constexpr int64_t kSpinNs = 60000;

// Memory between guards.
class Slab {
 public:
  absl::Status Create(int64_t bytes, const Stream& stream) {
    bytes_ = bytes;
    H3RT_ASSIGN_OR_RETURN(buffer_,
                          DeviceBuffer::Create(static_cast<uint64_t>(bytes + 2 * kGuardBytes)));
    return buffer_.Fill(kGuardByte, stream);
  }
  std::byte* data() const { return buffer_.data() + kGuardBytes; }
  int64_t bytes() const { return bytes_; }

  absl::Status Fill(uint8_t byte, const Stream& stream) const {
    return CudaStatus(FillOnDevice(data(), byte, bytes_, stream.get()), "poisoning outputs");
  }
  absl::Status Upload(std::span<const std::byte> from, const Stream& stream) {
    return buffer_.CopyFromHost(from, kGuardBytes, stream);
  }
  template <typename T>
  absl::Status Download(std::vector<T>& to, const Stream& stream) const {
    to.resize(static_cast<size_t>(bytes_) / sizeof(T));
    return buffer_.CopyToHost(std::as_writable_bytes(std::span(to)), kGuardBytes, stream);
  }
  absl::StatusOr<int64_t> GuardFaults(const Stream& stream) const {
    std::vector<std::byte> guard(kGuardBytes);
    int64_t faults = 0;
    for (const int64_t offset : {int64_t{0}, kGuardBytes + bytes_}) {
      H3RT_RETURN_IF_ERROR(buffer_.CopyToHost(guard, static_cast<uint64_t>(offset), stream));
      H3RT_RETURN_IF_ERROR(stream.Synchronize());
      faults += static_cast<int64_t>(guard.size()) -
                std::count(guard.begin(), guard.end(), std::byte{kGuardByte});
    }
    return faults;
  }
  absl::Status Digest(int element_bytes, uint64_t* result, const Stream& stream) const {
    return CudaStatus(LaunchDigest(data(), bytes_, element_bytes, 0, result, stream.get()),
                      "digesting");
  }

 private:
  DeviceBuffer buffer_;
  int64_t bytes_ = 0;
};

class Device final : public AttentionDevice {
 public:
  absl::Status Prepare() {
    H3RT_ASSIGN_OR_RETURN(stream_, Stream::Create());
    H3RT_ASSIGN_OR_RETURN(start_, Event::Create());
    H3RT_ASSIGN_OR_RETURN(stop_, Event::Create());
    return absl::OkStatus();
  }

  absl::Status Load(const ExactInputs& inputs) override {
    // What was there goes first: two canonical cases need not fit side by side.
    for (Slab* slab : {&q_, &k_, &v_, &o_, &lse_, &lse_raw_, &workspace_}) *slab = Slab();
    for (const auto& [slab, values] :
         {std::pair{&q_, &inputs.q}, {&k_, &inputs.k}, {&v_, &inputs.v}}) {
      H3RT_RETURN_IF_ERROR(slab->Create(static_cast<int64_t>(values->size() * 2), stream_));
      H3RT_RETURN_IF_ERROR(slab->Upload(std::as_bytes(std::span(*values)), stream_));
    }
    H3RT_ASSIGN_OR_RETURN(inputs_before_, InputDigests());
    return absl::OkStatus();
  }

  absl::StatusOr<AttentionRun> Run(ExactProblem problem, int64_t repeat,
                                   const CancelToken& cancel) override {
    H3RT_RETURN_IF_ERROR(Place(problem));
    const auto launch = [&] {
      return CudaStatus(LaunchSage2Public(problem, workspace_.data(), stream_.get()),
                        "launching sage2_public");
    };
    AttentionRun run;
    H3RT_RETURN_IF_ERROR(Poison(kFirstPoison));
    H3RT_RETURN_IF_ERROR(launch());
    H3RT_RETURN_IF_ERROR(Fetch(run.o, run.lse, run.lse_raw));
    H3RT_RETURN_IF_ERROR(workspace_.Download(run.workspace, stream_));
    H3RT_RETURN_IF_ERROR(Poison(kSecondPoison));
    H3RT_RETURN_IF_ERROR(launch());
    H3RT_RETURN_IF_ERROR(Fetch(run.o_again, run.lse_again, run.lse_raw_again));
    H3RT_RETURN_IF_ERROR(Repeat(launch, repeat, cancel, run));
    return Finish(std::move(run));
  }

  absl::StatusOr<std::vector<AttentionTimes>> Time(ExactProblem problem, int64_t quads,
                                                   const CancelToken& cancel) override {
    H3RT_RETURN_IF_ERROR(Place(problem));
    const ExactPrepared prepared = PreparedIn(problem, workspace_.data());
    CUstream_st* const stream = stream_.get();
    H3RT_RETURN_IF_ERROR(Poison(kFirstPoison));
    const auto all = [&] { return LaunchSage2Public(problem, workspace_.data(), stream); };
    H3RT_RETURN_IF_ERROR(CudaStatus(all(), "launching sage2_public"));
    H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> expected, OutputDigests());
    const std::pair<const char*, std::function<int()>> parts[] = {
        {"preparation", [&] { return LaunchExactPrepare(problem, prepared, stream); }},
        {"attention",
         [&] {
           return problem.path == ExactPath::kB
                      ? LaunchSage2PublicWgmma(problem, prepared, nullptr, stream)
                      : LaunchSage2PublicMma(problem, prepared, nullptr, stream);
         }},
        {"lse", [&] { return LaunchExactLse(problem, prepared, stream); }},
        {"all-in", all}};
    std::vector<AttentionTimes> times;
    for (const auto& [name, launch] : parts) {
      AttentionTimes one{name, {}};
      for (int i = 0; i < kWarmUps; ++i) H3RT_RETURN_IF_ERROR(Sample(name, launch).status());
      for (int64_t i = 0; i < 4 * quads; ++i) {
        if (cancel.cancelled()) return Cancelled("timing attention");
        H3RT_ASSIGN_OR_RETURN(const int64_t picoseconds, Sample(name, launch));
        one.picoseconds.push_back(picoseconds);
      }
      times.push_back(std::move(one));
    }
    H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> digests, OutputDigests());
    H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> inputs, InputDigests());
    if (digests != expected || inputs != inputs_before_) {
      return Internal({.what = "timed calls did not do their work",
                       .got = digests != expected ? "other outputs" : "changed inputs"});
    }
    return times;
  }

  absl::StatusOr<AttentionCapture> Capture(ExactProblem problem) override {
    H3RT_RETURN_IF_ERROR(Place(problem));
    Slab checkpoints;
    H3RT_RETURN_IF_ERROR(checkpoints.Create(CheckpointBytes(problem), stream_));
    H3RT_RETURN_IF_ERROR(checkpoints.Fill(kFirstPoison, stream_));
    H3RT_RETURN_IF_ERROR(Poison(kFirstPoison));
    const ExactPrepared prepared = PreparedIn(problem, workspace_.data());
    const ExactCheckpoints capture = CheckpointsIn(problem, checkpoints.data());
    H3RT_RETURN_IF_ERROR(
        CudaStatus(LaunchExactPrepare(problem, prepared, stream_.get()), "preparing"));
    H3RT_RETURN_IF_ERROR(CudaStatus(
        LaunchSage2PublicPrepared(problem, prepared, &capture, stream_.get()), "capturing"));
    AttentionCapture out;
    H3RT_RETURN_IF_ERROR(Fetch(out.run.o, out.run.lse, out.run.lse_raw));
    H3RT_RETURN_IF_ERROR(checkpoints.Download(out.memory, stream_));
    H3RT_RETURN_IF_ERROR(workspace_.Download(out.run.workspace, stream_));
    H3RT_ASSIGN_OR_RETURN(const int64_t faults, checkpoints.GuardFaults(stream_));
    H3RT_ASSIGN_OR_RETURN(out.run, Finish(std::move(out.run)));
    out.run.guard_faults += faults;
    return out;
  }

 private:
  // Buffers of the problem's outputs, kept from one path to the next where they fit.
  absl::Status Place(ExactProblem& problem) {
    const int64_t rows = problem.batch * problem.q_heads * problem.q_len;
    for (const auto& [slab, bytes] : {std::pair{&o_, rows * problem.head_dim * 2},
                                      {&lse_, rows * 4},
                                      {&lse_raw_, rows * 4},
                                      {&workspace_, WorkspaceBytes(problem)}}) {
      if (slab->bytes() == bytes) continue;
      *slab = Slab();
      H3RT_RETURN_IF_ERROR(slab->Create(bytes, stream_));
    }
    problem.q.data = q_.data();
    problem.k.data = k_.data();
    problem.v.data = v_.data();
    problem.o.data = o_.data();
    problem.lse = reinterpret_cast<float*>(lse_.data());
    problem.lse_raw = reinterpret_cast<float*>(lse_raw_.data());
    return absl::OkStatus();
  }

  absl::Status Poison(uint8_t byte) const {
    for (const Slab* slab : {&o_, &lse_, &lse_raw_, &workspace_}) {
      H3RT_RETURN_IF_ERROR(slab->Fill(byte, stream_));
    }
    return absl::OkStatus();
  }

  absl::Status Fetch(std::vector<uint16_t>& o, std::vector<float>& lse,
                     std::vector<float>& lse_raw) const {
    H3RT_RETURN_IF_ERROR(CudaStatus(WaitForDevice(), "running attention"));
    H3RT_RETURN_IF_ERROR(o_.Download(o, stream_));
    H3RT_RETURN_IF_ERROR(lse_.Download(lse, stream_));
    H3RT_RETURN_IF_ERROR(lse_raw_.Download(lse_raw, stream_));
    return stream_.Synchronize();
  }

  absl::Status DigestOutputsTo(uint64_t* result) const {
    H3RT_RETURN_IF_ERROR(o_.Digest(2, result, stream_));
    H3RT_RETURN_IF_ERROR(lse_.Digest(4, result + 2, stream_));
    return lse_raw_.Digest(4, result + 4, stream_);
  }

  absl::StatusOr<std::vector<uint64_t>> OutputDigests() const {
    H3RT_ASSIGN_OR_RETURN(const DigestBuffer buffer, DigestBuffer::Create(6, stream_));
    H3RT_RETURN_IF_ERROR(DigestOutputsTo(buffer.at(0)));
    return buffer.Read(stream_);
  }

  absl::StatusOr<std::vector<uint64_t>> InputDigests() const {
    H3RT_ASSIGN_OR_RETURN(const DigestBuffer buffer, DigestBuffer::Create(6, stream_));
    H3RT_RETURN_IF_ERROR(q_.Digest(2, buffer.at(0), stream_));
    H3RT_RETURN_IF_ERROR(k_.Digest(2, buffer.at(2), stream_));
    H3RT_RETURN_IF_ERROR(v_.Digest(2, buffer.at(4), stream_));
    return buffer.Read(stream_);
  }

  template <typename Launch>
  absl::Status Repeat(const Launch& launch, int64_t repeat, const CancelToken& cancel,
                      AttentionRun& run) {
    if (repeat <= 0) return absl::OkStatus();
    constexpr size_t kWords = 6;
    H3RT_ASSIGN_OR_RETURN(const DigestBuffer buffer,
                          DigestBuffer::Create(kWords * static_cast<size_t>(repeat), stream_));
    for (int64_t i = 0; i < repeat; ++i) {
      H3RT_RETURN_IF_ERROR(Poison(i % 2 == 0 ? kFirstPoison : kSecondPoison));
      H3RT_RETURN_IF_ERROR(launch());
      H3RT_RETURN_IF_ERROR(DigestOutputsTo(buffer.at(kWords * static_cast<size_t>(i))));
      if (i % kCancelEvery != kCancelEvery - 1) continue;
      H3RT_RETURN_IF_ERROR(stream_.Synchronize());
      if (cancel.cancelled()) return Cancelled("repeated launches");
    }
    H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> digests, buffer.Read(stream_));
    std::set<std::vector<uint64_t>> distinct;
    for (size_t i = 0; i < digests.size(); i += kWords) {
      distinct.insert({digests[i], digests[i + 2], digests[i + 4]});
    }
    run.launches = repeat;
    run.distinct_digests = static_cast<int64_t>(distinct.size());
    return absl::OkStatus();
  }

  absl::StatusOr<AttentionRun> Finish(AttentionRun run) const {
    H3RT_RETURN_IF_ERROR(CudaStatus(WaitForDevice(), "running attention"));
    for (const Slab* slab : {&q_, &k_, &v_, &o_, &lse_, &lse_raw_, &workspace_}) {
      H3RT_ASSIGN_OR_RETURN(const int64_t faults, slab->GuardFaults(stream_));
      run.guard_faults += faults;
    }
    H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> inputs, InputDigests());
    run.inputs_unchanged = inputs == inputs_before_;
    return run;
  }

  // One timed launch; the stream is busy until it is queued, so no gap of launching is timed.
  absl::StatusOr<int64_t> Sample(const char* name, const std::function<int()>& launch) {
    H3RT_RETURN_IF_ERROR(CudaStatus(LaunchSpin(kSpinNs, stream_.get()), "keeping the device busy"));
    H3RT_RETURN_IF_ERROR(start_.Record(stream_));
    H3RT_RETURN_IF_ERROR(CudaStatus(launch(), std::string("timing ") + name));
    H3RT_RETURN_IF_ERROR(stop_.Record(stream_));
    H3RT_RETURN_IF_ERROR(CudaStatus(WaitForDevice(), std::string("timing ") + name));
    H3RT_ASSIGN_OR_RETURN(const double ms, ElapsedMs(start_, stop_));
    return static_cast<int64_t>(ms * 1e9 + 0.5);
  }

  Stream stream_;
  Event start_, stop_;
  Slab q_, k_, v_, o_, lse_, lse_raw_, workspace_;
  std::vector<uint64_t> inputs_before_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AttentionDevice>> MakeAttentionDevice() {
  DeviceFacts facts = {};
  H3RT_RETURN_IF_ERROR(CudaStatus(AskDeviceFacts(&facts), "asking what the device is"));
  auto device = std::make_unique<Device>();
  H3RT_RETURN_IF_ERROR(device->Prepare());
  return std::unique_ptr<AttentionDevice>(std::move(device));
}

}  // namespace h3rt::lab
