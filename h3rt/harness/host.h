// What the harness asks of the host: the same as of a GPU (gpu.h), for arms that run in host
// memory. Works in every build.
#pragma once

#include "h3rt/harness/gpu.h"

namespace h3rt::lab {

// An interval over processes of a host timing needs so many.
inline constexpr int64_t kHostProcesses = 10;

// Its arms run on the host: "host" is its one target.
bool IsHostExperiment(const Experiment& experiment);

// One parity body over every workload: poisoned outputs, guards, inputs compared afterwards.
absl::StatusOr<Doc> HostParity(const Experiment& experiment, const ExperimentArm& candidate,
                               const ExperimentCheck& check, int64_t repeat_launches);
// The quads of one process by the steady clock, as GpuTimePair takes them.
absl::StatusOr<GpuTiming> HostTimePair(const Experiment& experiment, const ExperimentArm& baseline,
                                       const ExperimentArm& candidate,
                                       const ExperimentWorkload& workload, int64_t quads,
                                       uint16_t process, bool candidate_first, int64_t batch = 0);
// `count` samples of one arm alone; each is a quad of its own with one slot.
absl::StatusOr<GpuTiming> HostTimeSingle(const Experiment& experiment, const ExperimentArm& arm,
                                         const ExperimentWorkload& workload, int64_t count,
                                         uint16_t process, int64_t batch = 0);

}  // namespace h3rt::lab
