#include "h3rt/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace h3rt {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "write", path);
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

std::string FollowLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // the kernel's own limit
  std::string current = path;
  for (int i = 0; i < kMostLinks; ++i) {
    char target[PATH_MAX];
    const ssize_t n = ::readlink(current.c_str(), target, sizeof(target));
    if (n < 0) return current;
    const std::string next(target, static_cast<size_t>(n));
    current = next[0] == '/' ? next : FolderOf(current) + "/" + next;
  }
  return path;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t limit_bytes) {
  // Not blocking: opening a pipe that nobody writes would wait for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info = {};
  if (fd < 0) {
    const int error = errno;
    // A link to nowhere is a mistake, and not the absence of the file.
    if (error == ENOENT && ::lstat(path.c_str(), &info) == 0) {
      return IoError({.what = "cannot open file", .got = "a link to nowhere", .where = path});
    }
    return ErrnoStatus(error, "open", path);
  }
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return IoError({.what = "cannot read file",
                    .got = S_ISDIR(info.st_mode) ? "a folder" : "a pipe or device",
                    .wanted = "a regular file",
                    .where = path});
  }
  if (static_cast<uint64_t>(info.st_size) > limit_bytes) {
    ::close(fd);
    return InvalidArgument({.what = "file is too large",
                            .got = std::to_string(info.st_size) + " bytes",
                            .wanted = "at most " + std::to_string(limit_bytes),
                            .where = path});
  }
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      ::close(fd);
      return ErrnoStatus(error, "read", path);
    }
    if (n == 0) break;
    out.append(buffer, static_cast<size_t>(n));
    if (out.size() > limit_bytes) {  // it grew meanwhile
      ::close(fd);
      return InvalidArgument({.what = "file is too large",
                              .wanted = "at most " + std::to_string(limit_bytes) + " bytes",
                              .where = path});
    }
  }
  ::close(fd);
  return out;
}

absl::StatusOr<PendingFile> PendingFile::Create(const std::string& path) {
  if (path.empty()) return IoError({.what = "cannot write file", .got = "an empty name"});
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) {
      // Renaming over a device (as root) or a pipe would replace it.
      return IoError({.what = "cannot write file",
                      .got = S_ISDIR(info.st_mode) ? "a folder" : "not a regular file",
                      .where = path});
    }
  } else if (errno == ENAMETOOLONG || errno == ELOOP) {
    return ErrnoStatus(errno, "write", path);
  }
  PendingFile file;
  // Written through a link: renaming over it would replace the link.
  file.path_ = FollowLinks(path);
  std::string name = FolderOf(file.path_) + "/.h3rt-XXXXXX";
  file.fd_ = ::mkstemp(name.data());
  if (file.fd_ < 0) return ErrnoStatus(errno, "create a file in", FolderOf(file.path_));
  file.temporary_path_ = std::move(name);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file.fd_, 0666 & ~mask) != 0) return ErrnoStatus(errno, "set the mode of", path);
  return file;
}

PendingFile::PendingFile(PendingFile&& other) noexcept { *this = std::move(other); }

PendingFile& PendingFile::operator=(PendingFile&& other) noexcept {
  if (this == &other) return *this;
  Discard();
  path_ = std::exchange(other.path_, {});
  temporary_path_ = std::exchange(other.temporary_path_, {});
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

PendingFile::~PendingFile() { Discard(); }

void PendingFile::Discard() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
  temporary_path_.clear();
}

absl::Status PendingFile::Write(std::span<const std::byte> bytes) {
  return WriteAll(fd_, bytes, path_);
}

absl::Status PendingFile::Write(std::string_view text) {
  return Write(std::as_bytes(std::span(text.data(), text.size())));
}

absl::Status PendingFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "write", path_);
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status PendingFile::Commit() {
  if (::fsync(fd_) != 0) return ErrnoStatus(errno, "flush", path_);
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) return ErrnoStatus(errno, "close", path_);
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, "rename into", path_);
  }
  temporary_path_.clear();
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view content) {
  H3RT_ASSIGN_OR_RETURN(PendingFile file, PendingFile::Create(path));
  H3RT_RETURN_IF_ERROR(file.Write(content));
  return file.Commit();
}

absl::Status WriteFlushed(const std::string& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  absl::Status status = WriteAll(fd, std::as_bytes(std::span(content)), path);
  if (status.ok() && ::fsync(fd) != 0) status = ErrnoStatus(errno, "flush", path);
  if (::close(fd) != 0 && status.ok()) status = ErrnoStatus(errno, "close", path);
  return status;
}

absl::Status RenameFlushed(const std::string& from, const std::string& to) {
  if (from != to && std::rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, "rename into", to);
  }
  const std::string folder = FolderOf(to);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", folder);
  const int flushed = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  return flushed == 0 ? absl::OkStatus() : ErrnoStatus(error, "flush", folder);
}

absl::Status ReplaceFlushed(const std::string& path, std::string_view content) {
  H3RT_RETURN_IF_ERROR(WriteFlushed(path + ".next", content));
  return RenameFlushed(path + ".next", path);
}

absl::Status MakeFoldersOf(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(FolderOf(path), error);
  if (!error) return absl::OkStatus();
  return ErrnoStatus(error.value(), "create the folder of", path);
}

absl::StatusOr<FileLock> FileLock::Take(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return FileLock(fd);
  const int error = errno;
  ::close(fd);
  if (error != EWOULDBLOCK) return ErrnoStatus(error, "lock", path);
  return absl::AbortedError(FormatError({.what = "another process has the lock", .where = path}));
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace h3rt
