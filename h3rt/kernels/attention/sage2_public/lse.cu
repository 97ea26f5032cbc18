#include <cuda_runtime.h>

#include "h3rt/kernels/attention/sage2_public/launch.h"
#include "h3rt/kernels/attention/sage2_public/lse_kernel.cuh"

namespace h3rt {
namespace {

constexpr unsigned kThreads = static_cast<unsigned>(exact::kRowPad);

}  // namespace

int LaunchExactLse(const ExactProblem& problem, const ExactPrepared& prepared,
                   CUstream_st* stream) {
  if (!exact::ExactTakes(problem)) return cudaErrorInvalidValue;
  if (problem.lse == nullptr) return cudaSuccess;
  ExactLseArguments a = {};
  a.q = exact::ViewOf(problem.q, problem.batch, problem.q_len, problem.q_heads, problem.head_dim);
  const bool corrected = problem.smooth_k && problem.k_len > 0;  // without keys -inf is final
  a.k_mean = corrected ? prepared.k_mean : nullptr;
  a.raw = problem.lse_raw != nullptr ? problem.lse_raw : problem.lse;
  a.lse = problem.lse;
  a.blocks = exact::CeilDiv(problem.q_len, exact::kRowPad);
  a.items = problem.batch * a.blocks * problem.q_heads;
  a.sm_scale = problem.sm_scale;
  a.type = problem.type;
  a.dim = problem.padded_dim();
  if (a.items == 0) return cudaSuccess;
  if (corrected && a.k_mean == nullptr) return cudaErrorInvalidValue;
  if (!corrected && a.raw == a.lse) return cudaSuccess;
  a.group = problem.q_heads / problem.k_heads;
  exact_lse_kernel<<<exact::FlatGrid(a.items), kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

int LaunchExactEmpty(const ExactProblem& problem, CUstream_st* stream) {
  if (!exact::ExactTakes(problem)) return cudaErrorInvalidValue;
  ExactEmptyArguments a = {};
  a.o = static_cast<uint16_t*>(problem.o.data);
  a.batch_stride = problem.batch < 2 ? 0 : problem.o.batch_stride;
  a.row_stride = problem.q_len < 2 ? 0 : problem.o.row_stride;
  a.head_stride = problem.q_heads < 2 ? 0 : problem.o.head_stride;
  a.lse = problem.lse;
  a.lse_raw = problem.lse_raw;
  a.len = problem.q_len;
  a.heads = problem.q_heads;
  a.blocks = exact::CeilDiv(problem.q_len, exact::kRowPad);
  a.items = problem.batch * a.blocks * problem.q_heads;
  a.head_dim = static_cast<int>(problem.head_dim);
  if (a.items == 0) return cudaSuccess;
  exact_empty_kernel<<<exact::FlatGrid(a.items), kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace h3rt
