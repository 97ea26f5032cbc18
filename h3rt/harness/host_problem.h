// The tensors of one workload in host memory, for experiments whose arms run on the host.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "h3rt/base/experiment.h"
#include "h3rt/base/status.h"
#include "h3rt/harness/inputs.h"

namespace h3rt::lab {

class HostProblem {
 public:
  static constexpr size_t kGuard = 4096;  // before and behind every tensor, at least

  // Every tensor lies between guards, on 64 bytes. With `outputs_of` its outputs are shared: the
  // new problem has inputs of its own only.
  HostProblem(const Experiment& experiment, const ExperimentWorkload& workload, uint64_t seed,
              const HostProblem* outputs_of = nullptr)
      : tensors_(experiment.tensors(workload.dims)), dims_(workload.dims) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (outputs_of != nullptr && is_output(i)) {
        slabs_.push_back(outputs_of->slabs_[i]);
        pointers_.push_back(outputs_of->pointers_[i]);
        continue;
      }
      auto slab = std::make_shared<std::vector<std::byte>>(bytes(i) + 2 * kGuard + 64,
                                                           std::byte{kGuardByte});
      const auto address = reinterpret_cast<uintptr_t>(slab->data()) + kGuard;
      pointers_.push_back(slab->data() + kGuard + (64 - address % 64) % 64);
      slabs_.push_back(std::move(slab));
      if (!is_output(i)) GenerateInput(tensors_[i], i, seed, At(i));
    }
  }

  size_t tensors() const { return tensors_.size(); }
  const ExperimentTensor& tensor(size_t i) const { return tensors_[i]; }
  bool is_output(size_t i) const { return tensors_[i].role == ExperimentTensor::Role::kOutput; }
  size_t bytes(size_t i) const {
    return static_cast<size_t>(ElementsOf(tensors_[i]) * ElementBytes(tensors_[i].type));
  }
  int64_t input_bytes() const {
    size_t total = 0;
    for (size_t i = 0; i < tensors(); ++i) total += is_output(i) ? 0 : bytes(i);
    return static_cast<int64_t>(total);
  }
  std::span<std::byte> At(size_t i) const { return {pointers_[i], bytes(i)}; }
  // What a host reference or an arm gets.
  ArmCall Call() const { return {pointers_, dims_, nullptr}; }

  void Poison(uint8_t byte) const {
    for (size_t i = 0; i < tensors(); ++i) {
      if (is_output(i)) std::memset(pointers_[i], byte, bytes(i));
    }
  }
  absl::Status Run(const ExperimentArm& arm) const {
    const int error = arm.run(Call());
    if (error == 0) return absl::OkStatus();
    return Internal({.what = "a host arm failed", .got = std::to_string(error), .where = arm.vid});
  }
  // One digest (generator.h) of each output, or of each input.
  std::vector<uint64_t> Digests(bool outputs) const {
    std::vector<uint64_t> digests;
    for (size_t i = 0; i < tensors(); ++i) {
      if (is_output(i) != outputs) continue;
      uint64_t sum = 0;
      for (size_t at = 0; at < bytes(i); at += 8) {
        uint64_t word = 0;
        std::memcpy(&word, pointers_[i] + at, std::min<size_t>(8, bytes(i) - at));
        sum += DigestTerm(word, at / 8);
      }
      digests.push_back(sum);
    }
    return digests;
  }
  // Elements of outputs all of whose bytes are `poison`.
  int64_t PoisonLeft(uint8_t poison) const {
    int64_t left = 0;
    for (size_t i = 0; i < tensors(); ++i) {
      const auto each = static_cast<size_t>(ElementBytes(tensors_[i].type));
      for (size_t at = 0; is_output(i) && at < bytes(i); at += each) {
        const std::byte* const element = pointers_[i] + at;
        left += std::all_of(element, element + each,
                            [&](std::byte held) { return held == std::byte{poison}; });
      }
    }
    return left;
  }
  // Bytes of the guards, of all tensors, that hold something else than before.
  int64_t GuardFaults() const {
    int64_t faults = 0;
    for (size_t i = 0; i < tensors(); ++i) {
      const std::byte* const begin = slabs_[i]->data();
      const auto intact =
          std::count(begin, static_cast<const std::byte*>(pointers_[i]), std::byte{kGuardByte}) +
          std::count(static_cast<const std::byte*>(pointers_[i] + bytes(i)),
                     begin + slabs_[i]->size(), std::byte{kGuardByte});
      faults += static_cast<int64_t>(slabs_[i]->size() - bytes(i)) - intact;
    }
    return faults;
  }

 private:
  std::vector<ExperimentTensor> tensors_;
  std::vector<int64_t> dims_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> slabs_;
  std::vector<std::byte*> pointers_;
};

}  // namespace h3rt::lab
