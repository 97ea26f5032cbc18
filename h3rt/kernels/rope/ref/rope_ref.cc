#include "h3rt/kernels/rope/ref/rope_ref.h"

#include "h3rt/cpu/convert.h"

namespace h3rt {
absl::Status RopeRef(const RopeParams& params, const ExecContext& context) {
  const auto& x = params.x;
  const int64_t r = params.cos.dim(1);
  const bool rn = params.round_bf16;
  return context.ParallelFor(x.dim(0), [&](int64_t i) {
    for (int64_t h = 0; h < x.dim(1); ++h) {
      float* row = x.as<float>() + i * x.stride(0) + h * x.stride(1);
      for (int64_t j = 0; j < r; ++j) {
        const auto cos = static_cast<double>(params.cos.as<float>()[i * params.cos.stride(0) + j]);
        const auto sin = static_cast<double>(params.sin.as<float>()[i * params.sin.stride(0) + j]);
        const double c = RoundedIf(rn, cos);
        const double s = RoundedIf(rn, sin);
        const auto a = static_cast<double>(row[j]);
        const auto b = static_cast<double>(row[j + r]);
        row[j] = static_cast<float>(RoundedIf(rn, RoundedIf(rn, a * c) - RoundedIf(rn, b * s)));
        row[j + r] = static_cast<float>(RoundedIf(rn, RoundedIf(rn, b * c) + RoundedIf(rn, a * s)));
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
