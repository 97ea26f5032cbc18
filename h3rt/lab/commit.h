// How the log and the registry are written. Private to the laboratory's log.
#pragma once

#include <string>
#include <string_view>

#include "h3rt/lab/log.h"

namespace h3rt::lab {

// The one writer's lock (flock), for as long as the object lives. kAborted when another has it.
class WriterLock {
 public:
  static absl::StatusOr<WriterLock> Take(const Store& store);
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&&) = delete;
  ~WriterLock();

 private:
  explicit WriterLock(int fd) : fd_(fd) {}
  int fd_;
};

// Recover under a lock that the caller holds. kDataLoss when the chain or HEAD cannot be trusted.
absl::StatusOr<std::string> RecoverLocked(const Store& store);
// The log as it is under the lock: sound and, unless `torn` is allowed, without a torn line.
absl::StatusOr<Log> LoadSoundLog(const Store& store, bool torn);

// Puts schema, seq, prev, ts and hash into an entry that follows `log` and gives its line, with LF.
// kInvalidArgument when the entry is not of the form or its line is over 64 KiB.
absl::StatusOr<std::string> EntryLine(Doc& entry, const Log& log, const std::string& now);
// The HEAD of a log that ends with `entry` after `bytes` bytes: by a temporary file and a rename.
absl::Status WriteHead(const Store& store, const Doc& entry, int64_t bytes);
// A file that is flushed to disk, under its own name: for temporary files.
absl::Status WriteFlushed(const std::string& path, std::string_view text);
// Renames and flushes the folder. Both files lie in the same folder.
absl::Status RenameFlushed(const std::string& from, const std::string& to);

}  // namespace h3rt::lab
