// The op in plain arrays, step for step as the device kernels compute it.
#pragma once

#include <cstdint>

namespace h3rt {

// h = bf16(x + r), y = bf16((h * inverse) * w), inverse = 1 / sqrt(sum / hidden + eps): every
// operation in float32, rounded to nearest; the sum in the order of device::RowPlan. A NaN is
// written as 0x7fff. Bit for bit what LaunchAddNormFused and LaunchAddNormUnfused write. 1 <=
// hidden <= 16384.
void AddNormStrictRows(const uint16_t* x, const uint16_t* r, const uint16_t* w, int64_t rows,
                       int64_t hidden, float eps, uint16_t* h, uint16_t* y);

}  // namespace h3rt
