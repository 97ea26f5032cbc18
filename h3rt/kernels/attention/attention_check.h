// Validation shared by every implementation of Attention.
#pragma once

#include "h3rt/kernels/attention/attention.h"

namespace h3rt {

absl::Status CheckAttention(const AttentionParams& params);

// The scale in force: 1 / sqrt(d) for 0.
float AttentionScale(const AttentionParams& params);

// How many keys query i sees; they are the first ones.
int64_t KeysSeen(const AttentionParams& params, int64_t query);

}  // namespace h3rt
