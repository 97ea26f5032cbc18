// Experiments that need only nvcc: what compiles for a target, and what it takes there.
#pragma once

#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/experiment.h"
#include "h3rt/harness/cubin.h"
#include "h3rt/harness/harness.h"
#include "h3rt/lab/freshness.h"
#include "h3rt/lab/tool_logs.h"

namespace h3rt::lab {

struct CompileLimits {
  int64_t timeout_ms = 300000;
  uint64_t address_space_bytes = uint64_t{16} << 30;  // of each of the compiler's programs
  const CancelToken* cancel = nullptr;
};

// One source for one target, with the device flags of the build (Stamp().flags).
struct CompileRun {
  std::string outcome;  // ok, rejected, ice, timeout, oom
  std::string log;      // what the compiler said; names of its temporary files are shortened
  std::vector<std::string> diagnostics;
  std::vector<std::string> argv;
  std::string compiler, ptxas;  // versions and builds
  int exit_code = 0;
  int signal = 0;
  int64_t start_ns = 0, end_ns = 0, wall_ns = 0, peak_rss_bytes = 0;
  std::vector<PtxasKernel> resources;  // both empty unless ok
  Cubin cubin;
};
// kFailedPrecondition without nvcc or where nvcc itself cannot work; kNotFound without the source.
absl::StatusOr<CompileRun> CompileFor(const Store& store, const std::string& source,
                                      const std::string& target, const CompileLimits& limits = {});

// The build gate of an experiment: `compile` and `resource` evidence of the arm that is asked for
// (else the candidate) for each target, or of its probes. A rejection counts only with the expected
// diagnostic; what the control target gave stands beside it.
absl::StatusOr<std::vector<NewEvidence>> RunBuildGate(const Store& store,
                                                      const Experiment& experiment,
                                                      const RunRequest& request,
                                                      const CompileLimits& limits = {});

// CTAs that fit an SM of `architecture` (policy) with this many threads and resources, and what
// limits them: registers, shared, threads or ctas. Dynamic shared memory is not known here.
struct Occupancy {
  int64_t ctas = 0;
  std::string limiter;
};
Occupancy OccupancyOf(const Doc& architecture, int64_t threads, int64_t registers,
                      int64_t shared_bytes);

// Compiles an evidence's sources again and gives the code digest of each kernel by its symbol.
// Remembers what it compiled. Empty (no rescue) where there is no nvcc.
Recompile NvccRecompile(const Store& store);
// That, and what this build was made with: for freshness on a machine that has them.
Toolchain LocalToolchain(const Store& store);

}  // namespace h3rt::lab
