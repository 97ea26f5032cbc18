// Every experiment of this build: kernels, one line each, and those of the compiler alone.
#include "h3rt/kernels/add_norm/add_norm_experiment.h"
#include "h3rt/kernels/attention/attention_experiment.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {

const std::vector<const Experiment*>& CompileProbeExperiments() {
  using enum CompileProbe::Outcome;
  static const auto* const probes = new std::vector<Experiment>{
      {.id = "wgmma-hopper-retarget",
       .targets = {"sm_121a"},
       .probes = {{"wgmma", "research/probes/wgmma.cu", "sm_121a", kRejected, "sm_90a", kOk,
                   "'wgmma.mma_async with floating point types' not supported on .target "
                   "'sm_121a'"}}},
      {.id = "umma-int8-sm121",
       .targets = {"sm_121a"},
       .probes = {{"umma", "research/probes/umma_int8.cu", "sm_121a", kRejected, "sm_100a", kOk,
                   "'tcgen05.mma' not supported on .target 'sm_121a'"},
                  // The path that stays supported.
                  {"mma-sync", "research/probes/mma_int8.cu", "sm_121a", kOk, "sm_90a", kOk}}},
      {.id = "mma-mxf4nvf4-block-scale",
       .targets = {"sm_121a", "sm_90a"},
       .probes = {{"block-scale", "research/probes/mma_mxf4nvf4.cu", "sm_121a", kOk, "sm_90a",
                   kRejected, "'mma with block scale' not supported on .target 'sm_90a'"},
                  {"block-scale", "research/probes/mma_mxf4nvf4.cu", "sm_90a", kRejected, "sm_121a",
                   kOk, "'mma with block scale' not supported on .target 'sm_90a'"}}},
      {.id = "compiler-planted-spill",
       .targets = {"sm_90a", "sm_121a"},
       .probes = {{"spill", "research/probes/spill.cu", "sm_121a", kOk, "sm_90a", kOk, "",
                   /*expect_spill=*/true}}}};
  static const auto* const all = [] {
    auto* const pointers = new std::vector<const Experiment*>;
    for (const Experiment& experiment : *probes) pointers->push_back(&experiment);
    return pointers;
  }();
  return *all;
}

std::span<const Experiment* const> ExperimentList() {
  static const auto* const list = [] {
    auto* const experiments = new std::vector<const Experiment*>{
        &kAddNormExperiment,
        &kAddNormHostExperiment,
        &kAttentionPreparationExperiment,
    };
    for (const Experiment& path : kSage2PublicExperiments) experiments->push_back(&path);
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
