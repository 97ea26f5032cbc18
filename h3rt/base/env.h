// The one table of environment variables. A flag wins over the environment, the environment over a
// file, a file over the default. At most ten.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace h3rt {

enum class EnvVar { kThreads, kMemoryLimit, kMediaLibrary, kFakeDevices, kFakeMemory, kLog };

struct EnvEntry {
  EnvVar var;
  const char* name;
  const char* help;
};

std::span<const EnvEntry> EnvTable();

// The value, or nothing when the variable is unset or empty.
std::optional<std::string> GetEnv(EnvVar var);

}  // namespace h3rt
