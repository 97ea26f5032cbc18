#include "h3rt/kernels/norm/cpu/norm_cpu.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "h3rt/cpu/convert.h"
#include "h3rt/cpu/math.h"
#include "h3rt/cpu/reduce.h"
#include "h3rt/cpu/tasks.h"

namespace h3rt {
namespace {

H3RT_MULTIVERSION void ScaleRow(const float* x, int64_t n, float factor, const float* w,
                                bool round_bf16, float* y) {
  if (round_bf16) {
    for (int64_t i = 0; i < n; ++i) y[i] = RoundToBf16(x[i] * factor * w[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor * w[i];
  }
}

H3RT_MULTIVERSION void ScalePlainRow(const float* x, int64_t n, float factor, bool round_bf16,
                                     float* y) {
  if (round_bf16) {
    for (int64_t i = 0; i < n; ++i) y[i] = RoundToBf16(x[i] * factor);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
  }
}

// The mean may be far larger than the spread, so the difference is formed in float64.
H3RT_MULTIVERSION void AffineRow(const float* x, int64_t n, double mean, double factor,
                                 const float* w, const float* b, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * factor) * w[i] + b[i];
  }
}

H3RT_MULTIVERSION void AffinePlane(const float* x, int64_t n, double mean, double factor, float w,
                                   float b, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * factor) * w + b;
  }
}

std::vector<float> Widened(const ConstTensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.elements()));
  WidenRow(view, 0, view.elements(), values.data());
  return values;
}

}  // namespace

absl::Status RmsNormCpu(const RmsNormParams& params, const ExecContext& context) {
  const auto& x = params.x;
  const auto& y = params.y;
  const bool heads = x.rank() == 3;
  const int64_t inner = heads ? x.dim(1) : 1;
  const int64_t c = x.dim(x.rank() - 1);
  const int64_t rows = x.dim(0) * inner;
  if (c == 0) return absl::OkStatus();
  std::vector<float> weight;
  if (!params.weight.is_null()) weight = Widened(params.weight);
  if (params.round_weight_bf16) {
    RoundRowToBf16(weight.data(), static_cast<int64_t>(weight.size()));
  }
  const int64_t per_task = RowsPerTask(c);
  return context.ParallelFor((rows + per_task - 1) / per_task, [&](int64_t task) {
    for (int64_t row = task * per_task; row < std::min((task + 1) * per_task, rows); ++row) {
      const int64_t i = row / inner;
      const int64_t h = row % inner;
      const float* from = x.as<float>() + i * x.stride(0) + (heads ? h * x.stride(1) : 0);
      float* to = y.as<float>() + i * y.stride(0) + (heads ? h * y.stride(1) : 0);
      const double mean = SumOfSquares(from, c) / static_cast<double>(c);
      const auto factor = static_cast<float>(1.0 / std::sqrt(mean + params.eps));
      weight.empty() ? ScalePlainRow(from, c, factor, params.round_bf16, to)
                     : ScaleRow(from, c, factor, weight.data(), params.round_bf16, to);
    }
    return absl::OkStatus();
  });
}

absl::Status LayerNormCpu(const LayerNormParams& params, const ExecContext& context) {
  const int64_t rows = params.x.dim(0);
  const int64_t c = params.x.dim(1);
  if (c == 0) return absl::OkStatus();
  const std::vector<float> weight = Widened(params.weight);
  const std::vector<float> bias = Widened(params.bias);
  const int64_t per_task = RowsPerTask(c);
  return context.ParallelFor((rows + per_task - 1) / per_task, [&](int64_t task) {
    for (int64_t row = task * per_task; row < std::min((task + 1) * per_task, rows); ++row) {
      const float* from = params.x.as<float>() + row * params.x.stride(0);
      float* to = params.y.as<float>() + row * params.y.stride(0);
      const double mean = Sum(from, c) / static_cast<double>(c);
      const double variance = SumOfSquaresAbout(from, c, mean) / static_cast<double>(c);
      const double factor = 1.0 / std::sqrt(variance + params.eps);
      AffineRow(from, c, mean, factor, weight.data(), bias.data(), to);
    }
    return absl::OkStatus();
  });
}

absl::Status GroupNormCpu(const GroupNormParams& params, const ExecContext& context) {
  const auto& x = params.x;
  const int64_t frames = x.dim(1);
  const int64_t plane = x.dim(2) * x.dim(3);
  const int64_t channels = x.dim(0) / params.groups;
  if (x.elements() == 0) return absl::OkStatus();
  const std::vector<float> weight = Widened(params.weight);
  const std::vector<float> bias = Widened(params.bias);
  return context.ParallelFor(params.groups * frames, [&](int64_t task) {
    const int64_t first = task / frames * channels;
    const auto at = [&](int64_t c) { return ((first + c) * frames + task % frames) * plane; };
    const auto count = static_cast<double>(channels * plane);
    double sum = 0.0;
    for (int64_t c = 0; c < channels; ++c) sum += Sum(x.as<float>() + at(c), plane);
    const double mean = sum / count;
    double squares = 0.0;
    for (int64_t c = 0; c < channels; ++c) {
      squares += SumOfSquaresAbout(x.as<float>() + at(c), plane, mean);
    }
    const double factor = 1.0 / std::sqrt(squares / count + params.eps);
    for (int64_t c = 0; c < channels; ++c) {
      float* to = params.y.as<float>() + at(c);
      const auto channel = static_cast<size_t>(first + c);
      AffinePlane(x.as<float>() + at(c), plane, mean, factor, weight[channel], bias[channel], to);
      if (params.silu) SiluRow(to, plane, to);
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
