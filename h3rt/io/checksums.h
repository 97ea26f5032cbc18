// SHA256SUMS of a model folder, the format of the program sha256sum.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

inline constexpr const char* kChecksumsFile = "SHA256SUMS";

struct ChecksumReport {
  bool listed = false;  // the folder has the file; without it the lists below are empty
  // Names as in the list, relative to the folder. Each listed file is in exactly one of the three.
  std::vector<std::string> checked;  // read whole, and equal
  std::vector<std::string> skipped;  // larger than was to be read
  struct Mismatch {
    std::string file;
    std::string got;  // 64 hex digits
    std::string wanted;
  };
  std::vector<Mismatch> mismatched;

  // kDataLoss naming the first file with other content (what it has, what the list says) and how
  // many more there are; OK when there is none.
  absl::Status ToStatus(const std::string& folder) const;
};

// Bytes read and to be read; an error stops the work and is returned.
using ChecksumProgress = std::function<absl::Status(uint64_t done, uint64_t total)>;

// Hashes the files that `folder`/SHA256SUMS lists and that have at most `max_file_bytes`. A folder
// without a list is fine: nothing is promised there. Other content is not an error of this function
// but an entry of the report, so that one run names every file; see ToStatus.
//
// A line is 64 hex digits, a space, a space or "*", and the path relative to the folder, "/"
// between its parts, with or without "./" in front; lines that begin with "#" are comments.
//
// Errors: kDataLoss for a list with no entry, another line, an absolute path or one with "..", a
// file listed twice, and a listed file that is missing or not a regular file; I/O errors.
absl::StatusOr<ChecksumReport> VerifyChecksums(const std::string& folder,
                                               uint64_t max_file_bytes = UINT64_MAX,
                                               const ChecksumProgress& progress = {});

// The text of such a list: relative path -> 64 hex digits.
std::string FormatChecksums(const std::map<std::string, std::string>& sums);

}  // namespace h3rt
