#include "h3rt/model/dit/embed.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "h3rt/model/dit/weights.h"

namespace h3rt::dit {
namespace {

// theta^(-j/n) as the public code rounds it: the power in float32, then its reciprocal. The power
// is taken in float64 first, so that no C library's powf decides the last bit.
std::vector<float> InverseFrequencies(const DitConfig& config) {
  std::vector<float> f(static_cast<size_t>(config.rope_freq_dim));
  for (size_t j = 0; j < f.size(); ++j) {
    const float exponent = static_cast<float>(j) / static_cast<float>(config.rope_freq_dim);
    f[j] = 1.0f / static_cast<float>(std::pow(config.rope_theta, static_cast<double>(exponent)));
  }
  return f;
}

}  // namespace

absl::Status FillRotary(std::span<const double> positions, const DitConfig& config,
                        const TensorView& cos, const TensorView& sin, const ExecContext& context) {
  constexpr int64_t kRows = 256;
  const std::vector<float> f = InverseFrequencies(config);
  const auto n = static_cast<int64_t>(f.size());
  const int64_t rows = cos.dim(0);
  float* cos_data = cos.as<float>();
  float* sin_data = sin.as<float>();
  return context.ParallelFor((rows + kRows - 1) / kRows, [&](int64_t chunk) {
    const int64_t end = std::min(rows, (chunk + 1) * kRows);
    for (int64_t i = 3 * chunk * kRows; i < 3 * end; ++i) {
      const auto position = static_cast<float>(positions[static_cast<size_t>(i)]);
      for (int64_t j = 0; j < n; ++j) {
        const auto angle = static_cast<double>(position * f[static_cast<size_t>(j)]);
        cos_data[i * n + j] = static_cast<float>(std::cos(angle));
        sin_data[i * n + j] = static_cast<float>(std::sin(angle));
      }
    }
    return absl::OkStatus();
  });
}

void FillTimestepFeatures(std::span<const float> timesteps, const TensorView& out) {
  const int64_t width = out.dim(1);
  const int64_t half = width / 2;
  const auto log_period = static_cast<float>(-std::log(10000.0));
  float* row = out.as<float>();
  for (const float tau : timesteps) {
    for (int64_t j = 0; j < half; ++j) {
      const float exponent = log_period * static_cast<float>(j) / static_cast<float>(half);
      const auto f = static_cast<float>(std::exp(static_cast<double>(exponent)));
      const auto angle = static_cast<double>(tau * f);
      row[j] = static_cast<float>(std::cos(angle));
      row[half + j] = static_cast<float>(std::sin(angle));
    }
    row += width;
  }
}

void LookUpCurve(std::span<const float> timesteps, const ConstTensorView& curve,
                 const TensorView& out) {
  constexpr auto kIntervals = static_cast<float>(kCurvePoints - 1);
  const int64_t rank = curve.dim(1);
  const float* points = curve.as<float>();
  float* row = out.as<float>();
  for (const float tau : timesteps) {
    const float p = std::clamp(tau, 0.0f, 1.0f) * kIntervals;
    const auto i0 = std::min(static_cast<int64_t>(p), kCurvePoints - 2);
    const float t = p - static_cast<float>(i0);
    const float* a = points + i0 * rank;
    const float* b = a + rank;
    for (int64_t j = 0; j < rank; ++j) row[j] = a[j] + (b[j] - a[j]) * t;
    row += rank;
  }
}

}  // namespace h3rt::dit
