#include "h3rt/cuda/device_info.h"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <optional>

#include "h3rt/base/env.h"

namespace h3rt {
namespace {

constexpr const char* kDriverLibrary = "libcuda.so.1";
constexpr std::string_view kFakeDevicesName = "H3RT_FAKE_DEVICES";

// The numbers below belong to the driver's stable binary interface and are stated here so that the
// toolkit's cuda.h is not needed.
constexpr int kSuccess = 0;
constexpr int kErrorNoDevice = 100;
constexpr int kAttributeIntegrated = 18;
constexpr int kAttributeCapabilityMajor = 75;
constexpr int kAttributeCapabilityMinor = 76;

struct Driver {
  int (*init)(unsigned int flags);
  int (*driver_version)(int* version);
  int (*device_count)(int* count);
  int (*device_name)(char* name, int size, int device);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*device_memory)(size_t* bytes, int device);
  // May be missing from old drivers; only makes messages better.
  int (*error_name)(int error, const char** name);
};

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};

template <typename Function>
bool Load(void* handle, const char* name, Function** out) {
  *out = reinterpret_cast<Function*>(dlsym(handle, name));
  return *out != nullptr;
}

// The name of the first function that the library lacks, or nothing.
std::optional<std::string> LoadDriver(void* handle, Driver* driver) {
  if (!Load(handle, "cuInit", &driver->init)) return "cuInit";
  if (!Load(handle, "cuDriverGetVersion", &driver->driver_version)) return "cuDriverGetVersion";
  if (!Load(handle, "cuDeviceGetCount", &driver->device_count)) return "cuDeviceGetCount";
  if (!Load(handle, "cuDeviceGetName", &driver->device_name)) return "cuDeviceGetName";
  if (!Load(handle, "cuDeviceGetAttribute", &driver->device_attribute)) {
    return "cuDeviceGetAttribute";
  }
  // The name without the suffix is the 32-bit function of CUDA 3.
  if (!Load(handle, "cuDeviceTotalMem_v2", &driver->device_memory)) return "cuDeviceTotalMem_v2";
  if (!Load(handle, "cuGetErrorName", &driver->error_name)) driver->error_name = nullptr;
  return std::nullopt;
}

std::string ErrorName(const Driver& driver, int error) {
  const char* name = nullptr;
  if (driver.error_name != nullptr && driver.error_name(error, &name) == kSuccess &&
      name != nullptr) {
    return name;
  }
  return "error " + std::to_string(error);
}

absl::Status DriverError(const Driver& driver, int error, const char* function, int device) {
  return FailedPrecondition({.what = "the CUDA driver failed in " + std::string(function),
                             .got = ErrorName(driver, error),
                             .wanted = "a working driver and device",
                             .where = "device " + std::to_string(device)});
}

absl::StatusOr<DeviceInfo> AskDevice(const Driver& driver, int index) {
  DeviceInfo info;
  info.index = index;
  std::array<char, 256> name = {};
  int error = driver.device_name(name.data(), static_cast<int>(name.size()) - 1, index);
  if (error != kSuccess) return DriverError(driver, error, "cuDeviceGetName", index);
  info.name = name.data();

  int integrated = 0;
  const std::array<std::pair<int, int*>, 3> attributes = {{
      {kAttributeCapabilityMajor, &info.capability.major},
      {kAttributeCapabilityMinor, &info.capability.minor},
      {kAttributeIntegrated, &integrated},
  }};
  for (const auto& [attribute, value] : attributes) {
    error = driver.device_attribute(value, attribute, index);
    if (error != kSuccess) return DriverError(driver, error, "cuDeviceGetAttribute", index);
  }
  info.integrated = integrated != 0;

  size_t bytes = 0;
  error = driver.device_memory(&bytes, index);
  if (error != kSuccess) return DriverError(driver, error, "cuDeviceTotalMem", index);
  info.memory_bytes = bytes;
  return info;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

absl::StatusOr<DeviceList> ListDevices() {
  if (const std::optional<std::string> fake = GetEnv(EnvVar::kFakeDevices)) {
    return ParseFakeDevices(*fake);
  }
  return ListDriverDevices(kDriverLibrary);
}

absl::StatusOr<DeviceList> ListDriverDevices(const std::string& library) {
  DeviceList list;
  const std::unique_ptr<void, CloseLibrary> handle(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (handle == nullptr) {
    const char* error = dlerror();
    list.reason = "no NVIDIA driver: " + std::string(error != nullptr ? error : library);
    return list;
  }
  Driver driver = {};
  if (const std::optional<std::string> missing = LoadDriver(handle.get(), &driver)) {
    list.reason = "no usable NVIDIA driver: " + library + " has no " + *missing;
    return list;
  }
  int error = driver.init(0);
  if (error != kSuccess) {
    // A driver without a device says so here; one that does not fit its kernel module does too.
    list.reason = error == kErrorNoDevice
                      ? "the NVIDIA driver finds no device"
                      : "the NVIDIA driver does not start: " + ErrorName(driver, error);
    return list;
  }
  int version = 0;
  if (driver.driver_version(&version) == kSuccess) {
    list.driver_version =
        std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  int count = 0;
  error = driver.device_count(&count);
  if (error != kSuccess) return DriverError(driver, error, "cuDeviceGetCount", 0);
  for (int index = 0; index < count; ++index) {
    H3RT_ASSIGN_OR_RETURN(DeviceInfo info, AskDevice(driver, index));
    list.devices.push_back(std::move(info));
  }
  if (list.devices.empty()) list.reason = "the NVIDIA driver finds no device";
  return list;
}

absl::StatusOr<DeviceList> ParseFakeDevices(std::string_view text) {
  DeviceList list;
  if (Trimmed(text) == "none") {
    list.reason = std::string(kFakeDevicesName) + " says that there are none";
    return list;
  }
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    H3RT_ASSIGN_OR_RETURN(const ComputeCapability capability,
                          ParseComputeCapability(Trimmed(rest.substr(0, comma)), kFakeDevicesName));
    DeviceInfo info;
    info.index = static_cast<int>(list.devices.size());
    info.name = "faked " + NameOf(capability);
    info.capability = capability;
    info.integrated = capability == ComputeCapability{12, 1};
    info.faked = true;
    list.devices.push_back(std::move(info));
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace h3rt
