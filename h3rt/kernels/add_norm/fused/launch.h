// Residual addition and RMS norm in one kernel. No CUDA header is needed to call it.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace h3rt {

// h = bf16(x + r), y = bf16(h * (1 / sqrt(mean(h^2) + eps)) * w) over rows of `hidden` elements, on
// `stream`, asynchronously. Pointers are device memory of bfloat16, dense: x, r, h, y hold rows *
// hidden elements, w holds hidden. Any rows, 1 <= hidden <= 16384, any alignment of 2 bytes;
// 16-byte accesses where all bases and rows allow them, with the same bits. h and y overlap
// nothing. Numerics: each step rounded to nearest, the sum in the order of RowPlan; a NaN is
// written as 0x7fff. Returns the CUDA runtime's error, 0 for success, 1 (invalid value) for a size
// out of range.
int LaunchAddNormFused(const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h,
                       uint16_t* y, int64_t rows, int64_t hidden, float eps, CUstream_st* stream);
// The same bits from as many blocks as the device holds at once, each taking row after row.
int LaunchAddNormFusedResident(const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h,
                               uint16_t* y, int64_t rows, int64_t hidden, float eps,
                               CUstream_st* stream);

}  // namespace h3rt
