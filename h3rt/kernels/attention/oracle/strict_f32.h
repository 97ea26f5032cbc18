// The float32 operations of PTX with .rn.ftz, on the host: the same bits whatever the compiler's
// flags for contraction and whatever FTZ and DAZ say in the processor's control register. The
// rounding direction of the processor is taken to be to nearest, as programs start.
//
// Flushing: an operand that is subnormal counts as the zero of its sign; a result is first rounded
// to nearest even on the grid of float32 with subnormals, and becomes the zero of its sign where it
// then is subnormal. (An exact result in [2^-126 - 2^-150, 2^-126) so rounds up to 2^-126 and
// stays.) A NaN result is 0x7fffffff, whatever the operands.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "h3rt/num/e4m3.h"

namespace h3rt::strict {

inline constexpr uint32_t kNan = 0x7fffffffu;

inline float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t ToBits(float value) { return std::bit_cast<uint32_t>(value); }

inline bool IsNan(float a) { return (ToBits(a) & 0x7fffffffu) > 0x7f800000u; }

// Subnormals become the zero of their sign. All else, NaN too, keeps its bits.
inline float Flush(float a) {
  const uint32_t bits = ToBits(a);
  return (bits & 0x7f800000u) == 0 ? FromBits(bits & 0x80000000u) : a;
}

// Half way between the largest subnormal and 2^-126; ties go to the latter, which is even.
inline constexpr double kLeastKept = 0x1p-126 - 0x1p-150;

// An exact value, or one whose rounding to double does no harm, to float32.
inline float RoundFtz(double exact) {
  if (exact != exact) return FromBits(kNan);
  const double magnitude = std::fabs(exact);
  if (magnitude >= 0x1p-126) return static_cast<float>(exact);
  const float kept = magnitude >= kLeastKept ? 0x1p-126f : 0.0f;
  return std::copysign(kept, std::signbit(exact) ? -1.0f : 1.0f);
}

// Double has more than 2 * 24 + 2 bits: rounding a sum, product or quotient of two float32 values
// to double first and to float32 then is the same as rounding once.
inline float AddFtz(float a, float b) {
  return RoundFtz(static_cast<double>(Flush(a)) + static_cast<double>(Flush(b)));
}
inline float SubFtz(float a, float b) {
  return RoundFtz(static_cast<double>(Flush(a)) - static_cast<double>(Flush(b)));
}
inline float MulFtz(float a, float b) {
  return RoundFtz(static_cast<double>(Flush(a)) * static_cast<double>(Flush(b)));
}

// a * b + c rounded once.
inline float FmaFtz(float a, float b, float c) {
  a = Flush(a);
  b = Flush(b);
  c = Flush(c);
  const float fused = std::fma(a, b, c);
  if (IsNan(fused)) return FromBits(kNan);
  if (std::fabs(fused) > 0x1p-126f) return fused;
  // Near or below the least normal value, where the processor may have flushed in its own way:
  // decided from the exact sum + error.
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  const double sum = product + addend;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  if (sum == 0.0) return std::copysign(0.0f, fused);
  const bool negative = sum < 0.0;
  const double magnitude = std::fabs(sum);
  const double outward = negative ? -error : error;
  const bool kept = magnitude > kLeastKept || (magnitude == kLeastKept && outward >= 0.0);
  return std::copysign(kept ? 0x1p-126f : 0.0f, negative ? -1.0f : 1.0f);
}

inline float AbsFtz(float a) {
  return IsNan(a) ? FromBits(kNan) : FromBits(ToBits(Flush(a)) & 0x7fffffffu);
}

// The operand that is a number, where the other is NaN; +0 is above -0.
inline float MaxFtz(float a, float b) {
  if (IsNan(a)) return IsNan(b) ? FromBits(kNan) : Flush(b);
  if (IsNan(b)) return Flush(a);
  a = Flush(a);
  b = Flush(b);
  if (a == b) return FromBits(ToBits(a) & ToBits(b));
  return a > b ? a : b;
}
inline float MinFtz(float a, float b) {
  if (IsNan(a)) return IsNan(b) ? FromBits(kNan) : Flush(b);
  if (IsNan(b)) return Flush(a);
  a = Flush(a);
  b = Flush(b);
  if (a == b) return FromBits(ToBits(a) | ToBits(b));
  return a < b ? a : b;
}

// Stand-ins for the special-function unit. Rcp is correctly rounded; Ex2 and Lg2 are the library's
// double results rounded, which is the correctly rounded value but for cases within an error of
// double of a tie. Subnormal operands and results are flushed.
inline float Rcp(float a) { return RoundFtz(1.0 / static_cast<double>(Flush(a))); }
inline float Ex2(float a) { return RoundFtz(std::exp2(static_cast<double>(Flush(a)))); }
inline float Lg2(float a) { return RoundFtz(std::log2(static_cast<double>(Flush(a)))); }

// cvt.rn.f32.s32 of an integer of at most 24 bits: exact.
inline float IntToFloat(int32_t a) { return static_cast<float>(a); }

// cvt.rni.sat.s8.f32: half to even, saturating to -128..127, NaN to 0.
inline int8_t ToS8Even(float a) {
  if (IsNan(a)) return 0;
  const float inside = std::clamp(a, -128.0f, 127.0f);
  // Adding and taking away 1.5 * 2^52 leaves the nearest integer.
  const double rounded = (static_cast<double>(inside) + 0x1.8p52) - 0x1.8p52;
  return static_cast<int8_t>(rounded);
}

// cvt.rzi.s32.f32 and its low byte, for magnitudes below 128; NaN to 0.
inline int8_t ToS8Truncated(float a) {
  if (IsNan(a)) return 0;
  return static_cast<int8_t>(std::clamp(a, -128.0f, 127.0f));
}

// cvt.rn.satfinite.e4m3x2.f32 of one value: NaN of either sign to 0x7f.
inline uint8_t ToE4m3(float a) { return IsNan(a) ? kE4m3Nan : FloatToE4m3Saturating(a); }

}  // namespace h3rt::strict
