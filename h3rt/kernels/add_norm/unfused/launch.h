// Residual addition and RMS norm in two kernels: the baseline. No CUDA header is needed to call it.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace h3rt {

// As LaunchAddNormFused, with the same bits: h is written by one kernel and read by the next.
int LaunchAddNormUnfused(const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h,
                         uint16_t* y, int64_t rows, int64_t hidden, float eps, CUstream_st* stream);

}  // namespace h3rt
