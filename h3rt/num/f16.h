// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. Held as its bit pattern.
#pragma once

#include <bit>
#include <cstdint>

namespace h3rt {

// Exact: every f16 value is a float32 value. NaN payloads and signs are kept.
inline float F16ToFloat(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  // Subnormals go through an integer, so that a flush-to-zero mode cannot lose them.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000u;
  const uint32_t finite = magnitude < 0x0400u ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00u ? special : finite));
}

// Round to nearest, ties to even, with subnormals; 65520 and beyond become infinity. A NaN stays a
// NaN of the same sign and is made quiet (its upper payload bits are kept).
inline uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // 0.5 has the unit in the last place 2^-24, the step of f16 subnormals: the addition rounds.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t quiet = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
  uint32_t out = magnitude < 0x38800000u ? subnormal : normal;  // below 2^-14
  out = magnitude >= 0x477ff000u ? 0x7c00u : out;               // 65520 and beyond
  out = magnitude > 0x7f800000u ? quiet : out;
  return static_cast<uint16_t>(sign | out);
}

// to[i] = F16ToFloat(from[i]) for n elements; the arrays do not overlap.
inline void WidenF16(const uint16_t* __restrict from, float* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = F16ToFloat(from[i]);
}

}  // namespace h3rt
