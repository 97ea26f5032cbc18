#include "h3rt/harness/environment.h"

#include <dlfcn.h>
#include <sys/utsname.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>

#include "h3rt/base/thread_pool.h"
#include "h3rt/harness/harness.h"

namespace h3rt::lab {
namespace {

// The text behind `name` and a separator in the first line that begins with it.
std::string LineOf(const char* file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) != 0) continue;
    size_t from = name.size();
    while (from < line.size() && std::string_view(" \t:=\"").find(line[from]) != line.npos) ++from;
    size_t to = line.size();
    while (to > from && (line[to - 1] == '"' || line[to - 1] == ' ')) --to;
    return line.substr(from, to - from);
  }
  return {};
}

Doc TextOrNull(const std::string& text) { return text.empty() ? Doc() : Doc(text); }

std::string FirstLine(const char* file) { return LineOf(file, ""); }

// The numbers below belong to NVML's stable binary interface.
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kTemperatureGpu = 0;

template <typename... Arguments>
bool Ask(void* library, const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  if (library == nullptr) return false;
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr && function(arguments...) == kSuccess;
}

}  // namespace

Doc HostEnvironment() {
  utsname system = {};
  (void)uname(&system);
  std::string os = LineOf("/etc/os-release", "PRETTY_NAME");
  os += (os.empty() ? "" : ", ") + std::string(system.sysname) + " " + system.release;
  std::string cpu = LineOf("/proc/cpuinfo", "model name");
  if (cpu.empty()) cpu = system.machine;
  Doc load;
  const std::string average = FirstLine("/proc/loadavg");
  if (!average.empty()) {
    load = static_cast<int64_t>(std::strtod(average.c_str(), nullptr) * 1000 + 0.5);
  }
  const std::string boot = FirstLine("/proc/sys/kernel/random/boot_id");
  // The flag is one word among many, so look for it as one.
  const std::string flags = " " + LineOf("/proc/cpuinfo", "flags") + " ";
  const Doc hypervisor =
      flags.size() < 3 ? Doc() : Doc(flags.find(" hypervisor ") != std::string::npos);
  return {{"class",
           {{"device", "host"},
            {"capability", nullptr},
            {"driver", nullptr},
            {"runtime", nullptr},
            {"toolkit", TextOrNull(Stamp().toolkit)},
            {"ecc", nullptr},
            {"mig", nullptr},
            {"os", os},
            {"cpu", cpu}}},
          {"instance",
           {{"boot_id_sha256", boot.empty() ? Doc() : Doc(DigestOfText(boot))},
            {"uuid_sha256", nullptr},
            {"clock_before_mhz", nullptr},
            {"clock_after_mhz", nullptr},
            {"power_limit_mw", nullptr},
            {"temperature_before_c", nullptr},
            {"temperature_after_c", nullptr},
            {"throttle_before", nullptr},
            {"throttle_after", nullptr},
            {"other_memory_bytes", nullptr},
            {"load_milli", load},
            {"cores", ThreadPool::HardwareThreads()},
            {"hypervisor", hypervisor}}}};
}

Nvml::Nvml(const char* pci_bus_id) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!Ask(library_, "nvmlInit_v2") ||
      !Ask(library_, "nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id, &device_)) {
    device_ = nullptr;
  }
}

Nvml::~Nvml() {
  if (library_ == nullptr) return;
  Ask(library_, "nvmlShutdown");
  dlclose(library_);
}

GpuState Nvml::State() const {
  GpuState state;
  unsigned int number = 0;
  unsigned long long reasons = 0;  // NOLINT(google-runtime-int): the library's own type
  if (device_ == nullptr) return state;
  if (Ask(library_, "nvmlDeviceGetClockInfo", device_, kClockSm, &number)) {
    state.clock_mhz = number;
  }
  if (Ask(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", device_, &reasons)) {
    state.throttle = static_cast<int64_t>(reasons);
  }
  if (Ask(library_, "nvmlDeviceGetTemperature", device_, kTemperatureGpu, &number)) {
    state.temperature_c = number;
  }
  return state;
}

Doc Nvml::DriverVersion() const {
  std::array<char, 96> text = {};
  const bool told = Ask(library_, "nvmlSystemGetDriverVersion", text.data(), 95u);
  return told ? TextOrNull(text.data()) : Doc();
}

Doc Nvml::PowerLimitMw() const {
  unsigned int limit = 0;
  return device_ != nullptr && Ask(library_, "nvmlDeviceGetEnforcedPowerLimit", device_, &limit)
             ? Doc(limit)
             : Doc();
}

Doc Nvml::MigMode() const {
  unsigned int current = 0;
  unsigned int pending = 0;
  return device_ != nullptr && Ask(library_, "nvmlDeviceGetMigMode", device_, &current, &pending)
             ? Doc(current)
             : Doc();
}

Doc Nvml::ProcessCount() const {
  unsigned int count = 0;
  // With no room it fills in the count and says "insufficient size", 7; none at all is success.
  using Function = int (*)(void*, unsigned int*, void*);
  if (device_ == nullptr) return {};
  const auto function =
      reinterpret_cast<Function>(dlsym(library_, "nvmlDeviceGetComputeRunningProcesses_v3"));
  if (function == nullptr) return {};
  const int answer = function(device_, &count, nullptr);
  return answer == kSuccess || answer == 7 ? Doc(count) : Doc();
}

}  // namespace h3rt::lab
