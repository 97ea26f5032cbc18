// Runs a fuzz target over the files of a folder, once each: `replay FOLDER`. Exit code 10 when the
// folder holds none, so that a lost corpus does not look like a clean one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "h3rt/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    if (entry.is_regular_file(error)) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const absl::StatusOr<std::string> content = h3rt::ReadFile(path);
    if (!content.ok()) {
      std::fprintf(stderr, "%s\n", h3rt::MessageOf(content.status()).c_str());
      return 3;
    }
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(content->data()), content->size());
  }
  std::printf("%zu files\n", paths.size());
  return paths.empty() ? 10 : 0;
}
