#include "h3rt/kernels/add_norm/launch_shape.h"
#include "h3rt/kernels/add_norm/unfused/kernel.cuh"
#include "h3rt/kernels/add_norm/unfused/launch.h"

namespace h3rt {
namespace {

template <bool kVector>
void LaunchAdd(const uint16_t* x, const uint16_t* r, uint16_t* h, int64_t n, CUstream_st* stream) {
  const int64_t blocks =
      AddNormBlocks((n - 1) / UnfusedAddConfig::kElementsPerBlock + 1, /*at_most=*/0);
  add_norm_unfused_add_kernel<kVector>
      <<<static_cast<unsigned>(blocks), UnfusedAddConfig::kThreads, 0, stream>>>(x, r, h, n);
}

template <bool kVector>
void LaunchNorm(const uint16_t* h, const uint16_t* w, uint16_t* y, int64_t rows, int64_t hidden,
                float eps, CUstream_st* stream) {
  const auto threads = static_cast<unsigned>(RowPlan::ThreadsFor(hidden));
  const auto blocks = static_cast<unsigned>(AddNormBlocks(rows, /*at_most=*/0));
  add_norm_unfused_norm_kernel<kVector>
      <<<blocks, threads, 0, stream>>>(h, w, y, rows, static_cast<int>(hidden), eps);
}

}  // namespace

int LaunchAddNormUnfused(const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h,
                         uint16_t* y, int64_t rows, int64_t hidden, float eps,
                         CUstream_st* stream) {
  if (!AddNormTakes(rows, hidden)) return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  // The addition knows no rows: whole groups need aligned bases and no tail.
  const int64_t n = rows * hidden;
  const uint64_t added =
      reinterpret_cast<uint64_t>(x) | reinterpret_cast<uint64_t>(r) | reinterpret_cast<uint64_t>(h);
  AddNormVector(added, n) ? LaunchAdd<true>(x, r, h, n, stream)
                          : LaunchAdd<false>(x, r, h, n, stream);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  const uint64_t normed =
      reinterpret_cast<uint64_t>(h) | reinterpret_cast<uint64_t>(w) | reinterpret_cast<uint64_t>(y);
  AddNormVector(normed, hidden) ? LaunchNorm<true>(h, w, y, rows, hidden, eps, stream)
                                : LaunchNorm<false>(h, w, y, rows, hidden, eps, stream);
  return cudaGetLastError();
}

}  // namespace h3rt
