// elem-fused-residual-rmsnorm, as the laboratory runs it.
#pragma once

#include "h3rt/base/experiment.h"

namespace h3rt {

// arms: unfused (baseline), fused (candidate), fused_resident. Tensors x, r, w, h, y. Without
// device code the arms' `run` is null.
extern const Experiment kAddNormExperiment;

}  // namespace h3rt
