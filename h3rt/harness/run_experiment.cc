// Which gates of an experiment can run here.
#include <filesystem>
#include <iterator>

#include "h3rt/harness/compile.h"
#include "h3rt/harness/harness_run.h"
#include "h3rt/harness/host.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

// Compiles where the sources and nvcc are.
absl::Status Build(const Store& store, const Experiment& experiment, const RunRequest& request,
                   const CancelToken& cancel, std::vector<NewEvidence>& out) {
  CompileLimits limits;
  limits.cancel = &cancel;
  H3RT_ASSIGN_OR_RETURN(std::vector<NewEvidence> built,
                        RunBuildGate(store, experiment, request, limits));
  for (NewEvidence& evidence : built) {
    if (request.kind.empty() || TextAt(evidence.envelope, "kind") == request.kind) {
      out.push_back(std::move(evidence));
    }
  }
  return absl::OkStatus();
}

bool CanBuildHere(const Store& store, const Experiment& experiment) {
  // Nothing compiles arms of the host alone: this program holds them.
  if (IsHostExperiment(experiment)) return false;
  const char* source = !experiment.probes.empty() ? experiment.probes[0].source
                       : experiment.arms.empty() || experiment.arms[0].sources.empty()
                           ? nullptr
                           : experiment.arms[0].sources[0];
  std::error_code error;
  return source != nullptr && FindCudaProgram("nvcc") && fs::exists(store.PathOf(source), error);
}

}  // namespace

absl::StatusOr<std::vector<NewEvidence>> RunExperiment(const Store& store,
                                                       const RunRequest& request,
                                                       const CancelToken& cancel) {
  const Experiment* experiment = FindExperiment(request.id);
  if (experiment == nullptr) {
    return NotFound({.what = "no experiment of this build", .got = request.id});
  }
  if (!request.gate.empty() && request.gate != "build" && request.gate != "correct" &&
      request.gate != "isolated") {
    return Unimplemented({.what = "no producer of evidence for gate " + request.gate});
  }
  std::vector<NewEvidence> evidence;
  if (request.gate == "build" || (request.gate.empty() && CanBuildHere(store, *experiment))) {
    H3RT_RETURN_IF_ERROR(Build(store, *experiment, request, cancel, evidence));
  }
  const bool measures = experiment->arms.size() > 1 && experiment->arms[1].run != nullptr;
  if (request.gate == "build" || (request.gate.empty() && !measures && !evidence.empty())) {
    return evidence;
  }
  H3RT_ASSIGN_OR_RETURN(std::vector<NewEvidence> measured,
                        RunMeasured(ThisProgram(), store, *experiment, request, cancel));
  std::move(measured.begin(), measured.end(), std::back_inserter(evidence));
  return evidence;
}

}  // namespace h3rt::lab
