// Validation shared by every implementation of Modulate and GatedResidual.
#pragma once

#include "h3rt/kernels/modulate/modulate.h"

namespace h3rt {

absl::Status CheckModulate(const ModulateParams& params);
absl::Status CheckGatedResidual(const GatedResidualParams& params);

}  // namespace h3rt
