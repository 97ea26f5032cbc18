// Validation shared by every implementation of Rope.
#pragma once

#include "h3rt/kernels/rope/rope.h"

namespace h3rt {

absl::Status CheckRope(const RopeParams& params);

}  // namespace h3rt
