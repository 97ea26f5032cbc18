// Every experiment of this build, one line each.
#include "h3rt/kernels/add_norm/add_norm_experiment.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {

std::span<const Experiment* const> ExperimentList() {
  static const auto* const list = [] {
    auto* const experiments = new std::vector<const Experiment*>{
        &kAddNormExperiment,
    };
    const std::vector<const Experiment*>& probes = CompileProbeExperiments();
    experiments->insert(experiments->end(), probes.begin(), probes.end());
    return experiments;
  }();
  return *list;
}

const Experiment* FindExperiment(std::string_view id) {
  for (const Experiment* experiment : ExperimentList()) {
    if (id == experiment->id) return experiment;
  }
  return nullptr;
}

}  // namespace h3rt::lab
