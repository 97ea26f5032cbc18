// The strict references of Modulate and GatedResidual in float64, with the rounding points of C4
// where asked for.
#pragma once

#include "h3rt/kernels/modulate/modulate.h"

namespace h3rt {

absl::Status ModulateRef(const ModulateParams& params, const ExecContext& context);
absl::Status GatedResidualRef(const GatedResidualParams& params, const ExecContext& context);

}  // namespace h3rt
