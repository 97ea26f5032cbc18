// The inputs of experiments, made on the host, and the comparison of outputs. Needs no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "h3rt/base/experiment.h"
#include "h3rt/base/status.h"
#include "h3rt/harness/generator.h"
#include "h3rt/ledger/document.h"

namespace h3rt::lab {

// What guards hold, and outputs before the first and the second run.
inline constexpr uint8_t kGuardByte = 0xa5;
inline constexpr uint8_t kFirstPoison = 0xff;
inline constexpr uint8_t kSecondPoison = 0x5a;

int64_t ElementsOf(const ExperimentTensor& tensor);
int ElementBytes(ExperimentTensor::Type type);
const char* NameOf(ExperimentTensor::Type type);
const char* NameOf(ExperimentWorkload::Level level);

// Stream of tensor number `index` of a workload.
InputStream StreamOf(const ExperimentTensor& tensor, size_t index, uint64_t seed);
// Fills an input by splitmix64/1 (generator.h). `to` holds exactly the tensor. In parallel; the
// bytes do not depend on the number of threads.
void GenerateInput(const ExperimentTensor& tensor, size_t index, uint64_t seed,
                   std::span<std::byte> to);

// Two runs of a candidate over outputs that were poisoned differently before, against what was
// expected. Ratios are infinite where a value is not finite on one side only.
struct OutputNumbers {
  int64_t elements = 0;
  int64_t mismatches = 0;  // other bits than expected, or other bits in the second run
  int64_t first_index = -1;
  uint64_t first_actual_bits = 0, first_expected_bits = 0;
  double max_abs = 0;
  double rel_l2 = 0;
  int64_t max_ulp = 0;  // INT64_MAX where not finite on one side
  int64_t nan_actual = 0, nan_expected = 0;
  int64_t unwritten = 0;  // each run left its own poison
};
OutputNumbers CompareOutputs(ExperimentTensor::Type type, std::span<const std::byte> actual,
                             std::span<const std::byte> again, std::span<const std::byte> expected,
                             uint8_t first_poison, uint8_t second_poison);

// One of the `cases` of a parity body.
Doc ParityCase(const ExperimentWorkload& workload, const char* checkpoint,
               const OutputNumbers& numbers, int64_t guard_faults, bool inputs_unchanged);
// The body, with what ComparatorSelfTest() saw as "comparator_selftest". kInternal when that missed
// a planted difference.
absl::StatusOr<Doc> ParityBody(const ExperimentCheck& check, const Doc& cases, const Doc& repeat);

// Plants a flipped bit, a NaN, an unwritten element and a value that differs between runs in
// outputs of every type, and looks whether CompareOutputs sees each: {"flipped_bit", "nan",
// "unwritten", "unstable"}, all true when it can be trusted.
Doc ComparatorSelfTest();

}  // namespace h3rt::lab
