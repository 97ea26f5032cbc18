// Every experiment of this build, one line each.
#include "h3rt/kernels/add_norm/add_norm_experiment.h"
#include "h3rt/lab/harness.h"

namespace h3rt::lab {
namespace {

constexpr const Experiment* kExperiments[] = {
    &kAddNormExperiment,
};

}  // namespace

std::span<const Experiment* const> ExperimentList() { return kExperiments; }

const Experiment* FindExperiment(std::string_view id) {
  for (const Experiment* experiment : kExperiments) {
    if (id == experiment->id) return experiment;
  }
  return nullptr;
}

}  // namespace h3rt::lab
