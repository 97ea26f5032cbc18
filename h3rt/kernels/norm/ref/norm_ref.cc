#include "h3rt/kernels/norm/ref/norm_ref.h"

#include <cmath>

#include "h3rt/cpu/convert.h"

namespace h3rt {

absl::Status RmsNormRef(const RmsNormParams& params, const ExecContext& context) {
  const auto& x = params.x;
  const auto& y = params.y;
  const bool heads = x.rank() == 3;
  const int64_t inner = heads ? x.dim(1) : 1;
  const int64_t c = x.dim(x.rank() - 1);
  return context.ParallelFor(x.dim(0) * inner, [&](int64_t row) {
    const int64_t i = row / inner;
    const int64_t h = row % inner;
    const float* from = x.as<float>() + i * x.stride(0) + (heads ? h * x.stride(1) : 0);
    float* to = y.as<float>() + i * y.stride(0) + (heads ? h * y.stride(1) : 0);
    double sum = 0.0;
    for (int64_t j = 0; j < c; ++j) {
      sum += static_cast<double>(from[j]) * static_cast<double>(from[j]);
    }
    const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(c) + params.eps);
    for (int64_t j = 0; j < c; ++j) {
      const double w = params.weight.is_null()
                           ? 1.0
                           : RoundedIf(params.round_weight_bf16, LoadElement(params.weight, j));
      const auto value = static_cast<float>(static_cast<double>(from[j]) * inverse * w);
      to[j] = params.round_bf16 ? RoundToBf16(value) : value;
    }
    return absl::OkStatus();
  });
}

absl::Status LayerNormRef(const LayerNormParams& params, const ExecContext& context) {
  const int64_t c = params.x.dim(1);
  return context.ParallelFor(params.x.dim(0), [&](int64_t row) {
    const float* from = params.x.as<float>() + row * params.x.stride(0);
    float* to = params.y.as<float>() + row * params.y.stride(0);
    double sum = 0.0;
    for (int64_t j = 0; j < c; ++j) sum += static_cast<double>(from[j]);
    const double mean = sum / static_cast<double>(c);
    double squares = 0.0;
    for (int64_t j = 0; j < c; ++j) {
      const double centred = static_cast<double>(from[j]) - mean;
      squares += centred * centred;
    }
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(c) + params.eps);
    for (int64_t j = 0; j < c; ++j) {
      to[j] = static_cast<float>((static_cast<double>(from[j]) - mean) * inverse *
                                     LoadElement(params.weight, j) +
                                 LoadElement(params.bias, j));
    }
    return absl::OkStatus();
  });
}

absl::Status GroupNormRef(const GroupNormParams& params, const ExecContext& context) {
  const auto& x = params.x;
  const int64_t frames = x.dim(1);
  const int64_t plane = x.dim(2) * x.dim(3);
  const int64_t channels = x.dim(0) / params.groups;
  return context.ParallelFor(params.groups * frames, [&](int64_t task) {
    const int64_t first = task / frames * channels;
    const int64_t t = task % frames;
    const auto count = static_cast<double>(channels * plane);
    const auto at = [&](int64_t c) { return ((first + c) * frames + t) * plane; };
    double sum = 0.0;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < plane; ++i) sum += static_cast<double>(x.as<float>()[at(c) + i]);
    }
    const double mean = sum / count;
    double squares = 0.0;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < plane; ++i) {
        const double centred = static_cast<double>(x.as<float>()[at(c) + i]) - mean;
        squares += centred * centred;
      }
    }
    const double inverse = 1.0 / std::sqrt(squares / count + params.eps);
    for (int64_t c = 0; c < channels; ++c) {
      const double w = LoadElement(params.weight, first + c);
      const double b = LoadElement(params.bias, first + c);
      for (int64_t i = 0; i < plane; ++i) {
        const double centred = static_cast<double>(x.as<float>()[at(c) + i]) - mean;
        const double value = centred * inverse * w + b;
        params.y.as<float>()[at(c) + i] =
            static_cast<float>(params.silu ? value / (1.0 + std::exp(-value)) : value);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
