// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "h3rt/base/status.h"

namespace h3rt {

// Pages are read when they are first touched, so opening a file of any size costs nothing. The
// mapping has the size that the file had when it was opened; a file that somebody shortens later
// makes reads beyond its new end fail with SIGBUS, as with every mmap. That is out of scope:
// checkpoints are not edited while they run.
class MappedFile {
 public:
  // kNotFound or kUnavailable when the file cannot be opened, kUnavailable for a folder or a
  // device, kResourceExhausted when the address space is used up. An empty file maps to no bytes.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  bool Contains(const std::byte* p) const { return p >= data_ && p < data_ + size_; }

  // Gives the resident pages back to the system, so that the weights of a finished stage leave
  // memory. Views stay valid: a later read brings the pages in again.
  void Release() const;

 private:
  MappedFile() = default;

  std::string path_;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace h3rt
