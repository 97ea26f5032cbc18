#include "h3rt/io/checksums.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"

namespace h3rt {
namespace {

constexpr size_t kDigits = 64;
// A list has about 100 bytes a file.
constexpr uint64_t kMaxList = 16ull << 20;

struct Listed {
  std::string name;
  std::string digest;  // lower case
  uint64_t size = 0;
};

// The path without "./"; empty when it could leave the folder or is not in its plain form.
std::string PlainPath(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(2);
  size_t begin = 0;
  for (;;) {
    const size_t slash = path.find('/', begin);
    const std::string_view part = path.substr(begin, slash - begin);
    if (part.empty() || part == "." || part == "..") return "";
    if (slash == std::string_view::npos) return std::string(path);
    begin = slash + 1;
  }
}

// False when the line is none of a list.
bool ParseLine(std::string_view line, Listed& out) {
  if (line.size() < kDigits + 3 || line[kDigits] != ' ') return false;
  if (line[kDigits + 1] != ' ' && line[kDigits + 1] != '*') return false;
  out.digest.clear();
  for (const char c : line.substr(0, kDigits)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isxdigit(byte) == 0) return false;
    out.digest += static_cast<char>(std::tolower(byte));
  }
  const std::string_view path = line.substr(kDigits + 2);
  if (path.find_first_of(std::string_view("\r\0", 2)) != std::string_view::npos) return false;
  out.name = PlainPath(path);
  return !out.name.empty();
}

absl::StatusOr<std::vector<Listed>> ParseList(std::string_view text, const std::string& where) {
  std::vector<Listed> list;
  std::map<std::string, int> seen;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.starts_with("#")) continue;
    const std::string at = where + " line " + std::to_string(number);
    Listed item;
    if (!ParseLine(line, item)) {
      return DataLoss({.what = "list of checksums",
                       .got = "\"" + std::string(line.substr(0, 200)) + "\"",
                       .wanted = "64 hex digits, two spaces and a path inside the folder",
                       .where = at});
    }
    if (!seen.emplace(item.name, number).second) {
      return DataLoss({.what = "list of checksums",
                       .got = "\"" + item.name + "\" twice",
                       .wanted = "every file once",
                       .where = at});
    }
    list.push_back(std::move(item));
  }
  if (list.empty()) {
    return DataLoss({.what = "list of checksums", .got = "no file", .where = where});
  }
  return list;
}

absl::Status Measure(const std::string& folder, const std::string& where, Listed& item) {
  const std::string path = folder + "/" + item.name;
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return ErrnoStatus(errno, "read the size of", path);
    return DataLoss({.what = "file of the list of checksums",
                     .got = "no such file",
                     .wanted = path,
                     .where = where});
  }
  if (!S_ISREG(info.st_mode)) {
    return DataLoss({.what = "file of the list of checksums",
                     .got = S_ISDIR(info.st_mode) ? "a folder" : "a pipe or device",
                     .wanted = "a regular file at " + path,
                     .where = where});
  }
  item.size = static_cast<uint64_t>(info.st_size);
  return absl::OkStatus();
}

class Reader {
 public:
  Reader(const ChecksumProgress& progress, uint64_t total) : progress_(progress), total_(total) {}

  // At most `size` bytes: a file that grows meanwhile is not read without end.
  absl::StatusOr<std::string> Hash(const std::string& path, uint64_t size) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return ErrnoStatus(errno, "open", path);
    absl::StatusOr<std::string> digest = HashOpen(fd, path, size);
    ::close(fd);
    return digest;
  }

 private:
  absl::StatusOr<std::string> HashOpen(int fd, const std::string& path, uint64_t size) {
    Sha256 hash;
    uint64_t left = size;
    while (left > 0) {
      const auto wanted = static_cast<size_t>(std::min<uint64_t>(left, buffer_.size()));
      const ssize_t n = ::read(fd, buffer_.data(), wanted);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, "read", path);
      if (n == 0) return IoError({.what = "file became shorter while it was read", .where = path});
      hash.Update(std::span<const std::byte>(buffer_.data(), static_cast<size_t>(n)));
      left -= static_cast<uint64_t>(n);
      done_ += static_cast<uint64_t>(n);
      if (progress_) H3RT_RETURN_IF_ERROR(progress_(done_, total_));
    }
    return hash.Finish();
  }

  const ChecksumProgress& progress_;
  const uint64_t total_;
  uint64_t done_ = 0;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 20);
};

}  // namespace

absl::Status ChecksumReport::ToStatus(const std::string& folder) const {
  if (mismatched.empty()) return absl::OkStatus();
  const Mismatch& first = mismatched.front();
  const size_t more = mismatched.size() - 1;
  return DataLoss({.what = "SHA-256 of " + first.file +
                           (more > 0 ? " and of " + std::to_string(more) + " more files" : ""),
                   .got = first.got,
                   .wanted = first.wanted,
                   .where = folder + "/" + kChecksumsFile});
}

absl::StatusOr<ChecksumReport> VerifyChecksums(const std::string& folder, uint64_t max_file_bytes,
                                               const ChecksumProgress& progress) {
  const std::string where = folder + "/" + kChecksumsFile;
  ChecksumReport report;
  struct stat info = {};
  if (::stat(where.c_str(), &info) != 0) {
    if (errno == ENOENT) return report;
    return ErrnoStatus(errno, "read the size of", where);
  }
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(where, kMaxList));
  H3RT_ASSIGN_OR_RETURN(std::vector<Listed> list, ParseList(text, where));
  report.listed = true;
  // Every file is looked for before the first is read: a missing one is found at once.
  uint64_t total = 0;
  for (Listed& item : list) {
    H3RT_RETURN_IF_ERROR(Measure(folder, where, item));
    if (item.size <= max_file_bytes) total += item.size;
  }
  Reader reader(progress, total);
  for (const Listed& item : list) {
    if (item.size > max_file_bytes) {
      report.skipped.push_back(item.name);
      continue;
    }
    H3RT_ASSIGN_OR_RETURN(const std::string digest,
                          reader.Hash(folder + "/" + item.name, item.size));
    if (digest == item.digest) {
      report.checked.push_back(item.name);
    } else {
      report.mismatched.push_back({item.name, digest, item.digest});
    }
  }
  return report;
}

std::string FormatChecksums(const std::map<std::string, std::string>& sums) {
  std::string text;
  for (const auto& [name, digest] : sums) text += digest + "  " + name + "\n";
  return text;
}

}  // namespace h3rt
