#include "h3rt/kernels/add_norm/ref/float64_rows.h"

#include <bit>
#include <cmath>

#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

double Value(uint16_t bits) { return static_cast<double>(Bf16ToFloat(bits)); }

// A float64 rounded once to bfloat16. Through float32 it would be rounded twice, so the float32 is
// made by rounding to odd: its last bit tells that something was cut off.
uint16_t RoundOnce(double value) {
  if (!std::isfinite(value)) return FloatToBf16(static_cast<float>(value));
  float near = static_cast<float>(value);
  if (static_cast<double>(near) != value && std::isfinite(near)) {
    if (std::fabs(static_cast<double>(near)) > std::fabs(value)) near = std::nextafter(near, 0.0f);
    near = std::bit_cast<float>(std::bit_cast<uint32_t>(near) | 1u);
  }
  return FloatToBf16(near);
}

}  // namespace

void AddNormFloat64Rows(const uint16_t* x, const uint16_t* r, const uint16_t* w, int64_t rows,
                        int64_t hidden, double eps, uint16_t* h, uint16_t* y) {
  for (int64_t begin = 0; begin < rows * hidden; begin += hidden) {
    double sum = 0.0;
    for (int64_t i = begin; i < begin + hidden; ++i) {
      h[i] = RoundOnce(Value(x[i]) + Value(r[i]));
      sum += Value(h[i]) * Value(h[i]);
    }
    const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(hidden) + eps);
    for (int64_t i = 0; i < hidden; ++i) {
      y[begin + i] = RoundOnce(Value(h[begin + i]) * inverse * Value(w[i]));
    }
  }
}

}  // namespace h3rt
