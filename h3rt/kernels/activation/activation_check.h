// Validation shared by every implementation of the activations.
#pragma once

#include "h3rt/kernels/activation/activation.h"

namespace h3rt {

// Taps of the resampling filters of AntiAliasedSnake.
inline constexpr int64_t kSnakeTaps = 12;

// What Activate gets, in one struct for the list of candidates.
struct ActivateParams {
  Pointwise function = Pointwise::kSilu;
  ConstTensorView x;
  TensorView y;
};

absl::Status CheckSwiGlu(const SwiGluParams& params);
absl::Status CheckActivate(const ConstTensorView& x, const TensorView& y);
absl::Status CheckSnake(const SnakeParams& params);
absl::Status CheckAntiAliasedSnake(const AntiAliasedSnakeParams& params);

}  // namespace h3rt
