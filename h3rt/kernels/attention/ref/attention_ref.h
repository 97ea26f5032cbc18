// The strict reference of Attention: float64 scores, maximum, exponentials and sums, row by row.
#pragma once

#include "h3rt/kernels/attention/attention.h"

namespace h3rt {

absl::Status AttentionRef(const AttentionParams& params, const ExecContext& context);

}  // namespace h3rt
