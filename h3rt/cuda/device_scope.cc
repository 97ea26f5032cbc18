#include "h3rt/cuda/device_scope.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "h3rt/cuda/runtime_status.h"

namespace h3rt {

absl::StatusOr<DeviceScope> DeviceScope::Enter(int index) {
  int former = 0;
  H3RT_RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&former), "asking for the current device"));
  H3RT_RETURN_IF_ERROR(
      CudaStatus(cudaSetDevice(index), "selecting device " + std::to_string(index)));
  return DeviceScope(former);
}

DeviceScope::DeviceScope(DeviceScope&& other) noexcept
    : former_(std::exchange(other.former_, -1)) {}

DeviceScope::~DeviceScope() {
  // The former device was current a moment ago; a failure here shows in the next call.
  if (former_ >= 0) (void)cudaSetDevice(former_);
}

absl::StatusOr<DeviceMemory> MemoryOfDevice(int index) {
  H3RT_ASSIGN_OR_RETURN(const DeviceScope scope, DeviceScope::Enter(index));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  H3RT_RETURN_IF_ERROR(
      CudaStatus(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for the device's memory"));
  return DeviceMemory{.free_bytes = free_bytes, .total_bytes = total_bytes};
}

}  // namespace h3rt
