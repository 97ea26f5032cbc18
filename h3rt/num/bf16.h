// bfloat16: the upper half of a float32. Held as its bit pattern.
#pragma once

#include <bit>
#include <cstdint>

namespace h3rt {

// Exact: every bf16 value is a float32 value. NaN payloads and signs are kept.
inline float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Round to nearest, ties to even. Values beyond the largest bf16 round to infinity as IEEE 754
// says. A NaN stays a NaN of the same sign and is made quiet (its upper payload bits are kept).
inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // Without branches, so that loops over it vectorise.
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>(is_nan ? quiet : rounded);
}

// The nearest bf16 value, as a float32.
inline float RoundToBf16(float value) { return Bf16ToFloat(FloatToBf16(value)); }

// RoundToBf16 of n elements in place.
inline void RoundToBf16InPlace(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = RoundToBf16(values[i]);
}

// to[i] = Bf16ToFloat(from[i]) for n elements; the arrays do not overlap.
inline void WidenBf16(const uint16_t* __restrict from, float* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = Bf16ToFloat(from[i]);
}

// to[i] = FloatToBf16(from[i]) for n elements; the arrays do not overlap.
inline void NarrowToBf16(const float* __restrict from, uint16_t* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = FloatToBf16(from[i]);
}

}  // namespace h3rt
