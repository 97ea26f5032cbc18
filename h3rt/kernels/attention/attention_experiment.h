// Experiments of exact attention: preparation, and the published schedule of each path.
#pragma once

#include <vector>

#include "h3rt/base/experiment.h"

namespace h3rt {

extern const Experiment kAttentionPreparationExperiment;
// vortex-exact-sage2-public-a16, -a32, -a1, -b.
extern const std::vector<Experiment> kSage2PublicExperiments;

}  // namespace h3rt
