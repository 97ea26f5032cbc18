// probe_fill_kernel: each thread writes words that depend only on their index and a seed, so one
// pass shows that code for this architecture loads, runs and stores where it should.
#pragma once

#include <cstdint>

#include "h3rt/device/math/mix.cuh"
#include "h3rt/device/probe/config.h"

namespace h3rt::device {

__global__ void __launch_bounds__(ProbeConfig::kThreads)
    probe_fill_kernel(uint32_t* __restrict__ out, int64_t n, uint32_t seed) {
  // 64-bit: n may pass 2^31 words, and the grid strides instead of growing.
  const int64_t stride = static_cast<int64_t>(gridDim.x) * ProbeConfig::kThreads;
  int64_t i = static_cast<int64_t>(blockIdx.x) * ProbeConfig::kThreads + threadIdx.x;
  for (; i < n; i += stride) out[i] = Mix(static_cast<uint64_t>(i), seed);
}

}  // namespace h3rt::device
