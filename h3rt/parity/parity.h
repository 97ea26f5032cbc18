// Comparison of this program with tensors of the public implementation: everything that a fixture
// folder of the form in tests/data/README.md holds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/json.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/shape.h"

namespace h3rt {

enum class ParityMetric {
  kBits,        // mismatching elements; the bound is 0
  kRelativeL2,  // |x - ref| / |ref|
  kMaxAbs,      // largest |x - ref|
};
const char* NameOf(ParityMetric metric);

struct ParityRow {
  std::string folder;  // relative to the folder that was asked for; empty: that folder itself
  std::string name;    // "transformer_f32.block_0.attn"
  std::string shape;
  ParityMetric metric = ParityMetric::kBits;
  double value = 0;
  double bound = 0;
  int64_t worst_index = -1;  // flat index of the largest deviation; -1: none
  bool ok = false;
  std::string note;  // why it is not ok, where numbers do not say
};

struct ParityReport {
  std::vector<ParityRow> rows;
  std::vector<std::string> absent;  // files and tensors of the form that are not there
  int64_t failures() const;
  Json ToJson() const;
};

// One line of text for a row.
std::string FormatRow(const ParityRow& row);

// Runs everything that `dir` (one model folder, or the folder above with rng.safetensors,
// formats.safetensors and model folders) holds. Missing files and tensors are listed, not failures;
// a file of which nothing was compared is a failure, one that cannot be read an error. `on_row`
// sees each row as it is made.
absl::StatusOr<ParityReport> RunParity(const std::string& dir, const ExecContext& context,
                                       const std::function<void(const ParityRow&)>& on_row = {});

}  // namespace h3rt
