// Evidence against what was declared before it: the experiment's arms and workloads, and the plan.
#include <algorithm>
#include <cmath>

#include "h3rt/base/utc.h"
#include "h3rt/lab/evidence_rules.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {

// What was measured must be what the experiment declares: another shape, fewer bytes to move,
// another baseline would let a time or a verdict speak of something else.
void CheckDeclared(const Evidence& evidence, Findings& findings) {
  const Doc& envelope = evidence.json;
  const Doc& body = At(envelope, "body");
  const auto add_if = [&](bool broken, const char* code, const std::string& pointer,
                          const std::string& message) {
    if (broken) findings.Add(code, evidence.file, 1, pointer, message);
  };
  const Experiment* const experiment = FindExperiment(TextAt(envelope, "experiment"));
  if (experiment == nullptr || experiment->arms.empty()) return;
  const auto arm = [&](const std::string& vid) {
    const auto& arms = experiment->arms;
    const auto found = std::find_if(arms.begin(), arms.end(),
                                    [&](const ExperimentArm& one) { return vid == one.vid; });
    return found == arms.end() ? nullptr : &*found;
  };
  const auto subject = [&](const Doc& block, const std::string& vid, const std::string& pointer) {
    const ExperimentArm* const declared = arm(vid);
    if (declared == nullptr)
      return add_if(true, "E-EV-REF", pointer, "no arm " + vid + " is declared");
    add_if(At(block, "source_paths") != Doc(declared->sources), "E-EV-REF",
           pointer + "/source_paths", "not the sources of " + vid);
    Doc kernels = Doc::array();
    for (const Doc& kernel : At(block, "kernels")) kernels.push_back(At(kernel, "symbol"));
    add_if(kernels != Doc(declared->kernels), "E-EV-REF", pointer + "/kernels",
           "not the kernels of " + vid);
  };
  subject(At(envelope, "subject"), TextAt(envelope, "vid"), "/subject");
  const Doc& invocation = At(envelope, "invocation");
  add_if(At(invocation, "exit_code") != 0 || !At(invocation, "signal").is_null(), "E-RULE",
         "/invocation", "the run did not end well, and only failure evidence may say so");
  if (TextAt(envelope, "kind") != "timing_pair") return;
  subject(At(At(envelope, "subject"), "baseline"), TextAt(body, "baseline"), "/subject/baseline");
  add_if(TextAt(body, "baseline") != experiment->arms[0].vid, "E-PAIR-MISMATCH", "/body/baseline",
         std::string("the baseline is ") + experiment->arms[0].vid);
  const Doc& workload = At(envelope, "workload");
  for (const ExperimentWorkload& one : experiment->workloads) {
    if (TextAt(workload, "id") != one.id) continue;
    Doc dims = Doc::object();
    for (size_t i = 0; i < one.dims.size(); ++i) dims[experiment->dim_names[i]] = one.dims[i];
    add_if(At(workload, "dims") != dims, "E-EV-REF", "/workload/dims",
           "declared are " + dims.dump());
    add_if(IntAt(body, "calls") != one.calls, "E-EV-REF", "/body/calls",
           "declared are " + std::to_string(one.calls));
    add_if(IntAt(body, "bytes") != std::llround(experiment->least_bytes(one.dims)), "E-IMPOSSIBLE",
           "/body/bytes", "not what the experiment must move");
    add_if(IntAt(body, "operations") != std::llround(experiment->least_operations(one.dims)),
           "E-IMPOSSIBLE", "/body/operations", "not what the experiment must do");
    return;
  }
  add_if(true, "E-EV-REF", "/workload/id",
         "no workload " + TextAt(workload, "id") + " is declared");
}

std::string WhyNotPlanned(const Doc& envelope, const Doc& planned, const std::string& planned_at) {
  const Doc& plan = At(envelope, "plan");
  if (TextAt(planned, "experiment") != TextAt(envelope, "experiment")) {
    return "the plan is of " + TextAt(planned, "experiment");
  }
  for (const char* field : {"gate", "min_abs_ns", "min_gain_ppm", "processes", "quads"}) {
    if (At(plan, field) == At(planned, field)) continue;
    return std::string(field) + " is " + At(plan, field).dump() + ", planned was " +
           At(planned, field).dump();
  }
  const std::optional<int64_t> written_ns = ParseUtc(planned_at);
  const int64_t start_us = IntAt(At(envelope, "invocation"), "start_us");
  if (!written_ns || start_us < *written_ns / 1000)
    return "the run began before the plan was written";
  return {};
}

}  // namespace h3rt::lab
