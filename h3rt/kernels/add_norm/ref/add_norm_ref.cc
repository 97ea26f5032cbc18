#include "h3rt/kernels/add_norm/ref/add_norm_ref.h"

#include <algorithm>
#include <cmath>

#include "h3rt/kernels/add_norm/ref/strict_rows.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

const uint16_t* Bits(const ConstTensorView& view) { return view.as<uint16_t>(); }

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

absl::Status AddNormStrict(const AddNormParams& params, const ExecContext& context) {
  const int64_t c = params.x.dim(1);
  return context.ParallelFor(params.x.dim(0), [&](int64_t row) {
    AddNormStrictRows(Bits(params.x) + row * c, Bits(params.r) + row * c, Bits(params.w), 1, c,
                      static_cast<float>(params.eps), params.h.as<uint16_t>() + row * c,
                      params.y.as<uint16_t>() + row * c);
    return absl::OkStatus();
  });
}

absl::Status AddNormRef(const AddNormParams& params, const ExecContext& context) {
  const int64_t c = params.x.dim(1);
  return context.ParallelFor(params.x.dim(0), [&](int64_t row) {
    const uint16_t* x = Bits(params.x) + row * c;
    const uint16_t* r = Bits(params.r) + row * c;
    uint16_t* h = params.h.as<uint16_t>() + row * c;
    uint16_t* y = params.y.as<uint16_t>() + row * c;
    double sum = 0.0;
    for (int64_t i = 0; i < c; ++i) {
      h[i] = RoundOnce(static_cast<double>(Bf16ToFloat(x[i])) +
                       static_cast<double>(Bf16ToFloat(r[i])));
      const double value = static_cast<double>(Bf16ToFloat(h[i]));
      sum += value * value;
    }
    const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(c) + params.eps);
    for (int64_t i = 0; i < c; ++i) {
      y[i] = RoundOnce(static_cast<double>(Bf16ToFloat(h[i])) * inverse *
                       static_cast<double>(Bf16ToFloat(Bits(params.w)[i])));
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
