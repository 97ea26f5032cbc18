// The probe's host side: no CUDA header is needed to call it.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace h3rt::device {

// out[i] = Mix(i, seed) for i < n, on `stream`, asynchronously. `out` is device memory of n words
// of 32 bits. n <= 0 launches nothing. Returns the CUDA runtime's error, 0 for success.
int LaunchProbeFill(uint32_t* out, int64_t n, uint32_t seed, CUstream_st* stream);

// What the kernel writes at one index, computed on the host.
uint32_t ProbeWord(int64_t index, uint32_t seed);

}  // namespace h3rt::device
