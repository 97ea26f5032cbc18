// Files: whole reads, and writes that appear under their name only when they are complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "h3rt/base/status.h"

namespace h3rt {

// The path that a write to `path` ends at: links are followed, also one whose target is not there
// yet. A loop of links, or a path that is no link, stays as it is.
std::string FollowLinks(const std::string& path);

// The whole file; refuses more than `limit_bytes` before reading.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t limit_bytes = 1ull << 30);

// A file that is written under a temporary name in the same folder and renamed by Commit(). Without
// Commit() the destructor removes the temporary file: no partial result is ever left.
class PendingFile {
 public:
  // Refuses a path that is a folder, device or pipe, or whose folder does not exist or cannot be
  // written.
  static absl::StatusOr<PendingFile> Create(const std::string& path);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&& other) noexcept;
  ~PendingFile();

  // Where to write now. Another library may open it by name.
  const std::string& temporary_path() const { return temporary_path_; }
  absl::Status Write(std::span<const std::byte> bytes);
  absl::Status Write(std::string_view text);
  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  // Flushes to disk, then renames.
  absl::Status Commit();

 private:
  PendingFile() = default;
  void Discard();

  std::string path_;
  std::string temporary_path_;
  int fd_ = -1;
};

absl::Status WriteFileAtomically(const std::string& path, std::string_view content);

}  // namespace h3rt
