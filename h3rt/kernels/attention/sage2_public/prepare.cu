#include <cuda_runtime.h>

#include "h3rt/kernels/attention/sage2_public/launch.h"
#include "h3rt/kernels/attention/sage2_public/quantise.cuh"

namespace h3rt {
namespace {

int OctetBits(int dim) { return dim == 64 ? 3 : 4; }
unsigned Threads(int dim) { return static_cast<unsigned>(exact::PrepareThreads(dim)); }

int LaunchStats(const ExactProblem& p, const ExactPrepared& out, CUstream_st* stream) {
  ExactStatsArguments a = {};
  a.k = exact::ViewOf(p.k, p.batch, p.k_len, p.k_heads, p.head_dim);
  a.v = exact::ViewOf(p.v, p.batch, p.k_len, p.k_heads, p.head_dim);
  a.partials = out.partials;
  a.chunks = exact::CeilDiv(p.k_len, kMeanChunk);
  const int64_t items = 2 * p.batch * a.chunks * p.k_heads;
  a.dim = p.padded_dim();
  a.octet_bits = OctetBits(a.dim);
  a.sums = p.smooth_k && p.given_k_mean == nullptr;
  if (items == 0) return cudaSuccess;
  if (!exact::OneGrid(items)) return cudaErrorInvalidValue;
  const auto grid = static_cast<unsigned>(items);
  if (p.type == ExactType::kBf16) {
    exact_stats_kernel<ExactType::kBf16><<<grid, Threads(a.dim), 0, stream>>>(a);
  } else {
    exact_stats_kernel<ExactType::kF16><<<grid, Threads(a.dim), 0, stream>>>(a);
  }
  return cudaGetLastError();
}

int LaunchReduce(const ExactProblem& p, const ExactPrepared& out, CUstream_st* stream) {
  ExactReduceArguments a = {};
  a.partials = out.partials;
  a.given = p.given_k_mean;
  a.k_mean = out.k_mean;
  a.v_scale = out.v_scale;
  a.not_finite = out.not_finite;
  a.heads = p.batch * p.k_heads;
  a.chunks = exact::CeilDiv(p.k_len, kMeanChunk);
  a.over_len = p.k_len == 0 ? 0.0f : static_cast<float>(1.0 / static_cast<double>(p.k_len));
  a.v_max = exact::GeometryOf(p.path).v_max;
  a.type = p.type;
  a.dim = p.padded_dim();
  a.head_dim = static_cast<int>(p.head_dim);
  a.smooth = p.smooth_k;
  const unsigned grid = a.heads == 0 ? 1u : exact::FlatGrid(a.heads);  // not_finite, at least
  exact_reduce_kernel<<<grid, Threads(a.dim), 0, stream>>>(a);
  return cudaGetLastError();
}

template <ExactType kType>
void LaunchRows(const ExactQuantiseArguments& a, unsigned grid, bool rounded, CUstream_st* stream) {
  if (rounded) {
    exact_quantise_kernel<kType, true><<<grid, Threads(a.dim), 0, stream>>>(a);
  } else {
    exact_quantise_kernel<kType, false><<<grid, Threads(a.dim), 0, stream>>>(a);
  }
}

int LaunchQuantise(const ExactProblem& p, const ExactPrepared& out, bool is_k,
                   CUstream_st* stream) {
  const exact::Geometry g = exact::GeometryOf(p.path);
  const int64_t len = is_k ? p.k_len : p.q_len;
  const int64_t heads = is_k ? p.k_heads : p.q_heads;
  ExactQuantiseArguments a = {};
  a.rows = exact::ViewOf(is_k ? p.k : p.q, p.batch, len, heads, p.head_dim);
  a.mean = is_k && p.smooth_k ? out.k_mean : nullptr;
  a.codes = is_k ? out.k8 : out.q8;
  a.scales = is_k ? out.k_scale : out.q_scale;
  a.not_finite = out.not_finite + (is_k ? 1 : 0);
  a.blocks = exact::CeilDiv(len, exact::kRowPad);
  const int64_t items = p.batch * a.blocks * heads;
  a.scales_a_head =
      is_k ? exact::KScales(g, p.granularity, len) : exact::QScales(g, p.granularity, len);
  a.group = exact::GroupShapeOf(g, p.granularity, is_k, len);
  a.dim = p.padded_dim();
  a.octet_bits = OctetBits(a.dim);
  if (items == 0) return cudaSuccess;
  if (!exact::OneGrid(items)) return cudaErrorInvalidValue;
  const auto grid = static_cast<unsigned>(items);
  const bool rounded = p.granularity == ExactGranularity::kPerThread;
  if (p.type == ExactType::kBf16) {
    LaunchRows<ExactType::kBf16>(a, grid, rounded, stream);
  } else {
    LaunchRows<ExactType::kF16>(a, grid, rounded, stream);
  }
  return cudaGetLastError();
}

int LaunchQuantiseV(const ExactProblem& p, const ExactPrepared& out, CUstream_st* stream) {
  const exact::Geometry g = exact::GeometryOf(p.path);
  ExactVArguments a = {};
  a.v = exact::ViewOf(p.v, p.batch, p.k_len, p.k_heads, p.head_dim);
  a.v_scale = out.v_scale;
  a.partials = out.partials;
  a.codes = out.v8;
  a.not_finite = out.not_finite + 2;
  a.blocks = exact::CeilDiv(p.k_len, exact::kRowPad);
  a.chunks = exact::CeilDiv(p.k_len, kMeanChunk);
  const int64_t items = p.batch * a.blocks * p.k_heads;
  a.contract_rows = exact::RoundUp(p.k_len, g.v_pad);
  a.v_max = g.v_max;
  a.dim = p.padded_dim();
  a.zero_nan = p.zero_v_nan;
  if (items == 0) return cudaSuccess;
  if (!exact::OneGrid(items)) return cudaErrorInvalidValue;
  const auto grid = static_cast<unsigned>(items);
  if (p.type == ExactType::kBf16) {
    exact_quantise_v_kernel<ExactType::kBf16><<<grid, Threads(a.dim), 0, stream>>>(a);
  } else {
    exact_quantise_v_kernel<ExactType::kF16><<<grid, Threads(a.dim), 0, stream>>>(a);
  }
  return cudaGetLastError();
}

}  // namespace

int LaunchExactPrepare(const ExactProblem& problem, const ExactPrepared& prepared,
                       CUstream_st* stream) {
  if (!exact::ExactTakes(problem) || prepared.not_finite == nullptr) return cudaErrorInvalidValue;
  int error = LaunchStats(problem, prepared, stream);
  if (error == cudaSuccess) error = LaunchReduce(problem, prepared, stream);
  if (error == cudaSuccess) error = LaunchQuantise(problem, prepared, /*is_k=*/false, stream);
  if (error == cudaSuccess) error = LaunchQuantise(problem, prepared, /*is_k=*/true, stream);
  if (error == cudaSuccess) error = LaunchQuantiseV(problem, prepared, stream);
  return error;
}

}  // namespace h3rt
