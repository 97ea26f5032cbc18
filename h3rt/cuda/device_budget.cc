#include "h3rt/cuda/device_budget.h"

#include <algorithm>

#include "h3rt/base/units.h"

namespace h3rt {

absl::StatusOr<DeviceBudget> BudgetOfDevice(const DeviceMemoryFacts& facts) {
  DeviceBudget budget;
  if (facts.integrated) {
    const uint64_t available = facts.system_available_bytes;
    if (available <= kUnifiedReserveBytes) {
      return ResourceExhausted({.what = "memory of an integrated device",
                                .got = FormatBytes(available) + " of system memory available",
                                .wanted = "more than the " + FormatBytes(kUnifiedReserveBytes) +
                                          " that the host keeps"});
    }
    budget.bytes = available - kUnifiedReserveBytes;
    if (facts.device_total_bytes != 0) {
      budget.bytes = std::min(budget.bytes, facts.device_total_bytes);
    }
    budget.may_offload = false;
    budget.source = "available system memory, shared with the device";
    return budget;
  }
  if (facts.device_free_bytes > facts.device_total_bytes) {
    return InvalidArgument(
        {.what = "free memory of a device",
         .got = FormatBytes(facts.device_free_bytes),
         .wanted = "at most its total of " + FormatBytes(facts.device_total_bytes)});
  }
  if (facts.device_free_bytes == 0) {
    return ResourceExhausted({.what = "free memory of the device",
                              .got = "0 bytes of " + FormatBytes(facts.device_total_bytes),
                              .wanted = "some"});
  }
  budget.bytes = facts.device_free_bytes;
  budget.may_offload = true;
  budget.source = "free device memory";
  return budget;
}

absl::Status CheckFits(const DeviceBudget& budget, uint64_t needed_bytes, const std::string& what) {
  if (needed_bytes <= budget.bytes) return absl::OkStatus();
  return ResourceExhausted({.what = what + " does not fit",
                            .got = FormatBytes(needed_bytes) + " needed",
                            .wanted = "at most " + FormatBytes(budget.bytes),
                            .where = budget.source});
}

}  // namespace h3rt
