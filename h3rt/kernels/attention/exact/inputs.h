// The inputs of the golden cases: integers only, so that every language makes the same bits.
// Source: tests/data/README.md.
#pragma once

#include <cstdint>
#include <vector>

#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt {

struct ExactInputSpec {
  int64_t batch = 1;
  int64_t q_len = 0;
  int64_t k_len = 0;
  int64_t q_heads = 1;
  int64_t k_heads = 1;
  int64_t head_dim = 128;
  ExactType type = ExactType::kBf16;
  uint64_t seed = 0;
  double bias = 3.0;  // of all keys of a (batch, head, channel): what smoothing takes out
  bool flat = false;  // q times 1/16
};
struct ExactInputs {
  std::vector<uint16_t> q;  // [batch, q_len, q_heads, head_dim] dense
  std::vector<uint16_t> k;  // [batch, k_len, k_heads, head_dim]
  std::vector<uint16_t> v;
};
// On up to `threads` threads; the bits do not depend on their number.
ExactInputs MakeExactInputs(const ExactInputSpec& spec, int threads = 1);

// A problem of these extents over dense [batch, len, heads, head_dim] tensors, with the default
// scale. Pointers are null.
ExactProblem DenseProblem(const ExactInputSpec& spec, ExactPath path, ExactGranularity granularity);

}  // namespace h3rt
