#include "h3rt/kernels/add_norm/ref/strict_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "h3rt/device/tile/row_plan.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

using device::RowPlan;

// The conversion instruction knows one NaN only.
uint16_t Narrow(float value) { return std::isnan(value) ? uint16_t{0x7fff} : FloatToBf16(value); }

// A butterfly over 32 lanes, seen from lane 0.
float WarpSum(std::array<float, RowPlan::kWarp> lanes) {
  for (size_t offset = RowPlan::kWarp / 2; offset > 0; offset /= 2) {
    for (size_t lane = 0; lane < offset; ++lane) lanes[lane] += lanes[lane + offset];
  }
  return lanes[0];
}

float SumOfSquares(const uint16_t* h, int64_t hidden) {
  const int threads = RowPlan::ThreadsFor(hidden);
  std::array<float, RowPlan::kWarp> warps = {};
  for (int warp = 0; warp < threads / RowPlan::kWarp; ++warp) {
    std::array<float, RowPlan::kWarp> lanes = {};
    for (int lane = 0; lane < RowPlan::kWarp; ++lane) {
      float sum = 0.0f;
      for (int k = 0; k < RowPlan::kGroupsPerThread; ++k) {
        const int64_t first =
            (int64_t{k} * threads + warp * RowPlan::kWarp + lane) * RowPlan::kGroup;
        for (int64_t i = first; i < std::min(first + RowPlan::kGroup, hidden); ++i) {
          const float value = Bf16ToFloat(h[i]);
          sum = std::fma(value, value, sum);
        }
      }
      lanes[static_cast<size_t>(lane)] = sum;
    }
    warps[static_cast<size_t>(warp)] = WarpSum(lanes);
  }
  return WarpSum(warps);
}

}  // namespace

void AddNormStrictRows(const uint16_t* x, const uint16_t* r, const uint16_t* w, int64_t rows,
                       int64_t hidden, float eps, uint16_t* h, uint16_t* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * hidden;
    for (int64_t i = begin; i < begin + hidden; ++i) {
      h[i] = Narrow(Bf16ToFloat(x[i]) + Bf16ToFloat(r[i]));
    }
    const float mean = SumOfSquares(h + begin, hidden) / static_cast<float>(hidden);
    const float inverse = 1.0f / std::sqrt(mean + eps);
    for (int64_t i = 0; i < hidden; ++i) {
      y[begin + i] = Narrow(Bf16ToFloat(h[begin + i]) * inverse * Bf16ToFloat(w[i]));
    }
  }
}

}  // namespace h3rt
