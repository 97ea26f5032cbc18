#include "h3rt/base/env.h"

#include <array>
#include <cstdlib>

#include "h3rt/base/check.h"

namespace h3rt {
namespace {

constexpr std::array<EnvEntry, 6> kTable = {{
    {EnvVar::kThreads, "H3RT_THREADS", "number of threads, default: all that the process may use"},
    {EnvVar::kMemoryLimit, "H3RT_MEMORY_LIMIT",
     "bytes that a plan may use, default: what the machine has available"},
    {EnvVar::kMediaLibrary, "H3RT_MEDIA_LIBRARY",
     "path of the FFmpeg part (libh3rt_media.so), default: beside the program; \"none\" runs "
     "without FFmpeg"},
    {EnvVar::kFakeDevices, "H3RT_FAKE_DEVICES",
     "devices to believe in, as compute capabilities \"9.0,12.1\", or \"none\"; for tests"},
    {EnvVar::kFakeMemory, "H3RT_FAKE_MEMORY",
     "bytes of memory that plans believe to be available; for tests"},
    {EnvVar::kLog, "H3RT_LOG", "debug, info, warning, error or silent; default info"},
}};
static_assert(kTable.size() <= 10);

}  // namespace

std::span<const EnvEntry> EnvTable() { return kTable; }

std::optional<std::string> GetEnv(EnvVar var) {
  for (const EnvEntry& entry : kTable) {
    if (entry.var != var) continue;
    const char* value = std::getenv(entry.name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  }
  CheckFailed(__FILE__, __LINE__, "every EnvVar is in the table");
}

}  // namespace h3rt
