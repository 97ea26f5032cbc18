// Parity of arms that run on the host.
#include "h3rt/harness/host.h"

#include <set>

#include "h3rt/harness/host_problem.h"

namespace h3rt::lab {
namespace {

using Outputs = std::vector<std::vector<std::byte>>;

Outputs Copies(const HostProblem& problem, bool outputs) {
  Outputs copies;
  for (size_t i = 0; i < problem.tensors(); ++i) {
    if (problem.is_output(i) != outputs) continue;
    const std::span<std::byte> held = problem.At(i);
    copies.emplace_back(held.begin(), held.end());
  }
  return copies;
}

absl::StatusOr<Outputs> RunPoisoned(const HostProblem& problem, const ExperimentArm& arm,
                                    uint8_t poison) {
  problem.Poison(poison);
  H3RT_RETURN_IF_ERROR(problem.Run(arm));
  return Copies(problem, true);
}

// Another arm's outputs, which must repeat themselves, or those of the reference.
absl::StatusOr<Outputs> Expected(const Experiment& experiment, const ExperimentCheck& check,
                                 const HostProblem& problem) {
  if (std::string_view(check.against) == "reference" && experiment.reference != nullptr) {
    problem.Poison(kFirstPoison);
    experiment.reference(problem.Call());
    return Copies(problem, true);
  }
  for (const ExperimentArm& arm : experiment.arms) {
    if (std::string_view(arm.vid) != check.against || arm.run == nullptr) continue;
    H3RT_ASSIGN_OR_RETURN(const Outputs again, RunPoisoned(problem, arm, kSecondPoison));
    H3RT_ASSIGN_OR_RETURN(Outputs outputs, RunPoisoned(problem, arm, kFirstPoison));
    if (outputs == again) return outputs;
    return FailedPrecondition({.what = "the reference arm does not repeat itself",
                               .got = check.against,
                               .where = experiment.id});
  }
  return Internal(
      {.what = "nothing to check against", .got = check.against, .where = experiment.id});
}

absl::Status CompareWorkload(const Experiment& experiment, const ExperimentArm& candidate,
                             const ExperimentCheck& check, const ExperimentWorkload& workload,
                             Doc& cases) {
  const HostProblem problem(experiment, workload, workload.seed);
  const Outputs inputs = Copies(problem, false);
  H3RT_ASSIGN_OR_RETURN(const Outputs actual, RunPoisoned(problem, candidate, kFirstPoison));
  H3RT_ASSIGN_OR_RETURN(const Outputs again, RunPoisoned(problem, candidate, kSecondPoison));
  const int64_t guard_faults = problem.GuardFaults();
  const bool unchanged = Copies(problem, false) == inputs;
  // In a problem of its own: what the candidate did to the inputs must not be what is expected.
  const HostProblem fresh(experiment, workload, workload.seed);
  H3RT_ASSIGN_OR_RETURN(const Outputs expected, Expected(experiment, check, fresh));
  for (size_t i = 0, k = 0; i < problem.tensors(); ++i) {
    if (!problem.is_output(i)) continue;
    const OutputNumbers numbers = CompareOutputs(problem.tensor(i).type, actual[k], again[k],
                                                 expected[k], kFirstPoison, kSecondPoison);
    cases.push_back(ParityCase(workload, problem.tensor(i).name, numbers, guard_faults, unchanged));
    ++k;
  }
  return absl::OkStatus();
}

// Runs the largest workload again and again, each time over another poison.
absl::StatusOr<Doc> RepeatExact(const Experiment& experiment, const ExperimentArm& candidate,
                                int64_t launches) {
  const ExperimentWorkload* largest = &experiment.workloads.front();
  for (const ExperimentWorkload& workload : experiment.workloads) {
    if (experiment.least_bytes(workload.dims) > experiment.least_bytes(largest->dims)) {
      largest = &workload;
    }
  }
  const HostProblem problem(experiment, *largest, largest->seed);
  std::set<std::vector<uint64_t>> distinct;
  for (int64_t i = 0; i < launches; ++i) {
    problem.Poison(i % 2 == 0 ? kFirstPoison : kSecondPoison);
    H3RT_RETURN_IF_ERROR(problem.Run(candidate));
    distinct.insert(problem.Digests(true));
  }
  return Doc{{"workload", largest->id},
             {"launches", launches},
             {"distinct_digests", static_cast<int64_t>(distinct.size())}};
}

}  // namespace

bool IsHostExperiment(const Experiment& experiment) {
  return experiment.targets.size() == 1 && std::string_view(experiment.targets[0]) == "host";
}

absl::StatusOr<Doc> HostParity(const Experiment& experiment, const ExperimentArm& candidate,
                               const ExperimentCheck& check, int64_t repeat_launches) {
  Doc cases = Doc::array();
  for (const ExperimentWorkload& workload : experiment.workloads) {
    H3RT_RETURN_IF_ERROR(CompareWorkload(experiment, candidate, check, workload, cases));
  }
  Doc repeat;
  if (repeat_launches > 0) {
    H3RT_ASSIGN_OR_RETURN(repeat, RepeatExact(experiment, candidate, repeat_launches));
  }
  return ParityBody(check, cases, repeat);
}

}  // namespace h3rt::lab
