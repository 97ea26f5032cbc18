// What the harness asks of a GPU. In a build without device code every function says so.
#pragma once

#include "h3rt/base/experiment.h"
#include "h3rt/lab/stats.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// Class and instance of the environment, as the evidence envelope has them.
absl::StatusOr<Doc> GpuEnvironment();
// "sm_90a" of the current device.
absl::StatusOr<std::string> GpuTarget();

// One parity body over every workload (see the README of this folder). The comparator proves itself
// first: kInternal when it misses a planted difference.
absl::StatusOr<Doc> GpuParity(const Experiment& experiment, const ExperimentArm& candidate,
                              const ExperimentCheck& check, int64_t repeat_launches);
struct GpuTiming {
  std::vector<Sample> samples;
  Doc facts;  // batch, mode, tick_ns, warmups, copy_bytes_per_s, audits: parts of the body
};
// The quads of one process: `quads` pairs and after every third an A/A control. `batch` calls a
// sample; 0: as many as make 100 us of work.
absl::StatusOr<GpuTiming> GpuTimePair(const Experiment& experiment, const ExperimentArm& baseline,
                                      const ExperimentArm& candidate,
                                      const ExperimentWorkload& workload, int64_t quads,
                                      uint16_t process, bool candidate_first, int64_t batch = 0);
// Launches every workload but the canonical once, or the canonical alone, for tools that watch.
// Gives
// {"kernels": [{"symbol", "launches"}], "error": message or null}: the kernels that the arm put on
// the stream, as the runtime names them, counted over the workloads, and what the device said in
// the end. A kernel that the arm does not declare, or a declared one that was not launched, is
// kInternal.
absl::StatusOr<Doc> GpuLaunchOnce(const Experiment& experiment, const ExperimentArm& arm,
                                  bool canonical = false);
// A kernel with a planted fault ("memcheck", "racecheck", "initcheck", "synccheck").
absl::Status GpuPlantedFault(std::string_view tool);
// SHA-256 of each input tensor of a workload, made on the host: needs no GPU.
absl::StatusOr<Doc> InputDigests(const Experiment& experiment, const ExperimentWorkload& workload);

}  // namespace h3rt::lab
