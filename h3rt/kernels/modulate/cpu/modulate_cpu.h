// Vectorised Modulate and GatedResidual for the host.
#pragma once

#include "h3rt/kernels/modulate/modulate.h"

namespace h3rt {

absl::Status ModulateCpu(const ModulateParams& params, const ExecContext& context);
absl::Status GatedResidualCpu(const GatedResidualParams& params, const ExecContext& context);

}  // namespace h3rt
