// The op on the host: in the device's order, and in float64.
#pragma once

#include "h3rt/kernels/add_norm/add_norm.h"

namespace h3rt {

absl::Status AddNormStrict(const AddNormParams& params, const ExecContext& context);
absl::Status AddNormRef(const AddNormParams& params, const ExecContext& context);

}  // namespace h3rt
