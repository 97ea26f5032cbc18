// Elements of exact attention: the two 16-bit floats, as bits. Host only.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "h3rt/kernels/attention/exact/contract.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt {

// Exact.
inline float WidenExact(ExactType type, uint16_t bits) {
  return type == ExactType::kBf16 ? Bf16ToFloat(bits) : F16ToFloat(bits);
}
// To nearest even; overflow to infinity.
inline uint16_t NarrowExact(ExactType type, float value) {
  return type == ExactType::kBf16 ? FloatToBf16(value) : FloatToF16(value);
}
// The same of a float64, rounded once: through the float32 that is rounded to odd, so that no tie
// appears or disappears on the way.
inline uint16_t NarrowExactOnce(ExactType type, double value) {
  const float near = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(near);
  if (!std::isfinite(value) || static_cast<double>(near) == value || (bits & 1u) != 0) {
    return NarrowExact(type, near);
  }
  const bool above = std::fabs(static_cast<double>(near)) > std::fabs(value);
  return NarrowExact(type, std::bit_cast<float>(above ? bits - 1 : bits + 1));
}

}  // namespace h3rt
