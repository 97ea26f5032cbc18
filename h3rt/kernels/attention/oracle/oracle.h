// The contract on the host, operation by operation: strict float32 with subnormals flushed and real
// fused multiply-adds, whatever the flags and the processor. Slow and plain; the judge.
#pragma once

#include <cstdint>

#include "h3rt/base/status.h"
#include "h3rt/kernels/attention/exact/checkpoints.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt {

// How the three approximations of a GPU's special-function unit and its tensor cores are stood in
// for. Every function may be null: then the correctly rounded value (rcp, ex2, lg2; subnormals
// flushed).
struct OracleHardware {
  float (*rcp)(float) = nullptr;
  float (*ex2)(float) = nullptr;
  float (*lg2)(float) = nullptr;
};

// Fills `prepared` (host memory, sized by PreparedSizes) from problem.q, k, v in host memory: what
// LaunchExactPrepare fills, with the same bytes wherever hardware.rcp gives the device's bits.
absl::Status OraclePrepare(const ExactProblem& problem, const OracleHardware& hardware,
                           const ExactPrepared& prepared);

// Attention from prepared buffers, every observable of `out` that is not null, and problem.o, lse,
// lse_raw. `captured` holds what a device wrote for the same problem (null pointers: not captured):
// p and a replace ex2, u the tensor cores' sums, r the reciprocal, lse2 the logarithm, so that all
// that follows from them is compared exactly. Without u the sums are float64, rounded to the
// accumulator's type after each step: close to, not equal to, any tensor core.
absl::Status OracleAttention(const ExactProblem& problem, const ExactPrepared& prepared,
                             const OracleHardware& hardware, const ExactCheckpoints* captured,
                             const ExactCheckpoints& out);

// softmax(sm_scale * q k^T) v in float64 from the unquantised inputs, [batch, q_len, q_heads,
// head_dim] dense, with lse [batch, q_heads, q_len]; either may be null. Causal as the contract.
// Rows q_begin to q_end of the queries only, others untouched.
absl::Status Float64Attention(const ExactProblem& problem, int64_t q_begin, int64_t q_end,
                              double* o, double* lse);

}  // namespace h3rt
