// Tables that depend on the request alone: rotary angles and timestep features. Private to the dit
// folder.
#pragma once

#include <span>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/tensor/view.h"

namespace h3rt::dit {

// cos and sin [rows, 3 n] of positions [rows, 3]: angle (axis, j) = float(position) * f_j with
// f_j = theta^(-j / n), all in float32 (C8).
absl::Status FillRotary(std::span<const double> positions, const DitConfig& config,
                        const TensorView& cos, const TensorView& sin, const ExecContext& context);

// Row i of out [m, freq_dim]: cos(tau_i f_j), then sin(tau_i f_j), f_j = exp(-ln(1e4) j / half).
void FillTimestepFeatures(std::span<const float> timesteps, const TensorView& out);

// Row i of out [m, rank]: the pruned model's curve [1025, rank] at tau_i, linear between its points
// (spec h3 section 2.4).
void LookUpCurve(std::span<const float> timesteps, const ConstTensorView& curve,
                 const TensorView& out);

}  // namespace h3rt::dit
