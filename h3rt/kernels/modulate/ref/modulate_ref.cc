#include "h3rt/kernels/modulate/ref/modulate_ref.h"

#include "h3rt/cpu/convert.h"

namespace h3rt {
absl::Status ModulateRef(const ModulateParams& params, const ExecContext& context) {
  const bool rn = params.round_bf16;
  return context.ParallelFor(params.x.dim(0), [&](int64_t i) {
    const int64_t row = params.row[static_cast<size_t>(i)];
    const float* x = params.x.as<float>() + i * params.x.stride(0);
    const float* shift = params.shift.as<float>() + row * params.shift.stride(0);
    const float* scale = params.scale.as<float>() + row * params.scale.stride(0);
    float* y = params.y.as<float>() + i * params.y.stride(0);
    for (int64_t j = 0; j < params.x.dim(1); ++j) {
      const double factor = RoundedIf(rn, 1.0 + static_cast<double>(scale[j]));
      const double product = RoundedIf(rn, static_cast<double>(x[j]) * factor);
      y[j] = static_cast<float>(RoundedIf(rn, product + static_cast<double>(shift[j])));
    }
    return absl::OkStatus();
  });
}

absl::Status GatedResidualRef(const GatedResidualParams& params, const ExecContext& context) {
  const bool rn = params.round_bf16;
  return context.ParallelFor(params.x.dim(0), [&](int64_t i) {
    float* x = params.x.as<float>() + i * params.x.stride(0);
    const float* y = params.y.as<float>() + i * params.y.stride(0);
    const float* gate = nullptr;
    if (!params.gate.is_null()) {
      gate = params.gate.as<float>() + params.row[static_cast<size_t>(i)] * params.gate.stride(0);
    }
    for (int64_t j = 0; j < params.x.dim(1); ++j) {
      const double g = gate == nullptr ? 1.0 : static_cast<double>(gate[j]);
      const double product = RoundedIf(rn, g * static_cast<double>(y[j]));
      x[j] = static_cast<float>(RoundedIf(rn, static_cast<double>(x[j]) + product));
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
