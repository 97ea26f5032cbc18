// Blocked attention for the host: oneDNN products and an online softmax.
#pragma once

#include "h3rt/kernels/attention/attention.h"

namespace h3rt {

absl::Status AttentionCpu(const AttentionParams& params, const ExecContext& context);

}  // namespace h3rt
