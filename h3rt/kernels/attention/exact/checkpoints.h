// Every observable of the contract, as one kernel in capture mode or the oracle writes it. An
// observable whose pointer is null is not written. BH = batch * q_heads, Nq = q_len, Nk = k_len
// (neither padded: rows and keys beyond the lengths are not observables), E = epochs of the longest
// tile, F = steps an epoch (2 on A, 4 on B), D = padded head dimension. Elements of epochs that a
// causal tile does not visit are not written. Row-major.
#pragma once

#include <cstdint>

#include "h3rt/kernels/attention/exact/contract.h"

namespace h3rt {

struct ExactCheckpoints {
  int32_t* qk = nullptr;    // [BH, Nq, Nk] integer scores
  float* dq = nullptr;      // [BH, Nq, E, 4] q_scale * k_scale of lane class t
  float* s = nullptr;       // [BH, Nq, E, 4] what multiplies x in the exponent
  float* x = nullptr;       // [BH, Nq, Nk] after mask
  float* p = nullptr;       // [BH, Nq, Nk]
  uint8_t* p8 = nullptr;    // [BH, Nq, Nk] e4m3, keys in natural order
  float* m = nullptr;       // [BH, Nq, E] after the epoch
  float* a = nullptr;       // [BH, Nq, E] the rescale factor of the epoch
  float* d_lane = nullptr;  // [BH, Nq, E, 4] after the epoch
  float* u = nullptr;      // [BH, Nq, E, F, D] the inner sum after each step (A16: widened; A1: RO)
  float* ro = nullptr;     // [BH, Nq, E, D] after the epoch
  float* d = nullptr;      // [BH, Nq]
  float* r = nullptr;      // [BH, Nq]
  float* out32 = nullptr;  // [BH, Nq, D] before the last rounding
  float* lse2 = nullptr;   // [BH, Nq]
};

// Keys of one step of P V.
inline constexpr int kStepKeys = 32;

}  // namespace h3rt
