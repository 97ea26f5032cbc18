#include "h3rt/runtime/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>

#include "h3rt/base/env.h"

namespace h3rt {
namespace {

// The number after `key` in a file of "key value" words.
std::optional<uint64_t> LineOf(const char* path, const std::string& key) {
  std::ifstream in(path);
  std::string word;
  while (in >> word) {
    uint64_t value = 0;
    if (word == key && in >> value) return value;
  }
  return std::nullopt;
}

// The same for "key: value kB", in bytes.
std::optional<uint64_t> KilobyteLine(const char* path, const std::string& key) {
  const std::optional<uint64_t> value = LineOf(path, key);
  return value ? std::optional<uint64_t>(*value * 1024) : std::nullopt;
}

std::optional<uint64_t> NumberIn(const char* path) {
  std::ifstream in(path);
  uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // no such file, or the word "max"
}

// What a memory control group (version 2, or 1) still leaves to this process.
std::optional<uint64_t> ControlGroupLeft() {
  struct Files {
    const char* limit;
    const char* used;
    const char* stat;
    const char* cache;  // the line of `stat` with page cache that the kernel would give back
  };
  static constexpr Files kVersions[] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
       "inactive_file"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
       "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"}};
  for (const Files& files : kVersions) {
    const auto limit = NumberIn(files.limit);
    const auto used = NumberIn(files.used);
    if (!limit || !used) continue;
    // A checkpoint that was read once stays in the cache; that is not memory in use.
    const uint64_t cache = LineOf(files.stat, files.cache).value_or(0);
    const uint64_t held = *used > cache ? *used - cache : 0;
    return *limit > held ? *limit - held : 0;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<uint64_t>> BytesFromEnv(EnvVar var, const char* name) {
  const std::optional<std::string> text = GetEnv(var);
  if (!text) return std::optional<uint64_t>();
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value == 0) {
    return InvalidArgument({.what = std::string("environment variable ") + name,
                            .got = *text,
                            .wanted = "a positive number of bytes"});
  }
  return std::optional<uint64_t>(value);
}

}  // namespace

absl::StatusOr<uint64_t> AvailableMemory() {
  H3RT_ASSIGN_OR_RETURN(const auto fake, BytesFromEnv(EnvVar::kFakeMemory, "H3RT_FAKE_MEMORY"));
  if (fake) return *fake;
  H3RT_ASSIGN_OR_RETURN(const auto limit, BytesFromEnv(EnvVar::kMemoryLimit, "H3RT_MEMORY_LIMIT"));
  if (limit) return *limit;
  uint64_t available = KilobyteLine("/proc/meminfo", "MemAvailable:").value_or(UINT64_MAX);
  if (const auto left = ControlGroupLeft()) available = std::min(available, *left);
  return available;
}

uint64_t ResidentBytes() { return KilobyteLine("/proc/self/status", "VmRSS:").value_or(0); }

uint64_t PeakResidentBytes() { return KilobyteLine("/proc/self/status", "VmHWM:").value_or(0); }

void ReturnFreedMemory() { ::malloc_trim(0); }

bool ResetPeakResident() {
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return out.good();
}

}  // namespace h3rt
