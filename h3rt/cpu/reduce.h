// Sums of rows in float64, in eight named lanes, so that the order of additions is the same for
// every instruction set.
#pragma once

#include <cstdint>

namespace h3rt {

double Sum(const float* x, int64_t n);
double SumOfSquares(const float* x, int64_t n);
// Sum of (x - mean)^2.
double SumOfSquaresAbout(const float* x, int64_t n, double mean);

}  // namespace h3rt
