// The two 8-bit floats of FP8 files, held as their bit patterns.
// e4m3fn: 1 sign, 4 exponent (bias 7), 3 fraction bits; no infinity, 0x7f and 0xff are NaN, largest
// value 448. e5m2: 1 sign, 5 exponent (bias 15), 2 fraction bits, with infinities, as in IEEE 754.
#pragma once

#include <cstdint>

namespace h3rt {

inline constexpr float kE4m3Max = 448.0f;
inline constexpr uint8_t kE4m3Nan = 0x7f;

// Exact.
float E4m3ToFloat(uint8_t bits);
float E5m2ToFloat(uint8_t bits);

// Round to nearest, ties to even. Beyond the largest value, infinities too: +-448. A NaN gives the
// NaN of its sign.
uint8_t FloatToE4m3Saturating(float value);

// Round to nearest, ties to even, as torch casts to float8_e4m3fn: what rounds beyond 448 (that is,
// every magnitude over 464) and infinities give the NaN of their sign.
uint8_t FloatToE4m3(float value);

// to[i] = E4m3ToFloat(from[i]), or E5m2ToFloat, for n elements.
void WidenE4m3(const uint8_t* from, float* to, int64_t n);
void WidenE5m2(const uint8_t* from, float* to, int64_t n);

}  // namespace h3rt
