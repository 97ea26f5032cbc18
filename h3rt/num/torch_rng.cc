#include "h3rt/num/torch_rng.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace h3rt {
namespace {

constexpr size_t kGroup = 16;  // the wide path transforms groups of 8 pairs
constexpr size_t kHalf = kGroup / 2;

// The Cephes logf of torch's AVX2 code for u in (0, 1], every operation in float32. Rounding points
// are part of the definition: std::fma rounds once, everything else once per operation.
inline float LogAsTorch(float u) {
  int exponent = 0;
  const float m = std::frexp(u, &exponent);
  const bool low = m < 0.707106781186547524f;
  float e = static_cast<float>(exponent);
  e = low ? e - 1.0f : e;
  float x = m - 1.0f;
  x = low ? x + m : x;
  const float z = x * x;
  float y = 7.0376836292e-2f;
  y = std::fma(y, x, -1.1514610310e-1f);
  y = std::fma(y, x, 1.1676998740e-1f);
  y = std::fma(y, x, -1.2420140846e-1f);
  y = std::fma(y, x, 1.4249322787e-1f);
  y = std::fma(y, x, -1.6668057665e-1f);
  y = std::fma(y, x, 2.0000714765e-1f);
  y = std::fma(y, x, -2.4999993993e-1f);
  y = std::fma(y, x, 3.3333331174e-1f);
  y = y * x;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = y - z * 0.5f;
  x = x + y;
  return std::fma(e, 0.693359375f, x);
}

struct SinCos {
  float sin;
  float cos;
};

// The Cephes sinf and cosf of torch's AVX2 code for theta >= 0.
inline SinCos SinCosAsTorch(float theta) {
  const int j = (static_cast<int>(theta * 1.27323954473516f) + 1) & ~1;
  const float octant = static_cast<float>(j);
  float x = std::fma(octant, -0.78515625f, theta);
  x = std::fma(octant, -2.4187564849853515625e-4f, x);
  x = std::fma(octant, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f) * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1.0f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f) * z;
  s = std::fma(s, x, x);
  const bool exchange = (j & 2) != 0;
  const float sin = exchange ? c : s;
  const float cos = exchange ? s : c;
  return {.sin = (j & 4) != 0 ? -sin : sin, .cos = ((j - 2) & 4) == 0 ? -cos : cos};
}

// Box-Muller over one group of uniforms, in place: element i pairs with element i + 8.
void TransformGroup(float* group) {
  constexpr float kTwoPi = 6.283185307179586f;
  for (size_t i = 0; i < kHalf; ++i) {
    const float u1 = 1.0f - group[i];
    const float u2 = group[i + kHalf];
    const float radius = std::sqrt(-2.0f * LogAsTorch(u1));
    const SinCos angle = SinCosAsTorch(kTwoPi * u2);
    // torch computes value * std + mean; the sum with +0 turns -0 into +0.
    group[i] = radius * angle.cos + 0.0f;
    group[i + kHalf] = radius * angle.sin + 0.0f;
  }
}

}  // namespace

TorchGenerator::TorchGenerator(uint64_t seed) {
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kStateSize; ++i) {
    const uint32_t previous = state_[i - 1];
    state_[i] = 1812433253u * (previous ^ (previous >> 30)) + i;
  }
}

void TorchGenerator::Refill() {
  constexpr size_t kShift = 397;
  constexpr size_t kSize = kStateSize;
  const auto twist = [](uint32_t upper, uint32_t lower) {
    const uint32_t mixed = (upper & 0x80000000u) | (lower & 0x7fffffffu);
    return (mixed >> 1) ^ ((lower & 1u) != 0 ? 0x9908b0dfu : 0u);
  };
  for (size_t i = 0; i < kSize; ++i) {
    const uint32_t mixed = twist(state_[i], state_[(i + 1) % kSize]);
    state_[i] = state_[(i + kShift) % kSize] ^ mixed;
  }
  next_ = 0;
}

uint32_t TorchGenerator::Next32() {
  if (next_ == kStateSize) Refill();
  uint32_t y = state_[static_cast<size_t>(next_++)];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

float TorchGenerator::NextUniform24() {
  return static_cast<float>(Next32() & 0xffffffu) * 0x1p-24f;
}

double TorchGenerator::NextUniform53() {
  const uint64_t upper = Next32();
  const uint64_t both = (upper << 32) | Next32();
  return static_cast<double>(both & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

double TorchGenerator::NextNormalScalar() {
  if (kept_normal_.has_value()) {
    const double value = *kept_normal_;
    kept_normal_.reset();
    return value;
  }
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  const double u1 = NextUniform53();
  const double u2 = NextUniform53();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = kTwoPi * u1;
  kept_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

void TorchGenerator::Randn(std::span<float> out) {
  const size_t n = out.size();
  if (n < kGroup) {
    for (float& value : out) value = static_cast<float>(NextNormalScalar());
    return;
  }
  for (float& value : out) value = NextUniform24();
  for (size_t i = 0; i + kGroup <= n; i += kGroup) TransformGroup(&out[i]);
  if (n % kGroup == 0) return;
  // The last 16 elements are drawn again; those that a whole group had covered are replaced.
  const std::span<float> tail = out.last(kGroup);
  for (float& value : tail) value = NextUniform24();
  TransformGroup(tail.data());
}

}  // namespace h3rt
