// Calls of the case table over copies of their memory on a device.
#include <algorithm>
#include <span>

#include "h3rt/cuda/device_buffer.h"
#include "h3rt/cuda/runtime_status.h"
#include "h3rt/cuda/stream.h"
#include "h3rt/harness/attention_corner.h"
#include "h3rt/harness/gpu_device.h"
#include "h3rt/harness/gpu_problem.h"
#include "h3rt/harness/inputs.h"
#include "h3rt/kernels/attention/oracle/compare.h"
#include "h3rt/kernels/attention/sage2_public/launch.h"

namespace h3rt::lab {
namespace {

// A copy of host memory between guards.
struct Copy {
  DeviceBuffer buffer;
  uint64_t bytes = 0;
  std::byte* data() const { return buffer.data() + kGuardBytes; }
};

absl::StatusOr<Copy> CopyOf(std::span<const std::byte> from, const Stream& stream) {
  Copy copy;
  copy.bytes = from.size();
  H3RT_ASSIGN_OR_RETURN(copy.buffer, DeviceBuffer::Create(from.size() + 2 * kGuardBytes));
  H3RT_RETURN_IF_ERROR(copy.buffer.Fill(kGuardByte, stream));
  H3RT_RETURN_IF_ERROR(copy.buffer.CopyFromHost(from, kGuardBytes, stream));
  H3RT_RETURN_IF_ERROR(stream.Synchronize());
  return copy;
}

// Fetches into `to` and adds the bytes of the guards that changed.
absl::Status Fetch(const Copy& copy, std::span<std::byte> to, int64_t& faults,
                   const Stream& stream) {
  std::vector<std::byte> guard(kGuardBytes);
  for (const uint64_t offset : {uint64_t{0}, kGuardBytes + copy.bytes}) {
    H3RT_RETURN_IF_ERROR(copy.buffer.CopyToHost(guard, offset, stream));
    H3RT_RETURN_IF_ERROR(stream.Synchronize());
    faults += static_cast<int64_t>(guard.size()) -
              std::count(guard.begin(), guard.end(), std::byte{kGuardByte});
  }
  H3RT_RETURN_IF_ERROR(copy.buffer.CopyToHost(to, kGuardBytes, stream));
  return stream.Synchronize();
}

}  // namespace

absl::StatusOr<PlacedRun> RunPlaced(const ExactHostCall& call, bool capture) {
  H3RT_ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  ExactProblem problem = call.problem;
  PlacedRun run;
  run.outputs = call.outputs;
  run.lse = call.lse;
  run.lse_raw = call.lse_raw;
  run.workspace.assign(static_cast<size_t>(WorkspaceBytes(problem)), std::byte{kFirstPoison});
  if (capture) {
    run.checkpoints.assign(static_cast<size_t>(CheckpointBytes(problem)), std::byte{kFirstPoison});
  }
  std::vector<uint16_t> inputs = call.inputs;
  const std::span<std::byte> hosts[] = {std::as_writable_bytes(std::span(inputs)),
                                        std::as_writable_bytes(std::span(run.outputs)),
                                        std::as_writable_bytes(std::span(run.lse)),
                                        std::as_writable_bytes(std::span(run.lse_raw)),
                                        std::span(run.workspace),
                                        std::span(run.checkpoints)};
  std::vector<Copy> copies;
  for (const std::span<std::byte> host : hosts) {
    H3RT_ASSIGN_OR_RETURN(Copy copy, CopyOf(host, stream));
    copies.push_back(std::move(copy));
  }
  const auto* const in = reinterpret_cast<const uint16_t*>(copies[0].data());
  problem.q.data = in + call.q_at;
  problem.k.data = in + call.k_at;
  problem.v.data = in + call.v_at;
  problem.o.data = reinterpret_cast<uint16_t*>(copies[1].data()) + call.o_at;
  problem.lse = reinterpret_cast<float*>(copies[2].data());
  problem.lse_raw = reinterpret_cast<float*>(copies[3].data());
  if (capture) {
    const ExactPrepared prepared = PreparedIn(problem, copies[4].data());
    const ExactCheckpoints checkpoints = CheckpointsIn(problem, copies[5].data());
    run.error = LaunchExactPrepare(problem, prepared, stream.get());
    if (run.error == 0) {
      run.error = LaunchSage2PublicPrepared(problem, prepared, &checkpoints, stream.get());
    }
  } else {
    run.error = LaunchSage2Public(problem, copies[4].data(), stream.get());
  }
  H3RT_RETURN_IF_ERROR(CudaStatus(WaitForDevice(), "running a corner case"));
  for (size_t i = 0; i < copies.size(); ++i) {
    H3RT_RETURN_IF_ERROR(Fetch(copies[i], hosts[i], run.guard_faults, stream));
  }
  run.inputs_unchanged = inputs == call.inputs;
  return run;
}

absl::StatusOr<std::string> RunLarge(const LargeCase& large, ExactPath path,
                                     ExactGranularity granularity) {
  constexpr int64_t kDim = 128;
  constexpr int64_t kKeys = 128;  // one block of keys for all: the last row costs as the first
  constexpr int64_t kRows = 128;  // of q at either end, a whole tile
  const int64_t begins[] = {0, large.rows / kRows * kRows - kRows};
  H3RT_ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  // q: rows of a fused buffer, made on the device; k and v: the last rows of the same buffer, so
  // that their offsets pass 2^31 elements too.
  const int64_t width = large.heads * kDim;
  const int64_t elements = large.rows * large.row_stride;
  H3RT_ASSIGN_OR_RETURN(const DeviceBuffer fused,
                        DeviceBuffer::Create(static_cast<uint64_t>(2 * elements)));
  const InputStream input{InputType::kBf16, InputFill::kNormal, 1.0f, InputState(4, 5)};
  H3RT_RETURN_IF_ERROR(CudaStatus(LaunchGenerate(input, fused.data(), elements, stream.get()),
                                  "making a large input"));
  const auto bytes = static_cast<uint64_t>(2 * large.rows * width);
  H3RT_ASSIGN_OR_RETURN(DeviceBuffer o, DeviceBuffer::Create(bytes));
  H3RT_RETURN_IF_ERROR(o.Fill(kFirstPoison, stream));
  ExactProblem p;
  p.path = path;
  p.granularity = granularity;
  p.batch = 1;
  p.q_len = large.rows;
  p.k_len = kKeys;
  p.q_heads = p.k_heads = large.heads;
  p.head_dim = kDim;
  p.sm_scale = DefaultSmScale(kDim);
  const auto* const base = reinterpret_cast<const uint16_t*>(fused.data());
  const uint16_t* const last = base + (large.rows - kKeys) * large.row_stride;
  const int64_t third = large.row_stride / 3;
  p.q = {base, elements, large.row_stride, kDim};
  p.k = {last + third, elements, large.row_stride, kDim};
  p.v = {last + 2 * third, elements, large.row_stride, kDim};
  p.o = {o.data(), large.rows * width, width, kDim};
  H3RT_ASSIGN_OR_RETURN(const DeviceBuffer workspace,
                        DeviceBuffer::Create(static_cast<uint64_t>(WorkspaceBytes(p))));
  H3RT_RETURN_IF_ERROR(
      CudaStatus(LaunchSage2Public(p, workspace.data(), stream.get()), "launching a large case"));
  for (const int64_t begin : begins) {
    // The same rows alone. Tiles of q do not see each other, and `begin` is a multiple of a tile.
    ExactProblem small = p;
    small.q_len = begin == 0 ? kRows : large.rows - begin;
    small.q.data = base + begin * large.row_stride;
    const auto part = static_cast<size_t>(small.q_len * width);
    H3RT_ASSIGN_OR_RETURN(DeviceBuffer alone, DeviceBuffer::Create(2 * part));
    H3RT_RETURN_IF_ERROR(alone.Fill(kSecondPoison, stream));
    small.o = {alone.data(), small.q_len * width, width, kDim};
    H3RT_RETURN_IF_ERROR(CudaStatus(LaunchSage2Public(small, workspace.data(), stream.get()),
                                    "launching the same rows alone"));
    std::vector<uint16_t> got(part), wanted(part);
    H3RT_RETURN_IF_ERROR(o.CopyToHost(std::as_writable_bytes(std::span(got)),
                                      static_cast<uint64_t>(2 * begin * width), stream));
    H3RT_RETURN_IF_ERROR(alone.CopyToHost(std::as_writable_bytes(std::span(wanted)), 0, stream));
    H3RT_RETURN_IF_ERROR(stream.Synchronize());
    for (size_t i = 0; i < part; ++i) {
      if (got[i] == wanted[i]) continue;
      return "row " + std::to_string(begin + static_cast<int64_t>(i) / width) + ", element " +
             std::to_string(static_cast<int64_t>(i) % width) + " differs";
    }
  }
  return std::string();
}

}  // namespace h3rt::lab
