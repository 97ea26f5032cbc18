// One call of exact attention, as plain pointers and 64-bit strides: what the device code, the
// oracle and the laboratory share. Pointers are device memory for CUDA, host memory for the host.
#pragma once

#include <cstdint>

#include "h3rt/kernels/attention/exact/contract.h"

namespace h3rt {

// A [batch, len, heads, head_dim] view of 16-bit floats, strides in elements, last stride 1. NHD,
// HND, and slices of a fused QKV buffer differ in strides only. Strides of extents below 2 are not
// used. Any alignment of 2 bytes.
struct ExactInput {
  const void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t row_stride = 0;
  int64_t head_stride = 0;
};
struct ExactOutput {
  void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t row_stride = 0;
  int64_t head_stride = 0;
};

struct ExactProblem {
  ExactPath path = ExactPath::kB;
  ExactGranularity granularity = ExactGranularity::kPerWarp;
  ExactType type = ExactType::kBf16;
  bool causal = false;   // key c is seen by row r when c <= r (top-left), whatever the lengths
  bool smooth_k = true;  // subtract the mean over keys of each (batch, head, channel) from K
  // A V channel of zeros only: false gives zeros, true the NaN that the public library gives.
  bool zero_v_nan = false;
  int64_t batch = 0;
  int64_t q_heads = 0;
  int64_t k_heads = 0;  // divides q_heads; head h of q reads head h / (q_heads / k_heads)
  int64_t q_len = 0;
  int64_t k_len = 0;      // 0: o is zeros, lse -inf
  int64_t head_dim = 0;   // 1..128; below 64 or 128 zero channels are added before all else
  float sm_scale = 0.0f;  // see DefaultSmScale
  ExactInput q;
  ExactInput k;
  ExactInput v;
  ExactOutput o;  // same type as q; only head_dim channels are written
  // The mean of K given, [batch, k_heads, head_dim] dense, instead of computed. Null: computed.
  const uint16_t* given_k_mean = nullptr;
  // Natural logarithm of the sum of exponentials, [batch, q_heads, q_len] dense, float32. lse_raw
  // is of the smoothed K; lse has the correction q . mean * sm_scale added. Null: not wanted.
  float* lse = nullptr;
  float* lse_raw = nullptr;

  H3RT_HOST_DEVICE int padded_dim() const { return exact::PaddedHeadDim(head_dim); }
};

// What preparation makes of q, k and v, dense, in this project's layout: sequences are padded with
// zero codes to exact::kRowPad rows, so that kernels read whole tiles without predicates. Nqp, Nkp
// = padded lengths, D = padded_dim().
struct ExactPrepared {
  int8_t* q8 = nullptr;        // [batch, q_heads, Nqp, D]
  int8_t* k8 = nullptr;        // [batch, k_heads, Nkp, D]
  uint8_t* v8 = nullptr;       // [batch, k_heads, D, Nkp] e4m3, tokens in permuted order
  float* q_scale = nullptr;    // [batch, q_heads, QScales]
  float* k_scale = nullptr;    // [batch, k_heads, KScales]
  float* v_scale = nullptr;    // [batch, k_heads, D]
  uint16_t* k_mean = nullptr;  // [batch, k_heads, D], of the type of k; zeros without smoothing
  float* partials = nullptr;   // scratch: [batch, k_heads, chunks, 2, D]: sums of K, |V| maxima
  // Linear index, over [batch, len, heads, head_dim] in that order, of the first element of q, k, v
  // that is NaN or infinite; kAllFinite where there is none.
  uint64_t* not_finite = nullptr;  // [3]
};
inline constexpr uint64_t kAllFinite = ~uint64_t{0};

// Elements of each buffer of ExactPrepared.
struct ExactPreparedSizes {
  int64_t q8 = 0;
  int64_t k8 = 0;
  int64_t v8 = 0;
  int64_t q_scale = 0;
  int64_t k_scale = 0;
  int64_t v_scale = 0;
  int64_t k_mean = 0;
  int64_t partials = 0;
  int64_t not_finite = 3;
};
ExactPreparedSizes PreparedSizes(const ExactProblem& problem);

// Bytes of one workspace that holds all of them, each on 256 bytes, and the buffers within it.
int64_t WorkspaceBytes(const ExactProblem& problem);
ExactPrepared PreparedIn(const ExactProblem& problem, void* workspace);

// Keys whose K sum and V maximum one chunk holds. The sum of a chunk, and the sum over chunks, have
// one order on every device (exact/mean_order.h): the mean is a fact of the inputs.
inline constexpr int64_t kMeanChunk = 256;

// head_dim^-0.5 in double, rounded to float32: of the dimension before padding.
float DefaultSmScale(int64_t head_dim);

}  // namespace h3rt
