// add_norm_fused_kernel: one row a block. The row's h stays in registers between the sum and the
// scaling, so x and r are read once and h and y written once: the least traffic there is.
#pragma once

#include <cstdint>

#include "h3rt/device/tile/row_sum.cuh"
#include "h3rt/kernels/add_norm/group.cuh"

namespace h3rt {

template <bool kVector>
__global__ void __launch_bounds__(RowPlan::kMaxThreads)
    add_norm_fused_kernel(const uint16_t* __restrict__ x, const uint16_t* __restrict__ r,
                          const uint16_t* __restrict__ w, uint16_t* __restrict__ h,
                          uint16_t* __restrict__ y, int64_t rows, int hidden, float eps) {
  constexpr int kCount = RowPlan::kGroupsPerThread;
  __shared__ float partials[2][RowPlan::kMaxWarps];
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t begin = row * hidden;
    // All loads before the first use: 96 bytes of each thread are under way.
    Group from_x[kCount] = {};
    Group from_r[kCount] = {};
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int first = static_cast<int>(k * blockDim.x + threadIdx.x) * RowPlan::kGroup;
      if (first < hidden) {
        from_x[k] = LoadGroup<kVector, true>(x + begin, first, hidden);
        from_r[k] = LoadGroup<kVector, true>(r + begin, first, hidden);
      }
    }
    Group held[kCount];
    Group weight[kCount] = {};
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int first = static_cast<int>(k * blockDim.x + threadIdx.x) * RowPlan::kGroup;
      held[k] = AddGroups(from_x[k], from_r[k]);
      sum = AddSquares(sum, held[k]);
      if (first < hidden) {
        StoreGroup<kVector>(h + begin, first, hidden, held[k]);
        weight[k] = LoadGroup<kVector, false>(w, first, hidden);
      }
    }
    const float inverse = InverseRms(device::BlockSum(sum, partials[turn]), hidden, eps);
    turn ^= 1;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int first = static_cast<int>(k * blockDim.x + threadIdx.x) * RowPlan::kGroup;
      if (first < hidden) {
        StoreGroup<kVector>(y + begin, first, hidden, ScaleGroup(held[k], inverse, weight[k]));
      }
    }
  }
}

}  // namespace h3rt
