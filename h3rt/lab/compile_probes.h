// Experiments of the compiler alone: what it takes and refuses for a target, each beside a control.
#pragma once

#include <vector>

#include "h3rt/base/experiment.h"

namespace h3rt::lab {

// wgmma-hopper-retarget, umma-int8-sm121, mma-mxf4nvf4-block-scale, compiler-planted-spill. Their
// sources lie in research/probes/.
const std::vector<const Experiment*>& CompileProbeExperiments();

}  // namespace h3rt::lab
