#include "h3rt/num/e4m3.h"

#include <array>
#include <bit>
#include <cstddef>

#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

float DecodeE4m3(uint8_t bits) {
  const uint32_t sign = (bits & 0x80u) << 24;
  const uint32_t magnitude = bits & 0x7fu;
  if (magnitude == kE4m3Nan) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude < 8) {  // subnormal, in steps of 2^-9
    const float value = static_cast<float>(magnitude) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + ((127u - 7u) << 23)));
}

// Magnitudes up to 464 (0x43e80000) round to 448 at most; `beyond` is for those over it.
uint8_t Encode(float value, uint32_t beyond) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t out = 0;
  if (magnitude > 0x7f800000u) {
    out = kE4m3Nan;
  } else if (magnitude > 0x43e80000u) {
    out = beyond;
  } else if (magnitude < 0x3c800000u) {
    // Below 2^-6. 2^14 has the unit in the last place 2^-9, the step of the subnormals: the
    // addition rounds.
    const float rounded = std::bit_cast<float>(magnitude) + 0x1p14f;
    out = std::bit_cast<uint32_t>(rounded) - 0x46800000u;
  } else {
    out = (magnitude - ((127u - 7u) << 23) + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
  }
  return static_cast<uint8_t>(sign | out);
}

template <float (*kDecode)(uint8_t)>
const std::array<float, 256>& Table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> made{};
    for (size_t i = 0; i < made.size(); ++i) made[i] = kDecode(static_cast<uint8_t>(i));
    return made;
  }();
  return table;
}

template <float (*kDecode)(uint8_t)>
void Widen(const uint8_t* from, float* to, int64_t n) {
  const std::array<float, 256>& table = Table<kDecode>();
  for (int64_t i = 0; i < n; ++i) to[i] = table[from[i]];
}

// e5m2 is the upper byte of an f16.
float DecodeE5m2(uint8_t bits) { return F16ToFloat(static_cast<uint16_t>(bits << 8)); }

}  // namespace

float E4m3ToFloat(uint8_t bits) { return DecodeE4m3(bits); }
float E5m2ToFloat(uint8_t bits) { return DecodeE5m2(bits); }

uint8_t FloatToE4m3Saturating(float value) { return Encode(value, 0x7eu); }
uint8_t FloatToE4m3(float value) { return Encode(value, kE4m3Nan); }

void WidenE4m3(const uint8_t* from, float* to, int64_t n) { Widen<DecodeE4m3>(from, to, n); }
void WidenE5m2(const uint8_t* from, float* to, int64_t n) { Widen<DecodeE5m2>(from, to, n); }

}  // namespace h3rt
