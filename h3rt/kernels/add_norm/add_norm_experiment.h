// The experiments of this op, as the laboratory runs them.
#pragma once

#include "h3rt/base/experiment.h"

namespace h3rt {

// elem-fused-residual-rmsnorm: arms unfused (baseline), fused (candidate), fused_resident. Tensors
// x, r, w, h, y. Without device code the arms' `run` is null.
extern const Experiment kAddNormExperiment;
// host-add-norm-strict: ref (baseline, float64) and strict (candidate), both in host memory on one
// thread. The same tensors.
extern const Experiment kAddNormHostExperiment;

}  // namespace h3rt
