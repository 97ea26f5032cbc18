// What the attention kernels of this folder get: plain numbers, made by the launcher.
#pragma once

#include <cstdint>

#include "h3rt/kernels/attention/exact/checkpoints.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt {

struct Sage2Arguments {
  ExactPrepared prepared;
  ExactOutput o;
  float* lse = nullptr;
  float* lse_raw = nullptr;
  int64_t q_len = 0;
  int64_t k_len = 0;
  int64_t q_rows = 0;  // of a (batch, head) of the prepared buffers
  int64_t k_rows = 0;
  int64_t q_heads = 0;
  int64_t group = 0;     // query heads that share a key head
  int64_t tiles = 0;     // query tiles a (batch, head)
  int64_t q_scales = 0;  // scales a (batch, head)
  int64_t k_scales = 0;
  int q_lanes = 0;  // scales a warp's rows have: 1, or 8 (per_thread)
  int k_lanes = 0;  // scales a key block has: 1, or 4
  int head_dim = 0;
  float sm_scale = 0;
  bool causal = false;
  bool f16 = false;
  bool pairs = false;  // o takes 4-byte stores
  ExactCheckpoints capture;
  int64_t epochs = 0;  // of the longest tile: a dimension of the checkpoints
};

// k heads are q heads of the same batch divided: (batch, k head) of (batch, q head).
H3RT_HOST_DEVICE constexpr int64_t KHeadOf(int64_t head, int64_t q_heads, int64_t group) {
  return head / q_heads * (q_heads / group) + head % q_heads / group;
}

// 4-byte stores of two neighbouring channels need an even pointer, even strides and no odd channel.
inline bool StoresPairs(const ExactProblem& problem) {
  const auto address = reinterpret_cast<uint64_t>(problem.o.data);
  const auto odd = [](int64_t extent, int64_t stride) { return extent > 1 && stride % 2 != 0; };
  return address % 4 == 0 && problem.head_dim % 2 == 0 &&
         !odd(problem.batch, problem.o.batch_stride) && !odd(problem.q_len, problem.o.row_stride) &&
         !odd(problem.q_heads, problem.o.head_stride);
}

inline Sage2Arguments ArgumentsOf(const ExactProblem& problem, const ExactPrepared& prepared,
                                  const ExactCheckpoints* capture) {
  const exact::Geometry g = exact::GeometryOf(problem.path);
  const bool per_thread = problem.granularity == ExactGranularity::kPerThread;
  Sage2Arguments a;
  a.prepared = prepared;
  a.o = problem.o;
  a.lse = problem.lse;
  a.lse_raw = problem.lse_raw;
  a.q_len = problem.q_len;
  a.k_len = problem.k_len;
  a.q_rows = exact::RoundUp(problem.q_len, exact::kRowPad);
  a.k_rows = exact::RoundUp(problem.k_len, exact::kRowPad);
  a.q_heads = problem.q_heads;
  a.group = problem.q_heads / problem.k_heads;
  a.tiles = exact::CeilDiv(problem.q_len, g.cta_q);
  a.q_scales = exact::QScales(g, problem.granularity, problem.q_len);
  a.k_scales = exact::KScales(g, problem.granularity, problem.k_len);
  a.q_lanes = per_thread ? 8 : 1;
  a.k_lanes = per_thread ? 4 : 1;
  a.head_dim = static_cast<int>(problem.head_dim);
  a.sm_scale = problem.sm_scale;
  a.causal = problem.causal;
  a.f16 = problem.type == ExactType::kF16;
  a.pairs = StoresPairs(problem);
  if (capture != nullptr) a.capture = *capture;
  a.epochs = exact::Epochs(g, a.tiles - 1, problem.k_len, problem.causal);
  return a;
}

// What both launchers refuse. The host's full check is CheckExactProblem.
inline bool Sage2Takes(const ExactProblem& problem) {
  return problem.padded_dim() != 0 && problem.batch > 0 && problem.q_heads > 0 &&
         problem.k_heads > 0 && problem.q_heads % problem.k_heads == 0 && problem.q_len > 0 &&
         problem.k_len > 0;
}

}  // namespace h3rt
