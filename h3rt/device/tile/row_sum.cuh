// The sum of one value a thread over a block, in one fixed order: butterflies in each warp, then
// one over the warps' sums. Addition commutes, so every lane of a butterfly holds the same bits.
#pragma once

#include "h3rt/device/tile/row_plan.h"

namespace h3rt::device {

__device__ inline float WarpSum(float value) {
#pragma unroll
  for (int offset = RowPlan::kWarp / 2; offset > 0; offset /= 2) {
    value = __fadd_rn(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

// All threads of the block call it and get the total. `partials` holds kMaxWarps floats of shared
// memory; a second call needs other ones, because only one barrier lies between write and read.
__device__ inline float BlockSum(float value, float* partials) {
  const int lane = static_cast<int>(threadIdx.x) % RowPlan::kWarp;
  value = WarpSum(value);
  if (lane == 0) partials[threadIdx.x / RowPlan::kWarp] = value;
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / RowPlan::kWarp;
  return WarpSum(lane < warps ? partials[lane] : 0.0f);
}

}  // namespace h3rt::device
