#include "h3rt/harness/gpu_problem.h"

#include <algorithm>
#include <string>

#include "h3rt/cuda/runtime_status.h"
#include "h3rt/harness/gpu_device.h"

namespace h3rt::lab {

absl::StatusOr<GpuProblem> GpuProblem::Create(const Experiment& experiment,
                                              const ExperimentWorkload& workload, uint64_t seed,
                                              const Stream& stream, const GpuProblem* outputs_of) {
  GpuProblem problem;
  problem.tensors_ = experiment.tensors(workload.dims);
  problem.dims_ = workload.dims;
  for (size_t i = 0; i < problem.tensors_.size(); ++i) {
    if (outputs_of != nullptr && problem.is_output(i)) {
      problem.slabs_.push_back(outputs_of->slabs_[i]);
      problem.pointers_.push_back(outputs_of->pointers_[i]);
      continue;
    }
    const auto total = static_cast<uint64_t>(problem.bytes(i) + 2 * kGuardBytes);
    H3RT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::Create(total));
    H3RT_RETURN_IF_ERROR(buffer.Fill(kGuardByte, stream));
    std::byte* const data = buffer.data() + kGuardBytes;
    if (!problem.is_output(i)) {
      H3RT_RETURN_IF_ERROR(CudaStatus(LaunchGenerate(StreamOf(problem.tensors_[i], i, seed), data,
                                                     ElementsOf(problem.tensors_[i]), stream.get()),
                                      "making inputs"));
    }
    problem.slabs_.push_back(std::make_shared<DeviceBuffer>(std::move(buffer)));
    problem.pointers_.push_back(data);
  }
  return problem;
}

int64_t GpuProblem::input_bytes() const {
  int64_t total = 0;
  for (size_t i = 0; i < tensors(); ++i) total += is_output(i) ? 0 : bytes(i);
  return total;
}

int64_t GpuProblem::device_bytes() const {
  int64_t total = 0;
  for (size_t i = 0; i < tensors(); ++i) total += bytes(i) + 2 * kGuardBytes;
  return total;
}

size_t GpuProblem::outputs() const {
  size_t count = 0;
  for (size_t i = 0; i < tensors(); ++i) count += is_output(i) ? 1 : 0;
  return count;
}

absl::Status GpuProblem::Poison(uint8_t byte, const Stream& stream) const {
  for (size_t i = 0; i < tensors(); ++i) {
    if (!is_output(i)) continue;
    H3RT_RETURN_IF_ERROR(
        CudaStatus(FillOnDevice(pointers_[i], byte, bytes(i), stream.get()), "poisoning outputs"));
  }
  return absl::OkStatus();
}

absl::Status GpuProblem::Run(const ExperimentArm& arm, const Stream& stream) const {
  return CudaStatus(arm.run({pointers_, dims_, stream.get()}), "launching " + std::string(arm.vid));
}

absl::Status GpuProblem::DigestOutputs(uint8_t poison, uint64_t* result,
                                       const Stream& stream) const {
  for (size_t i = 0; i < tensors(); ++i) {
    if (!is_output(i)) continue;
    H3RT_RETURN_IF_ERROR(
        CudaStatus(LaunchDigest(pointers_[i], bytes(i), ElementBytes(tensors_[i].type), poison,
                                result, stream.get()),
                   "digesting outputs"));
    result += 2;
  }
  return absl::OkStatus();
}

absl::Status GpuProblem::DigestInputs(uint64_t* result, const Stream& stream) const {
  for (size_t i = 0; i < tensors(); ++i) {
    if (is_output(i)) continue;
    H3RT_RETURN_IF_ERROR(
        CudaStatus(LaunchDigest(pointers_[i], bytes(i), ElementBytes(tensors_[i].type), 0, result,
                                stream.get()),
                   "digesting inputs"));
    result += 2;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> GpuProblem::Fetch(size_t i, const Stream& stream) const {
  std::vector<std::byte> held(static_cast<size_t>(bytes(i)));
  H3RT_RETURN_IF_ERROR(slabs_[i]->CopyToHost(held, kGuardBytes, stream));
  H3RT_RETURN_IF_ERROR(stream.Synchronize());
  return held;
}

absl::StatusOr<int64_t> GpuProblem::GuardFaults(const Stream& stream) const {
  std::vector<std::byte> guard(kGuardBytes);
  int64_t faults = 0;
  for (size_t i = 0; i < tensors(); ++i) {
    for (const int64_t offset : {int64_t{0}, kGuardBytes + bytes(i)}) {
      H3RT_RETURN_IF_ERROR(slabs_[i]->CopyToHost(guard, static_cast<uint64_t>(offset), stream));
      H3RT_RETURN_IF_ERROR(stream.Synchronize());
      faults += static_cast<int64_t>(guard.size()) -
                std::count(guard.begin(), guard.end(), std::byte{kGuardByte});
    }
  }
  return faults;
}

absl::StatusOr<DigestBuffer> DigestBuffer::Create(size_t words, const Stream& stream) {
  DigestBuffer digests;
  H3RT_ASSIGN_OR_RETURN(digests.buffer_, DeviceBuffer::Create(words * sizeof(uint64_t)));
  H3RT_RETURN_IF_ERROR(digests.buffer_.Fill(0, stream));
  return digests;
}

absl::StatusOr<std::vector<uint64_t>> DigestBuffer::Read(const Stream& stream) const {
  std::vector<uint64_t> words(buffer_.bytes() / sizeof(uint64_t));
  H3RT_RETURN_IF_ERROR(buffer_.CopyToHost(std::as_writable_bytes(std::span(words)), 0, stream));
  H3RT_RETURN_IF_ERROR(stream.Synchronize());
  return words;
}

}  // namespace h3rt::lab
