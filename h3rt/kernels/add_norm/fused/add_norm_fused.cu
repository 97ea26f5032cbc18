#include "h3rt/kernels/add_norm/fused/kernel.cuh"
#include "h3rt/kernels/add_norm/fused/launch.h"
#include "h3rt/kernels/add_norm/launch_shape.h"

namespace h3rt {
namespace {

struct Arguments {
  const uint16_t* x;
  const uint16_t* r;
  const uint16_t* w;
  uint16_t* h;
  uint16_t* y;
  int64_t rows;
  int64_t hidden;
  float eps;
};

template <bool kVector>
int Launch(const Arguments& a, bool resident, CUstream_st* stream) {
  const int threads = RowPlan::ThreadsFor(a.hidden);
  int64_t at_most = 0;
  if (resident) {
    int device = 0;
    int processors = 0;
    int blocks = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) {
      error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    }
    if (error == cudaSuccess) {
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_norm_fused_kernel<kVector>,
                                                            threads, 0);
    }
    if (error != cudaSuccess) return error;
    at_most = static_cast<int64_t>(processors) * blocks;
  }
  const auto grid = static_cast<unsigned>(AddNormBlocks(a.rows, at_most));
  add_norm_fused_kernel<kVector><<<grid, static_cast<unsigned>(threads), 0, stream>>>(
      a.x, a.r, a.w, a.h, a.y, a.rows, static_cast<int>(a.hidden), a.eps);
  return cudaGetLastError();
}

int Choose(const Arguments& a, bool resident, CUstream_st* stream) {
  if (!AddNormTakes(a.rows, a.hidden)) return cudaErrorInvalidValue;
  if (a.rows == 0) return cudaSuccess;
  const uint64_t addresses = reinterpret_cast<uint64_t>(a.x) | reinterpret_cast<uint64_t>(a.r) |
                             reinterpret_cast<uint64_t>(a.w) | reinterpret_cast<uint64_t>(a.h) |
                             reinterpret_cast<uint64_t>(a.y);
  return AddNormVector(addresses, a.hidden) ? Launch<true>(a, resident, stream)
                                            : Launch<false>(a, resident, stream);
}

}  // namespace

int LaunchAddNormFused(const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h,
                       uint16_t* y, int64_t rows, int64_t hidden, float eps, CUstream_st* stream) {
  return Choose({x, r, w, h, y, rows, hidden, eps}, false, stream);
}

int LaunchAddNormFusedResident(const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h,
                               uint16_t* y, int64_t rows, int64_t hidden, float eps,
                               CUstream_st* stream) {
  return Choose({x, r, w, h, y, rows, hidden, eps}, true, stream);
}

}  // namespace h3rt
