#include "h3rt/kernels/activation/ref/activation_ref.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "h3rt/cpu/convert.h"
#include "h3rt/kernels/activation/activation_check.h"

namespace h3rt {
namespace {

constexpr int64_t kElementsPerTask = 4096;

double Silu(double x) { return x / (1.0 + std::exp(-x)); }

double GeluTanh(double x) {
  const double inner = std::sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

double SnakeOf(double x, double a, double b) {
  const double s = std::sin(a * x);
  return x + s * s / (b + 1e-9);
}

// One channel, exactly as the definition reads: pad 5 / 5, transposed convolution with stride 2 and
// gain 2, crop 15 / 15, snake, pad 5 / 6, convolution with stride 2.
void AntiAliasedSnakeChannel(const float* x, int64_t n, double a, double b, const float* up,
                             const float* down, float* y) {
  std::vector<double> full(static_cast<size_t>(2 * n + 30), 0.0);
  for (int64_t i = 0; i < n + 10; ++i) {
    const auto sample = static_cast<double>(x[std::clamp<int64_t>(i - 5, 0, n - 1)]);
    for (int64_t k = 0; k < kSnakeTaps; ++k) {
      full[static_cast<size_t>(2 * i + k)] += 2.0 * sample * static_cast<double>(up[k]);
    }
  }
  std::vector<double> s(static_cast<size_t>(2 * n));
  for (int64_t j = 0; j < 2 * n; ++j) {
    s[static_cast<size_t>(j)] = SnakeOf(full[static_cast<size_t>(j + 15)], a, b);
  }
  for (int64_t o = 0; o < n; ++o) {
    double sum = 0.0;
    for (int64_t k = 0; k < kSnakeTaps; ++k) {
      const int64_t j = std::clamp<int64_t>(2 * o + k - 5, 0, 2 * n - 1);
      sum += s[static_cast<size_t>(j)] * static_cast<double>(down[k]);
    }
    y[o] = static_cast<float>(sum);
  }
}

}  // namespace

absl::Status SwiGluRef(const SwiGluParams& params, const ExecContext& context) {
  return context.ParallelFor(params.gate.dim(0), [&](int64_t i) {
    const float* gate = params.gate.as<float>() + i * params.gate.stride(0);
    const float* value = params.value.as<float>() + i * params.value.stride(0);
    float* y = params.y.as<float>() + i * params.y.stride(0);
    for (int64_t j = 0; j < params.gate.dim(1); ++j) {
      const double silu = Silu(static_cast<double>(gate[j]));
      if (params.round_bf16) {
        const float rounded = RoundToBf16(static_cast<float>(silu));
        y[j] = RoundToBf16(rounded * value[j]);
      } else {
        y[j] = static_cast<float>(silu * static_cast<double>(value[j]));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status ActivateRef(const ActivateParams& params, const ExecContext& context) {
  const int64_t n = params.x.elements();
  return context.ParallelFor((n + kElementsPerTask - 1) / kElementsPerTask, [&](int64_t task) {
    const int64_t begin = task * kElementsPerTask;
    for (int64_t i = begin; i < std::min(begin + kElementsPerTask, n); ++i) {
      const auto x = static_cast<double>(params.x.as<float>()[i]);
      params.y.as<float>()[i] =
          static_cast<float>(params.function == Pointwise::kSilu ? Silu(x) : GeluTanh(x));
    }
    return absl::OkStatus();
  });
}

absl::Status SnakeRef(const SnakeParams& params, const ExecContext& context) {
  const int64_t n = params.x.dim(1);
  return context.ParallelFor(params.x.dim(0), [&](int64_t c) {
    const auto a = static_cast<double>(params.alpha.as<float>()[c]);
    for (int64_t i = c * n; i < (c + 1) * n; ++i) {
      const auto x = static_cast<double>(params.x.as<float>()[i]);
      params.y.as<float>()[i] = static_cast<float>(SnakeOf(x, a, a));
    }
    return absl::OkStatus();
  });
}

absl::Status AntiAliasedSnakeRef(const AntiAliasedSnakeParams& params, const ExecContext& context) {
  const int64_t n = params.x.dim(1);
  if (n == 0) return absl::OkStatus();
  return context.ParallelFor(params.x.dim(0), [&](int64_t c) {
    const double a = std::exp(static_cast<double>(params.alpha.as<float>()[c]));
    const double b = std::exp(static_cast<double>(params.beta.as<float>()[c]));
    AntiAliasedSnakeChannel(params.x.as<float>() + c * n, n, a, b, params.up_filter.as<float>(),
                            params.down_filter.as<float>(), params.y.as<float>() + c * n);
    return absl::OkStatus();
  });
}

}  // namespace h3rt
