// Adaptive-norm modulation and gated residual of a packed sequence.
#pragma once

#include <cstdint>
#include <span>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// y_i = x_i * (1 + scale[row_i]) + shift[row_i].
struct ModulateParams {
  ConstTensorView x;             // [s, c] F32, unit stride in c
  ConstTensorView shift;         // [rows, c] F32, unit stride in c, any row stride
  ConstTensorView scale;         // [rows, c] F32
  std::span<const int32_t> row;  // [s], each in [0, rows)
  TensorView y;                  // [s, c] F32; may be x itself
  bool round_bf16 = false;       // C4 (d): RN(RN(x * RN(1 + scale)) + shift)
};
[[nodiscard]] absl::Status Modulate(const ModulateParams& params, const ExecContext& context);

// x_i = x_i + gate[row_i] * y_i.
struct GatedResidualParams {
  TensorView x;                  // [s, c] F32, changed in place
  ConstTensorView gate;          // [rows, c] F32; null: 1
  std::span<const int32_t> row;  // [s]; not read when gate is null
  ConstTensorView y;             // [s, c] F32
  bool round_bf16 = false;       // C4 (g): RN(x + RN(gate * y))
};
[[nodiscard]] absl::Status GatedResidual(const GatedResidualParams& params,
                                         const ExecContext& context);

// Source: spec h3 section 2.5. Implementations: cpu, ref (float64).

}  // namespace h3rt
