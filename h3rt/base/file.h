// Files: whole reads, and writes that appear under their name only when they are complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

// The parts of a change in several steps, where a crash between any two must find what was done.
// A file under its own name, flushed to disk.
absl::Status WriteFlushed(const std::string& path, std::string_view content);
// Renames and flushes the folder. Both files lie in the same folder.
absl::Status RenameFlushed(const std::string& from, const std::string& to);
// The two with `path`.next in between: the old file is there until the new one is whole.
absl::Status ReplaceFlushed(const std::string& path, std::string_view content);

// The folders that a file will lie in.
absl::Status MakeFoldersOf(const std::string& path);

// A lock among processes (flock) for as long as the object lives.
class FileLock {
 public:
  // Makes the file where it is not there. kAborted when another has the lock: never waits.
  static absl::StatusOr<FileLock> Take(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace h3rt
