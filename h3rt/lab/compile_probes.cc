#include "h3rt/lab/experiments.h"

namespace h3rt::lab {
namespace {

constexpr CompileProbe::Outcome kOk = CompileProbe::Outcome::kOk;
constexpr CompileProbe::Outcome kRejected = CompileProbe::Outcome::kRejected;

Experiment Probes(const char* id, std::vector<const char*> targets,
                  std::vector<CompileProbe> probes) {
  Experiment experiment;
  experiment.id = id;
  experiment.targets = std::move(targets);
  experiment.probes = std::move(probes);
  return experiment;
}

}  // namespace

const std::vector<const Experiment*>& CompileProbeExperiments() {
  static const Experiment* const wgmma = new Experiment(
      Probes("wgmma-hopper-retarget", {"sm_121a"},
             {{"wgmma", "research/probes/wgmma.cu", "sm_121a", kRejected, "sm_90a", kOk,
               "'wgmma.mma_async with floating point types' not supported on .target 'sm_121a'"}}));
  static const Experiment* const umma = new Experiment(
      Probes("umma-int8-sm121", {"sm_121a"},
             {{"umma", "research/probes/umma_int8.cu", "sm_121a", kRejected, "sm_100a", kOk,
               "'tcgen05.mma' not supported on .target 'sm_121a'"},
              // The path that stays supported.
              {"mma-sync", "research/probes/mma_int8.cu", "sm_121a", kOk, "sm_90a", kOk}}));
  static const Experiment* const mxf4 = new Experiment(
      Probes("mma-mxf4nvf4-block-scale", {"sm_121a", "sm_90a"},
             {{"block-scale", "research/probes/mma_mxf4nvf4.cu", "sm_121a", kOk, "sm_90a",
               kRejected, "'mma with block scale' not supported on .target 'sm_90a'"},
              {"block-scale", "research/probes/mma_mxf4nvf4.cu", "sm_90a", kRejected, "sm_121a",
               kOk, "'mma with block scale' not supported on .target 'sm_90a'"}}));
  static const Experiment* const spill = new Experiment(
      Probes("compiler-planted-spill", {"sm_90a", "sm_121a"},
             {{"spill", "research/probes/spill.cu", "sm_121a", kOk, "sm_90a", kOk, "",
               /*expect_spill=*/true}}));
  static const auto* const all = new std::vector<const Experiment*>{wgmma, umma, mxf4, spill};
  return *all;
}

}  // namespace h3rt::lab
