// Elementary functions written so that a plain loop over them vectorises: no branch, no table, no
// fused multiply-add, so every instruction set gives the same bytes. Largest errors over dense
// sweeps, in units of the last place of the exact value: ExpF 0.96, SiluF 2.4, SinSquaredF 3.9 up
// to pi / 2 and 2.6e-7 absolute over its whole range; math_test holds them to 2, 4, 4 and 3e-7.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "h3rt/cpu/multiversion.h"

namespace h3rt {

// Adding and subtracting 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even.
inline constexpr float kRoundMagic = 12582912.0f;

// e^x; 0 below -104, infinity above 88.73, NaN for NaN. Subnormal results are rounded twice.
H3RT_ALWAYS_INLINE float ExpF(float x) {
  // Written so that NaN passes through both comparisons.
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  const float shifted = c * 1.44269504f + kRoundMagic;
  const float n = shifted - kRoundMagic;
  // ln 2 in two parts; the first has 9 bits, so that its product with n is exact.
  const float r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
  float q = 1.38144647521e-3f;  // minimax for (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2, 3.1e-9
  q = q * r + 8.36878062223e-3f;
  q = q * r + 4.16683942592e-2f;
  q = q * r + 1.66665201055e-1f;
  q = q * r + 4.99999934123e-1f;
  const float y = 1.0f + (r + r * r * q);
  // 2^n in two factors, since n reaches from -150 to 128.
  const uint32_t power = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRoundMagic);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(power) >> 1);
  const float scale_a = std::bit_cast<float>((half + 127u) << 23);
  const float scale_b = std::bit_cast<float>((power - half + 127u) << 23);
  return y * scale_a * scale_b;
}

// x / (1 + e^-x). Below -88.73 e^-x is infinite and the result -0, where the exact value is less
// than 2.7e-37 in size: there the error in units of the last place means nothing.
H3RT_ALWAYS_INLINE float SiluF(float x) { return x / (1.0f + ExpF(-x)); }

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as x / (1 + e^(-2 u)).
H3RT_ALWAYS_INLINE float GeluTanhF(float x) {
  const float u = 1.59576912f * (x + 0.044715f * x * x * x);
  return x / (1.0f + ExpF(-u));
}

// Up to here the reduction of SinSquaredF is exact enough; callers use SinSquaredFar beyond.
inline constexpr float kSinSquaredLimit = 25000.0f;

// sin(x)^2 for |x| <= kSinSquaredLimit; NaN for NaN.
H3RT_ALWAYS_INLINE float SinSquaredF(float x) {
  // sin^2 has period pi. pi comes in three parts; the products of n <= 8192 with the first (8 bits)
  // and the second (11 bits) are exact.
  const float n = (x * 0.318309886f + kRoundMagic) - kRoundMagic;
  const float r =
      ((x - n * 3.140625f) - n * 9.67502593994140625e-4f) - n * 1.509957990978376432e-7f;
  const float z = r * r;
  float p = 2.60562981909e-6f;  // minimax for (sin r - r) / r^3 on |r| <= pi / 2, 6.1e-9
  p = p * z - 1.98095382931e-4f;
  p = p * z + 8.33306541902e-3f;
  p = p * z - 1.66666595206e-1f;
  const float s = r + r * z * p;
  return s * s;
}

// sin(x)^2 for any float, slow.
inline float SinSquaredFar(float x) {
  const double s = std::sin(static_cast<double>(x));
  return static_cast<float>(s * s);
}

// Whole rows: y[i] = f(x[i]); y may be x.
void ExpRow(const float* x, int64_t n, float* y);
void SiluRow(const float* x, int64_t n, float* y);
void GeluTanhRow(const float* x, int64_t n, float* y);
// y[i] = x[i] + sin(a x[i])^2 * inverse_b, any finite argument.
void SnakeRow(const float* x, int64_t n, float a, float inverse_b, float* y);

}  // namespace h3rt
