#include "h3rt/kernels/modulate/cpu/modulate_cpu.h"

#include <algorithm>

#include "h3rt/cpu/multiversion.h"
#include "h3rt/cpu/tasks.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

H3RT_MULTIVERSION void ModulateRow(const float* x, const float* shift, const float* scale,
                                   int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * (1.0f + scale[i]) + shift[i];
}

H3RT_MULTIVERSION void ModulateRowRounded(const float* x, const float* shift, const float* scale,
                                          int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = RoundToBf16(RoundToBf16(x[i] * RoundToBf16(1.0f + scale[i])) + shift[i]);
  }
}

H3RT_MULTIVERSION void AddRow(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] += y[i];
}

H3RT_MULTIVERSION void AddRowRounded(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = RoundToBf16(x[i] + RoundToBf16(y[i]));
}

H3RT_MULTIVERSION void GatedRow(float* x, const float* gate, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] += gate[i] * y[i];
}

H3RT_MULTIVERSION void GatedRowRounded(float* x, const float* gate, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = RoundToBf16(x[i] + RoundToBf16(gate[i] * y[i]));
}

}  // namespace

absl::Status ModulateCpu(const ModulateParams& params, const ExecContext& context) {
  const int64_t c = params.x.dim(1);
  const int64_t rows = RowsPerTask(c);
  return context.ParallelFor((params.x.dim(0) + rows - 1) / rows, [&](int64_t task) {
    for (int64_t i = task * rows; i < std::min((task + 1) * rows, params.x.dim(0)); ++i) {
      const int64_t row = params.row[static_cast<size_t>(i)];
      const float* x = params.x.as<float>() + i * params.x.stride(0);
      const float* shift = params.shift.as<float>() + row * params.shift.stride(0);
      const float* scale = params.scale.as<float>() + row * params.scale.stride(0);
      float* y = params.y.as<float>() + i * params.y.stride(0);
      params.round_bf16 ? ModulateRowRounded(x, shift, scale, c, y)
                        : ModulateRow(x, shift, scale, c, y);
    }
    return absl::OkStatus();
  });
}

absl::Status GatedResidualCpu(const GatedResidualParams& params, const ExecContext& context) {
  const int64_t c = params.x.dim(1);
  const int64_t rows = RowsPerTask(c);
  const bool gated = !params.gate.is_null();
  return context.ParallelFor((params.x.dim(0) + rows - 1) / rows, [&](int64_t task) {
    for (int64_t i = task * rows; i < std::min((task + 1) * rows, params.x.dim(0)); ++i) {
      float* x = params.x.as<float>() + i * params.x.stride(0);
      const float* y = params.y.as<float>() + i * params.y.stride(0);
      if (!gated) {
        params.round_bf16 ? AddRowRounded(x, y, c) : AddRow(x, y, c);
        continue;
      }
      const float* gate =
          params.gate.as<float>() + params.row[static_cast<size_t>(i)] * params.gate.stride(0);
      params.round_bf16 ? GatedRowRounded(x, gate, y, c) : GatedRow(x, gate, y, c);
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
