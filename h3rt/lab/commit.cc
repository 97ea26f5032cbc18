// Writing: one change is one log entry and, where records change, one new registry.
//
//   1. the new registry as experiment_registry.json.next, flushed
//   2. the log line, one write call, flushed
//   3. HEAD by rename
//   4. the new registry by rename
//
// The entry holds the digest of the new registry. A crash before 2 leaves a file that no entry
// names: the change never was. A crash after 2 leaves one that the last entry names: the change is
// finished.
#include "h3rt/lab/commit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "h3rt/base/file.h"

namespace h3rt::lab {
namespace {

constexpr char kProject[] = "h3rt";
constexpr int64_t kMostLineBytes = 64 * 1024;
constexpr int64_t kMostFutureNs = 10ll * 60 * 1'000'000'000;

std::string NextFile(const Store& store) { return store.PathOf(kRegistryFile) + ".next"; }

bool IsThere(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0;
}

// One write call, so that a crash leaves whole lines or a torn last one. What cannot be written
// whole (a full disk) is taken back.
absl::Status AppendLine(const std::string& path, std::string_view line, int64_t size_before) {
  const bool fresh = !IsThere(path);
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus(errno, "append to", path);
  struct stat info = {};
  absl::Status status;
  if (::fstat(fd, &info) != 0 || info.st_size != size_before) {
    status = DataLoss({.what = "the log changed under the lock", .where = path});
  } else {
    const ssize_t written = ::write(fd, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size())) {
      status = ErrnoStatus(written < 0 ? errno : ENOSPC, "append to", path);
    } else if (::fsync(fd) != 0) {
      status = ErrnoStatus(errno, "flush", path);
    }
    if (!status.ok() && ::ftruncate(fd, size_before) != 0) {
      status = WithContext(status, "and a torn line is left: `h3rt lab log repair`");
    }
  }
  ::close(fd);
  if (status.ok() && fresh) status = RenameFlushed(path, path);  // flushes the folder
  return status;
}

// The commit that is checked out, for the entry's commit_parent; null outside a repository.
Doc CheckedOutCommit(const Store& store) {
  const auto line = [&](const std::string& file) {
    absl::StatusOr<std::string> text = ReadFile(store.PathOf(file), 1 << 16);
    if (!text.ok()) return std::string();
    return text->substr(0, text->find_first_of("\r\n"));
  };
  std::string head = line(".git/HEAD");
  constexpr std::string_view kRef = "ref: ";
  if (head.starts_with(kRef)) head = line(".git/" + head.substr(kRef.size()));
  const bool hex = head.find_first_not_of("0123456789abcdef") == std::string::npos;
  return head.size() == 40 && hex ? Doc(head) : Doc();
}

// The registry before a change: a new one when the log has never named one.
absl::StatusOr<Registry> RegistryBefore(const Store& store, const Log& log) {
  const bool named = !log.entries.empty() && !At(log.entries.back().json, "registry").is_null();
  if (!named && !IsThere(store.PathOf(kRegistryFile))) {
    Registry registry;
    registry.header = {{"policy_digest", std::string(64, '0')},
                       {"project", kProject},
                       {"schema", "lab.registry/1"},
                       {"tombstones", Doc::array()}};
    return registry;
  }
  Findings findings;
  std::optional<Registry> registry = LoadRegistry(store, findings);
  if (findings.errors() > 0 || !registry) {
    const std::string first =
        findings.errors() > 0 ? Findings::ToText(findings.Sorted().front()) : "no record";
    return DataLoss({.what = "the registry cannot be read, so it is not written", .got = first});
  }
  return *std::move(registry);
}

// What is written can be read again: no control characters, no text that is not UTF-8.
absl::Status CheckReadable(const Doc& document, const std::string& what) {
  Findings findings;
  const std::optional<Doc> again = ParseDocument(CanonicalText(document), "", 0, findings);
  if (again && *again == document) return absl::OkStatus();
  return InvalidArgument({.what = what,
                          .got = findings.errors() > 0 ? Findings::ToText(findings.Sorted().front())
                                                       : "a text that is not UTF-8"});
}

// Puts a change's records into the registry and their digests into the entry.
absl::Status Apply(std::vector<Doc> records, Registry& registry, Doc& entry) {
  entry["records"] = Doc::array();
  for (Doc& record : records) {
    const std::string id = TextAt(record, "id");
    if (id.empty()) return InvalidArgument({.what = "a record without an id"});
    RefreshDigest(record);
    H3RT_RETURN_IF_ERROR(CheckReadable(record, "record " + id));
    const auto place =
        std::lower_bound(registry.records.begin(), registry.records.end(), id,
                         [](const Record& a, const std::string& b) { return a.id() < b; });
    const bool there = place != registry.records.end() && place->id() == id;
    const Doc before = there ? At(place->json, "record_digest") : Doc();
    const Doc after = At(record, "record_digest");
    if (before == after) continue;
    for (const Doc& other : entry["records"]) {
      if (TextAt(other, "id") == id) {
        return InvalidArgument({.what = "a change writes a record twice", .got = id});
      }
    }
    entry["records"].push_back({{"after", after}, {"before", before}, {"id", id}});
    if (there) {
      place->json = std::move(record);
    } else {
      registry.records.insert(place, Record{.json = std::move(record)});
    }
  }
  return absl::OkStatus();
}

// Steps 1 to 4, under the lock.
absl::Status Write(const Store& store, const Log& log, Change change, Registry registry,
                   const std::string& now) {
  Doc& entry = change.entry;
  H3RT_RETURN_IF_ERROR(Apply(std::move(change.records), registry, entry));
  const bool named = !log.entries.empty() && !At(log.entries.back().json, "registry").is_null();
  entry["registry"] = named ? At(log.entries.back().json, "registry") : Doc();
  bool writes = !entry["records"].empty();
  Findings findings;
  if (const std::optional<Doc> policy = LoadPolicy(store, findings)) {
    const std::string digest = DigestOf(*policy);
    writes = writes || (named && TextAt(registry.header, "policy_digest") != digest);
    registry.header["policy_digest"] = digest;
  }
  std::string text;
  if (writes) {
    text = RegistryText(registry);
    entry["registry"] = DigestOfText(text);
  }
  if (At(entry, "commit_parent").is_null()) entry["commit_parent"] = CheckedOutCommit(store);
  H3RT_ASSIGN_OR_RETURN(const std::string line, EntryLine(entry, log, now));
  const std::string next = NextFile(store);
  absl::Status status;
  if (writes) status = WriteFlushed(next, text);
  if (writes && status.ok()) status = RenameFlushed(next, next);
  if (status.ok()) status = AppendLine(store.PathOf(kLogFile), line, log.bytes);
  if (!status.ok()) {
    // What is left is undone, or finished when the line is there after all.
    (void)RecoverLocked(store);
    return status;
  }
  H3RT_RETURN_IF_ERROR(WriteHead(store, entry, log.bytes + static_cast<int64_t>(line.size())));
  return writes ? RenameFlushed(next, store.PathOf(kRegistryFile)) : absl::OkStatus();
}

absl::Status MakeFolders(const Store& store) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(store.PathOf(kLogFile)).parent_path(),
                                      error);
  if (error) return ErrnoStatus(error.value(), "create the folder of", store.PathOf(kLogFile));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WriterLock> WriterLock::Take(const Store& store) {
  H3RT_RETURN_IF_ERROR(MakeFolders(store));
  const std::string path = store.PathOf(kLockFile);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return WriterLock(fd);
  const int error = errno;
  ::close(fd);
  if (error != EWOULDBLOCK) return ErrnoStatus(error, "lock", path);
  return absl::AbortedError(
      FormatError({.what = "the registry is being written by another command",
                   .wanted = "to be the one writer: try again when it has ended",
                   .where = path}));
}

WriterLock::WriterLock(WriterLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

WriterLock::~WriterLock() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status WriteFlushed(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  absl::Status status;
  while (!text.empty() && status.ok()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
    if (written < 0 && errno != EINTR) status = ErrnoStatus(errno, "write", path);
  }
  if (status.ok() && ::fsync(fd) != 0) status = ErrnoStatus(errno, "flush", path);
  if (::close(fd) != 0 && status.ok()) status = ErrnoStatus(errno, "close", path);
  return status;
}

absl::Status RenameFlushed(const std::string& from, const std::string& to) {
  if (from != to && std::rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, "rename into", to);
  }
  const std::string folder = std::filesystem::path(to).parent_path().string();
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", folder);
  const int flushed = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  return flushed == 0 ? absl::OkStatus() : ErrnoStatus(error, "flush", folder);
}

absl::Status WriteHead(const Store& store, const Doc& entry, int64_t bytes) {
  const Doc head = {{"bytes", bytes}, {"hash", At(entry, "hash")}, {"seq", At(entry, "seq")}};
  const std::string path = store.PathOf(kHeadFile);
  H3RT_RETURN_IF_ERROR(WriteFlushed(path + ".next", CanonicalText(head) + "\n"));
  return RenameFlushed(path + ".next", path);
}

absl::StatusOr<std::string> EntryLine(Doc& entry, const Log& log, const std::string& now) {
  const int64_t seq = static_cast<int64_t>(log.entries.size()) + 1;
  for (const char* name : {"author", "decision", "hypothesis", "status"}) {
    if (At(entry, name) == "") entry[name] = nullptr;  // nothing said
  }
  entry["seq"] = seq;
  entry["prev"] = log.head_hash;
  entry["ts"] = now.empty() ? UtcNow() : now;
  entry["hash"] = std::string(64, '0');
  H3RT_RETURN_IF_ERROR(CheckReadable(entry, "log entry"));
  Findings findings;
  CheckEntry(entry, 0, findings);
  if (findings.errors() > 0) {
    return InvalidArgument(
        {.what = "log entry", .got = Findings::ToText(findings.Sorted().front())});
  }
  if ((TextAt(entry, "kind") == "genesis") != (seq == 1)) {
    return InvalidArgument(
        {.what = "log entry",
         .got = "kind " + TextAt(entry, "kind") + " at seq " + std::to_string(seq),
         .wanted = "the genesis first, and once"});
  }
  if (*ParseUtc(TextAt(entry, "ts")) - *ParseUtc(UtcNow()) > kMostFutureNs) {
    return InvalidArgument({.what = "log entry", .got = "a time in the future"});
  }
  entry["hash"] = LogHash(entry);
  std::string line = CanonicalText(entry) + "\n";
  if (static_cast<int64_t>(line.size()) > kMostLineBytes) {
    return InvalidArgument({.what = "log entry",
                            .got = std::to_string(line.size()) + " bytes",
                            .wanted = "at most 64 KiB"});
  }
  return line;
}

absl::StatusOr<Log> LoadSoundLog(const Store& store, bool torn) {
  Findings findings;
  std::optional<Log> log = LoadLog(store, findings);
  if (!log) return IoError({.what = Findings::ToText(findings.Sorted().front())});
  if (!log->fault.empty()) return DataLoss({.what = log->fault});
  if (log->torn_bytes > 0 && !torn) {
    return DataLoss({.what = "the log ends in a torn line",
                     .got = std::to_string(log->torn_bytes) + " bytes after the last line feed",
                     .wanted = "`h3rt lab log repair` first",
                     .where = kLogFile});
  }
  return *std::move(log);
}

absl::StatusOr<std::string> RecoverLocked(const Store& store) {
  H3RT_ASSIGN_OR_RETURN(const Log log, LoadSoundLog(store, true));
  std::string said;
  if (static_cast<int64_t>(log.entries.size()) > log.head_seq) {
    H3RT_RETURN_IF_ERROR(WriteHead(store, log.entries.back().json, log.bytes));
    said = "HEAD advanced to entry " + std::to_string(log.entries.size());
  }
  const std::string next = NextFile(store);
  if (!IsThere(next)) return said;
  if (!said.empty()) said += "; ";
  absl::StatusOr<std::string> text = ReadFile(next);
  const bool named = text.ok() && !log.entries.empty() &&
                     TextAt(log.entries.back().json, "registry") == DigestOfText(*text);
  if (named) {
    H3RT_RETURN_IF_ERROR(RenameFlushed(next, store.PathOf(kRegistryFile)));
    return said + "the registry of entry " + std::to_string(log.entries.size()) + " put in place";
  }
  if (::unlink(next.c_str()) != 0) return ErrnoStatus(errno, "remove", next);
  return said + "a registry that no entry names removed";
}

absl::StatusOr<std::string> Recover(const Store& store) {
  struct stat info = {};
  const bool there = ::stat(store.PathOf(kLogFile).c_str(), &info) == 0;
  const absl::StatusOr<std::string> head = ReadFile(store.PathOf(kHeadFile), 4096);
  // The rest is for LoadLog to judge: readers need no lock when nothing is left to do.
  const bool current = head.ok() ? IntAt(ParseHead(*head), "bytes", -1) == info.st_size : !there;
  if (current && !IsThere(NextFile(store))) return std::string();
  H3RT_ASSIGN_OR_RETURN(const WriterLock lock, WriterLock::Take(store));
  return RecoverLocked(store);
}

absl::StatusOr<int64_t> Commit(const Store& store, const BuildChange& build,
                               const std::string& now) {
  H3RT_ASSIGN_OR_RETURN(const WriterLock lock, WriterLock::Take(store));
  H3RT_RETURN_IF_ERROR(RecoverLocked(store).status());
  H3RT_ASSIGN_OR_RETURN(Log log, LoadSoundLog(store, false));
  if (log.entries.empty()) {
    const Change genesis{.entry = EmptyEntry("genesis", std::string("The log of ") + kProject)};
    H3RT_RETURN_IF_ERROR(Write(store, log, genesis, {}, now));
    H3RT_ASSIGN_OR_RETURN(log, LoadSoundLog(store, false));
  }
  H3RT_ASSIGN_OR_RETURN(Registry registry, RegistryBefore(store, log));
  const int64_t seq = static_cast<int64_t>(log.entries.size()) + 1;
  H3RT_ASSIGN_OR_RETURN(Change change, build(registry, log, seq));
  H3RT_RETURN_IF_ERROR(Write(store, log, std::move(change), std::move(registry), now));
  return seq;
}

}  // namespace h3rt::lab
