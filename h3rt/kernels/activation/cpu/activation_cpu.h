// Vectorised activations for the host.
#pragma once

#include "h3rt/kernels/activation/activation_check.h"

namespace h3rt {

absl::Status SwiGluCpu(const SwiGluParams& params, const ExecContext& context);
absl::Status ActivateCpu(const ActivateParams& params, const ExecContext& context);
absl::Status SnakeCpu(const SnakeParams& params, const ExecContext& context);
absl::Status AntiAliasedSnakeCpu(const AntiAliasedSnakeParams& params, const ExecContext& context);

}  // namespace h3rt
