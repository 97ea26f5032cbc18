#include <algorithm>

#include "h3rt/device/probe/kernel.cuh"
#include "h3rt/device/probe/launch.h"

namespace h3rt::device {

int LaunchProbeFill(uint32_t* out, int64_t n, uint32_t seed, CUstream_st* stream) {
  if (n <= 0) return cudaSuccess;
  const int64_t blocks = std::min((n - 1) / ProbeConfig::kThreads + 1, ProbeConfig::kMaxBlocks);
  probe_fill_kernel<<<static_cast<unsigned>(blocks), ProbeConfig::kThreads, 0, stream>>>(out, n,
                                                                                         seed);
  return cudaGetLastError();
}

uint32_t ProbeWord(int64_t index, uint32_t seed) { return Mix(static_cast<uint64_t>(index), seed); }

}  // namespace h3rt::device
