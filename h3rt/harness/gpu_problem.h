// The tensors of one workload in device memory. Only in builds with device code.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "h3rt/base/experiment.h"
#include "h3rt/cuda/device_buffer.h"
#include "h3rt/cuda/stream.h"
#include "h3rt/harness/inputs.h"
#include "h3rt/ledger/document.h"

namespace h3rt::lab {

inline constexpr int64_t kGuardBytes = 1 << 20;  // before and behind every tensor

class GpuProblem {
 public:
  // Allocates every tensor between guards and makes the inputs on the device. With `outputs_of` its
  // outputs are shared: the new problem has inputs of its own only. kResourceExhausted when it does
  // not fit.
  static absl::StatusOr<GpuProblem> Create(const Experiment& experiment,
                                           const ExperimentWorkload& workload, uint64_t seed,
                                           const Stream& stream,
                                           const GpuProblem* outputs_of = nullptr);

  size_t tensors() const { return tensors_.size(); }
  const ExperimentTensor& tensor(size_t i) const { return tensors_[i]; }
  bool is_output(size_t i) const { return tensors_[i].role == ExperimentTensor::Role::kOutput; }
  int64_t bytes(size_t i) const { return ElementsOf(tensors_[i]) * ElementBytes(tensors_[i].type); }
  int64_t input_bytes() const;
  int64_t device_bytes() const;  // what it allocated, guards included
  const std::vector<int64_t>& dims() const { return dims_; }

  // Each is asynchronous on the stream.
  absl::Status Poison(uint8_t byte, const Stream& stream) const;
  absl::Status Run(const ExperimentArm& arm, const Stream& stream) const;
  // One digest of all outputs is added to `result[2 * k]` and the elements that hold `poison` to
  // `result[2 * k + 1]`, k counting the outputs. `result` is device memory that holds zeros.
  absl::Status DigestOutputs(uint8_t poison, uint64_t* result, const Stream& stream) const;
  absl::Status DigestInputs(uint64_t* result, const Stream& stream) const;
  size_t outputs() const;

  // Waits, then gives the bytes of a tensor.
  absl::StatusOr<std::vector<std::byte>> Fetch(size_t i, const Stream& stream) const;
  // Bytes of the guards, of all tensors, that hold something else than before.
  absl::StatusOr<int64_t> GuardFaults(const Stream& stream) const;

 private:
  GpuProblem() = default;

  std::vector<ExperimentTensor> tensors_;
  std::vector<int64_t> dims_;
  std::vector<std::shared_ptr<DeviceBuffer>> slabs_;
  std::vector<std::byte*> pointers_;
};

// Digests in device memory, read back after the stream has passed.
class DigestBuffer {
 public:
  static absl::StatusOr<DigestBuffer> Create(size_t words, const Stream& stream);
  uint64_t* at(size_t word) const { return reinterpret_cast<uint64_t*>(buffer_.data()) + word; }
  absl::StatusOr<std::vector<uint64_t>> Read(const Stream& stream) const;

 private:
  DeviceBuffer buffer_;
};

}  // namespace h3rt::lab
