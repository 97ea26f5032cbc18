// What a build without device code says when it is asked for a GPU.
#include "h3rt/harness/attention_corner.h"
#include "h3rt/harness/attention_device.h"
#include "h3rt/harness/gpu.h"

namespace h3rt::lab {
namespace {

absl::Status NoDeviceCode() {
  return FailedPrecondition(
      {.what = "this build holds no device code", .wanted = "one configured with -DH3RT_CUDA=ON"});
}

}  // namespace

absl::StatusOr<Doc> GpuEnvironment() { return NoDeviceCode(); }
absl::StatusOr<std::string> GpuTarget() { return NoDeviceCode(); }
absl::StatusOr<Doc> GpuParity(const Experiment& /*experiment*/, const ExperimentArm& /*candidate*/,
                              const ExperimentCheck& /*check*/, int64_t /*repeat_launches*/) {
  return NoDeviceCode();
}
absl::StatusOr<GpuTiming> GpuTimePair(const Experiment& /*experiment*/,
                                      const ExperimentArm& /*baseline*/,
                                      const ExperimentArm& /*candidate*/,
                                      const ExperimentWorkload& /*workload*/, int64_t /*quads*/,
                                      uint16_t /*process*/, bool /*candidate_first*/,
                                      int64_t /*batch*/) {
  return NoDeviceCode();
}
absl::StatusOr<Doc> GpuLaunchOnce(const Experiment& /*experiment*/, const ExperimentArm& /*arm*/,
                                  bool /*canonical*/) {
  return NoDeviceCode();
}
absl::StatusOr<std::unique_ptr<AttentionDevice>> MakeAttentionDevice() { return NoDeviceCode(); }
absl::StatusOr<PlacedRun> RunPlaced(const ExactHostCall& /*call*/, bool /*capture*/) {
  return NoDeviceCode();
}
absl::StatusOr<std::string> RunLarge(const LargeCase& /*large*/, ExactPath /*path*/,
                                     ExactGranularity /*granularity*/) {
  return NoDeviceCode();
}
absl::Status GpuPlantedFault(std::string_view /*tool*/) { return NoDeviceCode(); }

}  // namespace h3rt::lab
