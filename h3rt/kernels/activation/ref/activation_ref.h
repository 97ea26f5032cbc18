// The strict references of the activations in float64.
#pragma once

#include "h3rt/kernels/activation/activation_check.h"

namespace h3rt {

absl::Status SwiGluRef(const SwiGluParams& params, const ExecContext& context);
absl::Status ActivateRef(const ActivateParams& params, const ExecContext& context);
absl::Status SnakeRef(const SnakeParams& params, const ExecContext& context);
absl::Status AntiAliasedSnakeRef(const AntiAliasedSnakeParams& params, const ExecContext& context);

}  // namespace h3rt
