#include "h3rt/kernels/conv/ref/conv_ref.h"

#include <algorithm>

#include "h3rt/cpu/convert.h"

namespace h3rt {
namespace {

// The sum of one output element at (ot, oh, ow) of channel co, without the bias.
double ConvSum(const Conv3dParams& params, int64_t co, int64_t ot, int64_t oh, int64_t ow) {
  const auto& x = params.x;
  const auto& w = params.weight;
  double sum = 0.0;
  for (int64_t ci = 0; ci < x.dim(0); ++ci) {
    for (int64_t kt = 0; kt < w.dim(2); ++kt) {
      const int64_t t = ot * params.stride[0] + kt * params.dilation[0] - params.pad_begin[0];
      if (t < 0 || t >= x.dim(1)) continue;
      for (int64_t kh = 0; kh < w.dim(3); ++kh) {
        const int64_t h = oh * params.stride[1] + kh * params.dilation[1] - params.pad_begin[1];
        if (h < 0 || h >= x.dim(2)) continue;
        const float* row = x.as<float>() + ((ci * x.dim(1) + t) * x.dim(2) + h) * x.dim(3);
        const int64_t weights = (((co * w.dim(1) + ci) * w.dim(2) + kt) * w.dim(3) + kh) * w.dim(4);
        for (int64_t kw = 0; kw < w.dim(4); ++kw) {
          const int64_t c = ow * params.stride[2] + kw * params.dilation[2] - params.pad_begin[2];
          if (c < 0 || c >= x.dim(3)) continue;
          sum += static_cast<double>(row[c]) * LoadElement(w, weights + kw);
        }
      }
    }
  }
  return sum;
}

}  // namespace

absl::Status Conv3dRef(const Conv3dParams& params, const ExecContext& context) {
  const auto& y = params.y;
  const int64_t rows = y.dim(0) * y.dim(1) * y.dim(2);
  return context.ParallelFor(rows, [&](int64_t row) {
    const int64_t co = row / (y.dim(1) * y.dim(2));
    const double bias = params.bias.is_null() ? 0.0 : LoadElement(params.bias, co);
    float* to = y.as<float>() + row * y.dim(3);
    for (int64_t ow = 0; ow < y.dim(3); ++ow) {
      const int64_t ot = row / y.dim(2) % y.dim(1);
      to[ow] = static_cast<float>(ConvSum(params, co, ot, row % y.dim(2), ow) + bias);
    }
    return absl::OkStatus();
  });
}

absl::Status ConvTranspose1dRef(const ConvTranspose1dParams& params, const ExecContext& context) {
  const int64_t ci = params.x.dim(0);
  const int64_t n = params.x.dim(1);
  const int64_t co = params.weight.dim(1);
  const int64_t kernel = params.weight.dim(2);
  const int64_t length = params.y.dim(1);
  return context.ParallelFor(co, [&](int64_t c) {
    const double bias = params.bias.is_null() ? 0.0 : LoadElement(params.bias, c);
    for (int64_t o = 0; o < length; ++o) {
      // Inputs i with 0 <= o - i * stride + pad < kernel.
      const int64_t shifted = o + params.pad;
      const int64_t last = std::min(n - 1, shifted / params.stride);
      double sum = bias;
      for (int64_t i = last; i >= 0 && shifted - i * params.stride < kernel; --i) {
        const int64_t tap = shifted - i * params.stride;
        for (int64_t a = 0; a < ci; ++a) {
          sum += static_cast<double>(params.x.as<float>()[a * n + i]) *
                 LoadElement(params.weight, (a * co + c) * kernel + tap);
        }
      }
      params.y.as<float>()[c * length + o] = static_cast<float>(sum);
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
