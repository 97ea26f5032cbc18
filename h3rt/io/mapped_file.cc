#include "h3rt/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace h3rt {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer; regular files ignore it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return ErrnoStatus(error, "read the size of", path);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return IoError({.what = "cannot map file",
                    .got = S_ISDIR(info.st_mode) ? "a folder" : "not a regular file",
                    .wanted = "a regular file",
                    .where = path});
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<uint64_t>(info.st_size);
  if (file->size_ > 0) {
    void* const data =
        ::mmap(nullptr, static_cast<size_t>(file->size_), PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      ::close(fd);
      file->size_ = 0;
      return ErrnoStatus(error, "map", path);
    }
    file->data_ = static_cast<std::byte*>(data);
  }
  ::close(fd);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(size_));
}

void MappedFile::Release() const {
  // Best effort: a refusal costs memory, not correctness.
  if (data_ != nullptr) (void)::madvise(data_, static_cast<size_t>(size_), MADV_DONTNEED);
}

}  // namespace h3rt
