// The experiments that this build knows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "h3rt/base/experiment.h"

namespace h3rt::lab {

// Every experiment of this build, by one line each.
std::span<const Experiment* const> ExperimentList();
const Experiment* FindExperiment(std::string_view id);

// What makes the inputs of arms from a seed; `workload.generator` of evidence.
inline constexpr char kInputGenerator[] = "splitmix64/1";
// The same of recorded cases of exact attention (h3rt/kernels/attention/exact/inputs.h).
inline constexpr char kGoldenGenerator[] = "attention-golden/1";

// Experiments of the compiler alone: what it takes and refuses for a target, each beside a control.
const std::vector<const Experiment*>& CompileProbeExperiments();

}  // namespace h3rt::lab
