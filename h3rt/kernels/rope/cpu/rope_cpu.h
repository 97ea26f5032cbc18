// Vectorised Rope for the host.
#pragma once

#include "h3rt/kernels/rope/rope.h"

namespace h3rt {

absl::Status RopeCpu(const RopeParams& params, const ExecContext& context);

}  // namespace h3rt
