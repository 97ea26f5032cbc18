#include "h3rt/cpu/reduce.h"

#include "h3rt/cpu/multiversion.h"

namespace h3rt {
namespace {

constexpr int kLanes = 8;

H3RT_ALWAYS_INLINE double Fold(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

H3RT_MULTIVERSION double SumLanes(const float* x, int64_t n) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += static_cast<double>(x[i + l]);
  }
  for (int l = 0; i < n; ++i, ++l) lanes[l] += static_cast<double>(x[i]);
  return Fold(lanes);
}

H3RT_MULTIVERSION double SquareLanes(const float* x, int64_t n, double mean) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const double centred = static_cast<double>(x[i + l]) - mean;
      lanes[l] += centred * centred;
    }
  }
  for (int l = 0; i < n; ++i, ++l) {
    const double centred = static_cast<double>(x[i]) - mean;
    lanes[l] += centred * centred;
  }
  return Fold(lanes);
}

}  // namespace

double Sum(const float* x, int64_t n) { return SumLanes(x, n); }
double SumOfSquares(const float* x, int64_t n) { return SquareLanes(x, n, 0.0); }
double SumOfSquaresAbout(const float* x, int64_t n, double mean) { return SquareLanes(x, n, mean); }

}  // namespace h3rt
