#include "h3rt/harness/gpu.h"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <set>

#include "h3rt/cuda/runtime_status.h"
#include "h3rt/harness/environment.h"
#include "h3rt/harness/gpu_device.h"
#include "h3rt/harness/gpu_problem.h"

namespace h3rt::lab {
namespace {

using Level = ExperimentWorkload::Level;

absl::StatusOr<DeviceFacts> Facts() {
  DeviceFacts facts = {};
  H3RT_RETURN_IF_ERROR(CudaStatus(AskDeviceFacts(&facts), "asking what the device is"));
  return facts;
}

std::string Version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

const ExperimentArm* FindArm(const Experiment& experiment, std::string_view vid) {
  for (const ExperimentArm& arm : experiment.arms) {
    if (vid == arm.vid) return &arm;
  }
  return nullptr;
}

using Outputs = std::vector<std::vector<std::byte>>;

absl::StatusOr<Outputs> FetchOutputs(const GpuProblem& problem, const Stream& stream) {
  Outputs outputs;
  for (size_t i = 0; i < problem.tensors(); ++i) {
    if (!problem.is_output(i)) continue;
    H3RT_ASSIGN_OR_RETURN(std::vector<std::byte> held, problem.Fetch(i, stream));
    outputs.push_back(std::move(held));
  }
  return outputs;
}

absl::StatusOr<Outputs> RunPoisoned(const GpuProblem& problem, const ExperimentArm& arm,
                                    uint8_t poison, const Stream& stream) {
  H3RT_RETURN_IF_ERROR(problem.Poison(poison, stream));
  H3RT_RETURN_IF_ERROR(problem.Run(arm, stream));
  H3RT_RETURN_IF_ERROR(CudaStatus(WaitForDevice(), "running " + std::string(arm.vid)));
  return FetchOutputs(problem, stream);
}

// Host copies of the inputs as the host makes them; empty vectors for outputs.
std::vector<std::vector<std::byte>> HostInputs(const GpuProblem& problem, uint64_t seed) {
  std::vector<std::vector<std::byte>> inputs(problem.tensors());
  for (size_t i = 0; i < problem.tensors(); ++i) {
    if (problem.is_output(i)) continue;
    inputs[i].resize(static_cast<size_t>(problem.bytes(i)));
    GenerateInput(problem.tensor(i), i, seed, inputs[i]);
  }
  return inputs;
}

absl::StatusOr<bool> InputsAre(const GpuProblem& problem,
                               const std::vector<std::vector<std::byte>>& inputs,
                               const Stream& stream) {
  for (size_t i = 0; i < problem.tensors(); ++i) {
    if (problem.is_output(i)) continue;
    H3RT_ASSIGN_OR_RETURN(const std::vector<std::byte> held, problem.Fetch(i, stream));
    if (held != inputs[i]) return false;
  }
  return true;
}

// What the check expects: another arm's outputs, which must repeat themselves, or the host's.
absl::StatusOr<Outputs> Expected(const Experiment& experiment, const ExperimentCheck& check,
                                 const GpuProblem& problem,
                                 std::vector<std::vector<std::byte>>& inputs,
                                 const Stream& stream) {
  if (std::string_view(check.against) != "reference") {
    const ExperimentArm* arm = FindArm(experiment, check.against);
    if (arm == nullptr || arm->run == nullptr) {
      return Internal({.what = "arm of a check", .got = check.against, .where = experiment.id});
    }
    H3RT_ASSIGN_OR_RETURN(const Outputs again, RunPoisoned(problem, *arm, kSecondPoison, stream));
    H3RT_ASSIGN_OR_RETURN(Outputs outputs, RunPoisoned(problem, *arm, kFirstPoison, stream));
    if (outputs != again) {
      return FailedPrecondition({.what = "the reference arm does not repeat itself",
                                 .got = check.against,
                                 .where = experiment.id});
    }
    return outputs;
  }
  if (experiment.reference == nullptr) {
    return Internal({.what = "no host reference", .where = experiment.id});
  }
  Outputs outputs;
  std::vector<std::byte*> pointers;
  for (size_t i = 0; i < problem.tensors(); ++i) {
    if (problem.is_output(i)) {
      outputs.emplace_back(static_cast<size_t>(problem.bytes(i)), std::byte{kFirstPoison});
    }
  }
  for (size_t i = 0, k = 0; i < problem.tensors(); ++i) {
    pointers.push_back(problem.is_output(i) ? outputs[k++].data() : inputs[i].data());
  }
  experiment.reference({pointers, problem.dims(), nullptr});
  return outputs;
}

absl::Status CompareWorkload(const Experiment& experiment, const ExperimentArm& candidate,
                             const ExperimentCheck& check, const ExperimentWorkload& workload,
                             const Stream& stream, Doc& cases) {
  H3RT_ASSIGN_OR_RETURN(const GpuProblem problem,
                        GpuProblem::Create(experiment, workload, workload.seed, stream));
  std::vector<std::vector<std::byte>> inputs = HostInputs(problem, workload.seed);
  H3RT_ASSIGN_OR_RETURN(const bool same_generator, InputsAre(problem, inputs, stream));
  if (!same_generator) {
    return Internal({.what = "host and device make different inputs", .where = workload.id});
  }
  H3RT_ASSIGN_OR_RETURN(const Outputs actual,
                        RunPoisoned(problem, candidate, kFirstPoison, stream));
  H3RT_ASSIGN_OR_RETURN(const Outputs again,
                        RunPoisoned(problem, candidate, kSecondPoison, stream));
  H3RT_ASSIGN_OR_RETURN(const int64_t guard_faults, problem.GuardFaults(stream));
  H3RT_ASSIGN_OR_RETURN(const bool unchanged, InputsAre(problem, inputs, stream));
  // After the candidate, so that nothing it could have left behind is what was expected.
  H3RT_ASSIGN_OR_RETURN(const Outputs expected,
                        Expected(experiment, check, problem, inputs, stream));
  for (size_t i = 0, k = 0; i < problem.tensors(); ++i) {
    if (!problem.is_output(i)) continue;
    const OutputNumbers numbers = CompareOutputs(problem.tensor(i).type, actual[k], again[k],
                                                 expected[k], kFirstPoison, kSecondPoison);
    cases.push_back(ParityCase(workload, problem.tensor(i).name, numbers, guard_faults, unchanged));
    ++k;
  }
  return absl::OkStatus();
}

// Launches the largest workload again and again, each time over another poison, and counts how many
// different outputs came out. The digest (generator.h) covers every byte of every output.
absl::StatusOr<Doc> RepeatExact(const Experiment& experiment, const ExperimentArm& candidate,
                                int64_t launches, const Stream& stream) {
  const ExperimentWorkload* largest = &experiment.workloads.front();
  for (const ExperimentWorkload& workload : experiment.workloads) {
    if (experiment.least_bytes(workload.dims) > experiment.least_bytes(largest->dims)) {
      largest = &workload;
    }
  }
  H3RT_ASSIGN_OR_RETURN(const GpuProblem problem,
                        GpuProblem::Create(experiment, *largest, largest->seed, stream));
  const size_t words = 2 * problem.outputs();
  H3RT_ASSIGN_OR_RETURN(const DigestBuffer buffer,
                        DigestBuffer::Create(words * static_cast<size_t>(launches), stream));
  for (int64_t i = 0; i < launches; ++i) {
    H3RT_RETURN_IF_ERROR(problem.Poison(i % 2 == 0 ? kFirstPoison : kSecondPoison, stream));
    H3RT_RETURN_IF_ERROR(problem.Run(candidate, stream));
    H3RT_RETURN_IF_ERROR(
        problem.DigestOutputs(0, buffer.at(words * static_cast<size_t>(i)), stream));
  }
  H3RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> digests, buffer.Read(stream));
  std::set<std::vector<uint64_t>> distinct;
  for (size_t i = 0; i < digests.size(); i += words) {
    std::vector<uint64_t> one;
    for (size_t k = 0; k < words; k += 2) one.push_back(digests[i + k]);
    distinct.insert(one);
  }
  return Doc{{"workload", largest->id},
             {"launches", launches},
             {"distinct_digests", static_cast<int64_t>(distinct.size())}};
}

// "void h3rt::k<true>(int)" -> "h3rt::k".
std::string PlainName(const char* mangled) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : mangled;
  std::free(demangled);
  name.resize(std::min(name.find_first_of("<("), name.size()));
  const size_t space = name.rfind(' ');
  return space == std::string::npos ? name : name.substr(space + 1);
}

struct Watched {
  const GpuProblem& problem;
  const ExperimentArm& arm;
  const Stream& stream;
  std::map<std::string, int64_t>& launches;
};

absl::Status CountKernels(const GpuProblem& problem, const ExperimentArm& arm, const Stream& stream,
                          std::map<std::string, int64_t>& launches) {
  Watched watched = {problem, arm, stream, launches};
  const int error = NamesOfKernels(
      [](void* context, CUstream_st* /*stream: the one below*/) {
        const auto& w = *static_cast<const Watched*>(context);
        return w.problem.Run(w.arm, w.stream).ok() ? 0 : 1;
      },
      [](void* context, const char* mangled) {
        ++static_cast<const Watched*>(context)->launches[PlainName(mangled)];
      },
      &watched, stream.get());
  return CudaStatus(error, "naming the kernels of " + std::string(arm.vid));
}

}  // namespace

absl::StatusOr<Doc> GpuEnvironment() {
  H3RT_ASSIGN_OR_RETURN(const DeviceFacts facts, Facts());
  const Nvml nvml(facts.pci_bus_id);
  const GpuState state = nvml.State();
  Doc environment = HostEnvironment();
  Doc& shared = environment["class"];
  shared["device"] = std::string(facts.name);
  shared["capability"] = std::to_string(facts.major) + "." + std::to_string(facts.minor);
  const Doc driver = nvml.DriverVersion();
  shared["driver"] = driver.is_null() ? Doc("CUDA " + Version(facts.driver_version)) : driver;
  shared["runtime"] = Version(facts.runtime_version);
  shared["ecc"] = facts.ecc != 0;
  const Doc mig = nvml.MigMode();
  shared["mig"] = mig.is_null() ? Doc() : Doc(mig != 0);
  Doc& own = environment["instance"];
  own["uuid_sha256"] = DigestOfText({facts.uuid, sizeof facts.uuid});
  own["clock_before_mhz"] = state.clock_mhz;
  own["throttle_before"] = state.throttle;
  own["temperature_before_c"] = state.temperature_c;
  own["power_limit_mw"] = nvml.PowerLimitMw();
  const Doc processes = nvml.ProcessCount();
  if (!processes.is_null()) {
    own["other_memory_bytes"] = processes <= 1 ? 0 : facts.total_bytes - facts.free_bytes;
  }
  return environment;
}

absl::StatusOr<std::string> GpuTarget() {
  H3RT_ASSIGN_OR_RETURN(const DeviceFacts facts, Facts());
  return "sm_" + std::to_string(facts.major * 10 + facts.minor) + "a";
}

absl::StatusOr<Doc> GpuParity(const Experiment& experiment, const ExperimentArm& candidate,
                              const ExperimentCheck& check, int64_t repeat_launches) {
  H3RT_ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  Doc cases = Doc::array();
  for (const ExperimentWorkload& workload : experiment.workloads) {
    H3RT_RETURN_IF_ERROR(CompareWorkload(experiment, candidate, check, workload, stream, cases));
  }
  Doc repeat;
  if (repeat_launches > 0) {
    H3RT_ASSIGN_OR_RETURN(repeat, RepeatExact(experiment, candidate, repeat_launches, stream));
  }
  return ParityBody(check, cases, repeat);
}

absl::StatusOr<Doc> GpuLaunchOnce(const Experiment& experiment, const ExperimentArm& arm,
                                  bool canonical) {
  H3RT_ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  std::map<std::string, int64_t> launches;
  absl::Status ran;
  for (const ExperimentWorkload& workload : experiment.workloads) {
    if ((workload.level == Level::kCanonical) != canonical) continue;
    H3RT_ASSIGN_OR_RETURN(const GpuProblem problem,
                          GpuProblem::Create(experiment, workload, workload.seed, stream));
    H3RT_RETURN_IF_ERROR(CountKernels(problem, arm, stream, launches));
    ran = problem.Run(arm, stream);
    if (ran.ok()) ran = CudaStatus(WaitForDevice(), "running " + std::string(arm.vid));
    if (!ran.ok()) break;  // nothing works on the device after an error
  }
  const std::set<std::string> declared(arm.kernels.begin(), arm.kernels.end());
  Doc list = Doc::array();
  for (const auto& [symbol, count] : launches) {
    if (declared.count(symbol) == 0) {
      return Internal(
          {.what = "an undeclared kernel was launched", .got = symbol, .where = arm.vid});
    }
    list.push_back({{"symbol", symbol}, {"launches", count}});
  }
  if (list.size() != declared.size()) {
    return Internal({.what = "a declared kernel was not launched",
                     .got = std::to_string(list.size()) + " kernels",
                     .wanted = std::to_string(declared.size()),
                     .where = arm.vid});
  }
  return Doc{{"kernels", list}, {"error", ran.ok() ? Doc() : Doc(MessageOf(ran))}};
}

absl::Status GpuPlantedFault(std::string_view tool) {
  const auto run = tool == "memcheck"    ? RunPlantedOutOfBounds
                   : tool == "racecheck" ? RunPlantedSharedRace
                   : tool == "initcheck" ? RunPlantedUninitialisedRead
                   : tool == "synccheck" ? RunPlantedDivergentBarrier
                                         : nullptr;
  if (run == nullptr) {
    return InvalidArgument({.what = "planted fault", .got = std::string(tool)});
  }
  return CudaStatus(run(), "running a planted fault");
}

}  // namespace h3rt::lab
