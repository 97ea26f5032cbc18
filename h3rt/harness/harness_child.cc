// The side of the harness that touches the device, in a process of its own.
#include <unistd.h>

#include "h3rt/base/file.h"
#include "h3rt/base/utc.h"
#include "h3rt/harness/environment.h"
#include "h3rt/harness/harness_run.h"
#include "h3rt/harness/host.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {
namespace {

absl::StatusOr<const ExperimentArm*> ArmOf(const Experiment& experiment, const std::string& vid) {
  for (const ExperimentArm& arm : experiment.arms) {
    if (vid != arm.vid) continue;
    if (arm.run != nullptr) return &arm;
    return FailedPrecondition({.what = "this build holds no device code",
                               .got = vid,
                               .wanted = "one configured with -DH3RT_CUDA=ON"});
  }
  return NotFound({.what = "no such arm", .got = vid, .where = experiment.id});
}

// One process of a pair, or ("single") of the candidate alone.
absl::StatusOr<Doc> Time(const Experiment& experiment, const Doc& request,
                         const ExperimentArm& candidate, const std::string& samples_file) {
  const bool single = TextAt(request, "task") == "single";
  const ExperimentArm* baseline = nullptr;
  if (!single) {
    H3RT_ASSIGN_OR_RETURN(baseline, ArmOf(experiment, TextAt(request, "baseline")));
  } else if (!IsHostExperiment(experiment)) {
    return Unimplemented({.what = "timing_single on a GPU", .where = experiment.id});
  }
  const auto time_pair = IsHostExperiment(experiment) ? HostTimePair : GpuTimePair;
  const auto process = static_cast<uint16_t>(IntAt(request, "process"));
  for (const ExperimentWorkload& workload : experiment.workloads) {
    if (TextAt(request, "workload") != workload.id) continue;
    H3RT_ASSIGN_OR_RETURN(
        const GpuTiming timing,
        single ? HostTimeSingle(experiment, candidate, workload, IntAt(request, "samples"), process)
               : time_pair(experiment, *baseline, candidate, workload, IntAt(request, "quads"),
                           process, BoolAt(request, "candidate_first"), IntAt(request, "batch")));
    H3RT_RETURN_IF_ERROR(WriteFileAtomically(samples_file, PackSamples(timing.samples)));
    return timing.facts;
  }
  return NotFound({.what = "no such workload", .got = TextAt(request, "workload")});
}

absl::StatusOr<Doc> Do(const Experiment* experiment, const Doc& request,
                       const std::string& samples_file) {
  const std::string task = TextAt(request, "task");
  if (task == "plant") {
    // Some faults end as an error of the device: that is what was planted.
    const absl::Status planted = GpuPlantedFault(TextAt(request, "tool"));
    if (absl::IsFailedPrecondition(planted) || absl::IsInvalidArgument(planted)) return planted;
    return Doc{{"device", planted.ok() ? "went on" : MessageOf(planted)}};
  }
  if (experiment == nullptr) {
    return NotFound({.what = "no such experiment", .got = TextAt(request, "experiment")});
  }
  H3RT_ASSIGN_OR_RETURN(const ExperimentArm* arm, ArmOf(*experiment, TextAt(request, "vid")));
  if (task == "launch") return GpuLaunchOnce(*experiment, *arm, BoolAt(request, "canonical"));
  if (task == "time" || task == "single") return Time(*experiment, request, *arm, samples_file);
  if (task == "parity") {
    for (const ExperimentCheck& check : experiment->checks) {
      if (TextAt(request, "against") != check.against) continue;
      const auto parity = IsHostExperiment(*experiment) ? HostParity : GpuParity;
      return parity(*experiment, *arm, check, IntAt(request, "repeat_launches"));
    }
  }
  return InvalidArgument({.what = "task of a child", .got = request.dump()});
}

}  // namespace

absl::Status RunChild(const std::string& request_file, const Experiment* experiment) {
  const int64_t start_us = NowNs() / 1000;
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(request_file, uint64_t{1} << 20));
  Findings findings;
  const std::optional<Doc> request = ParseDocument(text, request_file, 1, findings);
  if (!request || !request->is_object()) {
    return InvalidArgument({.what = "request of a child", .where = request_file});
  }
  // A planted fault is watched alone: nothing else of ours runs beside it.
  const bool alone = TextAt(*request, "task") == "plant";
  if (experiment == nullptr) experiment = FindExperiment(TextAt(*request, "experiment"));
  const bool host = experiment != nullptr && IsHostExperiment(*experiment);
  absl::StatusOr<Doc> environment = alone ? Doc() : host ? HostEnvironment() : GpuEnvironment();
  const absl::StatusOr<std::string> target = alone  ? std::string()
                                             : host ? std::string("host")
                                                    : GpuTarget();
  absl::StatusOr<Doc> result = environment.ok()
                                   ? Do(experiment, *request, request_file + kSamplesSuffix)
                                   : absl::StatusOr<Doc>(environment.status());
  Doc answer;
  if (result.ok()) {
    const absl::StatusOr<Doc> after = alone || host ? *environment : GpuEnvironment();
    for (const auto& [to, from] : {std::pair{"clock_after_mhz", "clock_before_mhz"},
                                   {"throttle_after", "throttle_before"},
                                   {"temperature_after_c", "temperature_before_c"}}) {
      if (!alone && after.ok()) (*environment)["instance"][to] = (*after)["instance"][from];
    }
    answer = {{"ok", true},
              {"result", *result},
              {"environment", *environment},
              {"target", target.ok() ? *target : std::string()},
              {"pid", int64_t{::getpid()}},
              {"start_us", start_us}};
  } else {
    answer = {{"ok", false},
              {"code", static_cast<int64_t>(result.status().code())},
              {"message", MessageOf(result.status())}};
  }
  return WriteFileAtomically(request_file + kAnswerSuffix, CanonicalText(answer));
}

}  // namespace h3rt::lab
