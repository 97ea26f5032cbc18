// How much memory a plan may use on a device, and whether parts may wait in host memory.
#pragma once

#include <cstdint>
#include <string>

#include "h3rt/base/status.h"

namespace h3rt {

struct DeviceMemoryFacts {
  bool integrated = false;
  uint64_t device_total_bytes = 0;
  uint64_t device_free_bytes = 0;
  // What the host could give without swapping (MemAvailable).
  uint64_t system_available_bytes = 0;
};

struct DeviceBudget {
  uint64_t bytes = 0;
  // Moving weights to host memory frees nothing on a device that shares it.
  bool may_offload = false;
  // Where the number comes from, for the printed plan.
  std::string source = {};
};

// Left to the host on an integrated device: MemAvailable is an estimate, and a unified memory that
// is filled to the last page swaps and stalls instead of failing.
inline constexpr uint64_t kUnifiedReserveBytes = 1ull << 30;

// Integrated: min(available system memory - reserve, device total), no offload; the driver's count
// of free bytes is not used, because it leaves out what the page cache would give back. Discrete:
// the device's free bytes, offload allowed. Nothing left is kResourceExhausted; free above total
// is kInvalidArgument.
absl::StatusOr<DeviceBudget> BudgetOfDevice(const DeviceMemoryFacts& facts);

// kResourceExhausted, before anything is allocated, when `needed_bytes` do not fit.
absl::Status CheckFits(const DeviceBudget& budget, uint64_t needed_bytes, const std::string& what);

}  // namespace h3rt
