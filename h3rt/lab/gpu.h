// What the harness asks of a GPU. In a build without device code every function says so.
#pragma once

#include "h3rt/base/experiment.h"
#include "h3rt/lab/stats.h"
#include "h3rt/lab/store.h"

namespace h3rt::lab {

// Class and instance of the environment, as the evidence envelope has them.
absl::StatusOr<Doc> GpuEnvironment();
// "sm_90a" of the current device.
absl::StatusOr<std::string> GpuTarget();

// One parity body over every workload (see the README of this folder).
absl::StatusOr<Doc> GpuParity(const Experiment& experiment, const ExperimentArm& candidate,
                              const ExperimentCheck& check, int64_t repeat_launches);
struct GpuTiming {
  std::vector<Sample> samples;
  Doc facts;  // batch, mode, tick_ns, warmups, copy_bytes_per_s, audits: parts of the body
};
// The quads of one process.
absl::StatusOr<GpuTiming> GpuTimePair(const Experiment& experiment, const ExperimentArm& baseline,
                                      const ExperimentArm& candidate,
                                      const ExperimentWorkload& workload, int64_t quads,
                                      uint16_t process, bool candidate_first);
// Launches every workload but the canonical once, for tools that watch; or a kernel with a planted
// fault ("memcheck", "racecheck", "initcheck", "synccheck").
absl::Status GpuLaunchOnce(const Experiment& experiment, const ExperimentArm& arm);
absl::Status GpuPlantedFault(std::string_view tool);
// Digest of each input tensor of a workload.
absl::StatusOr<Doc> InputDigests(const Experiment& experiment, const ExperimentWorkload& workload);

}  // namespace h3rt::lab
