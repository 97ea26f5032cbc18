// The current device of a thread, set for a scope.
#pragma once

#include <cstdint>

#include "h3rt/base/status.h"

namespace h3rt {

// Makes `index` the calling thread's device and puts the former one back at the end.
class DeviceScope {
 public:
  static absl::StatusOr<DeviceScope> Enter(int index);
  DeviceScope(DeviceScope&& other) noexcept;
  DeviceScope& operator=(DeviceScope&&) = delete;
  ~DeviceScope();

 private:
  explicit DeviceScope(int former) : former_(former) {}
  // -1: moved from, nothing to restore.
  int former_;
};

struct DeviceMemory {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

// Memory of a device as its driver counts it. Starts the device's context on the first call.
absl::StatusOr<DeviceMemory> MemoryOfDevice(int index);

}  // namespace h3rt
