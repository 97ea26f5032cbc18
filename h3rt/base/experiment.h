// How an optimisation experiment is declared, beside its kernel: plain structs and function
// pointers. The laboratory lists them (h3rt/lab/experiment_list.cc, one line each); kernels never
// include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

struct CUstream_st;

namespace h3rt {

// A tensor of an experiment: dense, row-major.
struct ExperimentTensor {
  enum class Type { kBf16, kF32, kF16, kI32, kU8 };
  enum class Role { kInput, kOutput };
  // kNormal: standard normal times `scale`; kUniform: uniform in +-scale; kEdge: as kNormal, with
  // zeros, both signs of zero, subnormals and large finite values mixed in.
  enum class Fill { kNormal, kUniform, kEdge };
  const char* name = "";
  Type type = Type::kBf16;
  Role role = Role::kInput;
  std::vector<int64_t> shape = {};
  Fill fill = Fill::kNormal;
  double scale = 1.0;
};

// One shape. Levels of the ladder, from small to what production runs.
struct ExperimentWorkload {
  enum class Level { kToy, kAligned, kRagged, kCanonical };
  const char* id = "";
  Level level = Level::kToy;
  std::vector<int64_t> dims = {};  // in the order of Experiment::dim_names
  uint64_t seed = 0;
  int64_t calls = 1;  // a denoising step
};

// What an arm gets: one pointer a tensor, in the order of Experiment::tensors, in device memory
// (host memory for host arms), and the dims of the workload. Inputs must not be written.
struct ArmCall {
  std::span<std::byte* const> tensors = {};
  std::span<const int64_t> dims = {};
  CUstream_st* stream = nullptr;
};
// Asynchronous on the stream. Returns the CUDA runtime's error, 0 for success.
using ArmFunction = int (*)(const ArmCall&);

struct ExperimentArm {
  const char* vid = "";
  ArmFunction run = nullptr;              // null in a build without device code
  std::vector<const char*> kernels = {};  // demangled names without template arguments
  std::vector<const char*> sources = {};  // roots of the closure, relative: .cu files
};

// A source that is compiled for a target and expected to pass or to be rejected. `control` is a
// target at which the same source must have the other outcome (or the same, for spills), so that a
// missing toolkit or a typing mistake cannot pass for a rejection.
struct CompileProbe {
  enum class Outcome { kOk, kRejected };
  const char* vid = "";
  const char* source = "";  // relative path of a .cu
  const char* target = "";  // "sm_121a"
  Outcome expected = Outcome::kOk;
  const char* control_target = "";
  Outcome control_expected = Outcome::kOk;
  const char* diagnostic = "";  // text that a rejection must contain
  bool expect_spill = false;    // ptxas must report spills on both targets
};

// How the candidate is compared with an arm or with the host's reference.
struct ExperimentCheck {
  enum class Mode { kBitwise, kTolerance };
  const char* against = "";  // an arm's vid, or "reference"
  Mode mode = Mode::kBitwise;
  double rel_l2_bound = 0;  // kTolerance; derived, see `why`
  const char* why = "";
};

struct Experiment {
  const char* id = "";  // of the registry
  std::vector<const char*> dim_names = {};
  std::vector<ExperimentWorkload> workloads = {};
  // Tensors of a workload, in the order of ArmCall::tensors.
  std::vector<ExperimentTensor> (*tensors)(std::span<const int64_t> dims) = nullptr;
  std::vector<ExperimentArm> arms = {};  // [0] is the baseline, [1] the candidate, others variants
  // Fills the outputs on the host in float64 or strict order; null where no host reference exists.
  void (*reference)(const ArmCall&) = nullptr;
  std::vector<ExperimentCheck> checks = {};
  // Least bytes that any implementation must move, and operations it must do: the speed of light.
  double (*least_bytes)(std::span<const int64_t> dims) = nullptr;
  double (*least_operations)(std::span<const int64_t> dims) = nullptr;
  std::vector<const char*> targets = {};  // architectures in scope: "sm_90a", "sm_121a"
  std::vector<CompileProbe> probes = {};  // experiments of the compiler alone have only these
  bool uses_async = false;                // initcheck and synccheck are part of the correct gate
};

}  // namespace h3rt
