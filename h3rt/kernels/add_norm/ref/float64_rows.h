// The op in plain arrays, in float64.
#pragma once

#include <cstdint>

namespace h3rt {

// h = bf16(x + r), y = bf16(h / sqrt(mean(h^2) + eps) * w): float64, h and y rounded once.
void AddNormFloat64Rows(const uint16_t* x, const uint16_t* r, const uint16_t* w, int64_t rows,
                        int64_t hidden, double eps, uint16_t* h, uint16_t* y);

}  // namespace h3rt
