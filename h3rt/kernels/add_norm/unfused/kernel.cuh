// The two kernels that the fused one is measured against: the residual addition, then the norm of
// what it wrote. The same steps in the same order, so the same bits.
#pragma once

#include <cstdint>

#include "h3rt/device/tile/row_sum.cuh"
#include "h3rt/kernels/add_norm/group.cuh"

namespace h3rt {

struct UnfusedAddConfig {
  static constexpr int kThreads = 256;
  static constexpr int kGroupsPerThread = 2;
  static constexpr int64_t kElementsPerBlock =
      int64_t{kThreads} * kGroupsPerThread * RowPlan::kGroup;
};

// h = bf16(x + r) over n elements, whatever their rows.
template <bool kVector>
__global__ void __launch_bounds__(UnfusedAddConfig::kThreads)
    add_norm_unfused_add_kernel(const uint16_t* __restrict__ x, const uint16_t* __restrict__ r,
                                uint16_t* __restrict__ h, int64_t n) {
  constexpr int kCount = UnfusedAddConfig::kGroupsPerThread;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * UnfusedAddConfig::kElementsPerBlock;
  int64_t base = static_cast<int64_t>(blockIdx.x) * UnfusedAddConfig::kElementsPerBlock +
                 static_cast<int64_t>(threadIdx.x) * RowPlan::kGroup;
  for (; base < n; base += stride) {
    Group from_x[kCount] = {};
    Group from_r[kCount] = {};
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int64_t first = base + k * (UnfusedAddConfig::kThreads * RowPlan::kGroup);
      if (first < n) {
        from_x[k] = LoadGroup<kVector, true>(x, first, n);
        from_r[k] = LoadGroup<kVector, true>(r, first, n);
      }
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int64_t first = base + k * (UnfusedAddConfig::kThreads * RowPlan::kGroup);
      if (first < n) StoreGroup<kVector>(h, first, n, AddGroups(from_x[k], from_r[k]));
    }
  }
}

// y = bf16(h * (1 / sqrt(mean(h^2) + eps)) * w), one row a block.
template <bool kVector>
__global__ void __launch_bounds__(RowPlan::kMaxThreads)
    add_norm_unfused_norm_kernel(const uint16_t* __restrict__ h, const uint16_t* __restrict__ w,
                                 uint16_t* __restrict__ y, int64_t rows, int hidden, float eps) {
  constexpr int kCount = RowPlan::kGroupsPerThread;
  __shared__ float partials[2][RowPlan::kMaxWarps];
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t begin = row * hidden;
    Group held[kCount] = {};
    Group weight[kCount] = {};
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int first = static_cast<int>(k * blockDim.x + threadIdx.x) * RowPlan::kGroup;
      if (first < hidden) {
        held[k] = LoadGroup<kVector, true>(h + begin, first, hidden);
        weight[k] = LoadGroup<kVector, false>(w, first, hidden);
      }
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum = AddSquares(sum, held[k]);
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
