// The strict reference of Rope in float64, with the rounding points of C4 (e) where asked for.
#pragma once

#include "h3rt/kernels/rope/rope.h"

namespace h3rt {

absl::Status RopeRef(const RopeParams& params, const ExecContext& context);

}  // namespace h3rt
