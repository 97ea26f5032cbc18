#include "h3rt/cpu/math.h"

#include <algorithm>

namespace h3rt {
namespace {

constexpr int64_t kBlock = 256;

H3RT_MULTIVERSION void ExpLoop(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = ExpF(x[i]);
}

H3RT_MULTIVERSION void SiluLoop(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = SiluF(x[i]);
}

H3RT_MULTIVERSION void GeluTanhLoop(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = GeluTanhF(x[i]);
}

// Fills s with sin^2(a x) and returns how many arguments were out of reach of SinSquaredF.
H3RT_MULTIVERSION int32_t SinSquaredLoop(const float* x, int64_t n, float a, float* s) {
  int32_t far = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float v = a * x[i];
    s[i] = SinSquaredF(v);
    far += std::fabs(v) > kSinSquaredLimit ? 1 : 0;
  }
  return far;
}

H3RT_MULTIVERSION void AddScaled(const float* x, const float* s, int64_t n, float factor,
                                 float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + s[i] * factor;
}

}  // namespace

void ExpRow(const float* x, int64_t n, float* y) { ExpLoop(x, n, y); }
void SiluRow(const float* x, int64_t n, float* y) { SiluLoop(x, n, y); }
void GeluTanhRow(const float* x, int64_t n, float* y) { GeluTanhLoop(x, n, y); }

void SnakeRow(const float* x, int64_t n, float a, float inverse_b, float* y) {
  float s[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t size = std::min(kBlock, n - begin);
    if (SinSquaredLoop(x + begin, size, a, s) > 0) {
      for (int64_t i = 0; i < size; ++i) {
        const float v = a * x[begin + i];
        if (std::fabs(v) > kSinSquaredLimit) s[i] = SinSquaredFar(v);
      }
    }
    AddScaled(x + begin, s, size, inverse_b, y + begin);
  }
}

}  // namespace h3rt
