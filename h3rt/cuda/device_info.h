// Which GPUs this machine has, asked through the driver's library at run time: no CUDA toolkit is
// needed to build this, and no driver to run it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/cuda/compute_capability.h"

namespace h3rt {

struct DeviceInfo {
  int index = 0;
  std::string name = {};
  ComputeCapability capability = {};
  // 0: not known, which is so for faked devices.
  uint64_t memory_bytes = 0;
  // Shares the host's memory, as the GB10 of a DGX Spark does.
  bool integrated = false;
  // Named by H3RT_FAKE_DEVICES and not present.
  bool faked = false;
};

struct DeviceList {
  std::vector<DeviceInfo> devices = {};
  // The newest CUDA version that the driver supports, "13.0"; empty without a driver.
  std::string driver_version = {};
  // Why `devices` is empty; empty when it is not.
  std::string reason = {};
};

// The devices that H3RT_FAKE_DEVICES names when it is set, else those of the driver. A machine
// without a driver or a device is no error: the list is empty and says why. A malformed
// H3RT_FAKE_DEVICES is kInvalidArgument; a driver that answers with an error after it was
// initialised is kFailedPrecondition.
absl::StatusOr<DeviceList> ListDevices();

// The devices of the driver library `library`, a name or path as dlopen takes it.
absl::StatusOr<DeviceList> ListDriverDevices(const std::string& library);

// "9.0,12.1" -> two devices; blanks around a number are allowed, an empty entry is not. 12.1 is
// taken to be integrated, as the only device that has it is. "none" is the empty list.
absl::StatusOr<DeviceList> ParseFakeDevices(std::string_view text);

}  // namespace h3rt
