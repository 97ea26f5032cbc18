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
#include "h3rt/ledger/commit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace h3rt::lab {
namespace {

constexpr char kProject[] = "h3rt";
constexpr char kQuarantine[] = "research/vortex_exact_attention/quarantine/";

std::string NextFile(const Store& store) { return store.PathOf(kRegistryFile) + ".next"; }

bool IsThere(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0;
}

// The digest of the registry that the log names last; null when it never named one.
Doc NamedRegistry(const Log& log) {
  return log.entries.empty() ? Doc() : At(log.entries.back().json, "registry");
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
  if (NamedRegistry(log).is_null() && !IsThere(store.PathOf(kRegistryFile))) {
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
    return DataLoss({.what = "the registry cannot be read, so it is not written",
                     .got = findings.errors() > 0 ? GravestOf(findings) : "no record"});
  }
  return *std::move(registry);
}

// What is written can be read again: no control characters, no text that is not UTF-8.
absl::Status CheckReadable(const Doc& document, const std::string& what) {
  Findings findings;
  const std::optional<Doc> again = ParseDocument(CanonicalText(document), "", 0, findings);
  if (again && *again == document) return absl::OkStatus();
  return InvalidArgument(
      {.what = what,
       .got = findings.errors() > 0 ? GravestOf(findings) : "a text that is not UTF-8"});
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

// The HEAD of a log that ends with `entry` after `bytes` bytes.
absl::Status WriteHead(const Store& store, const Doc& entry, int64_t bytes) {
  const Doc head = {{"bytes", bytes}, {"hash", At(entry, "hash")}, {"seq", At(entry, "seq")}};
  return ReplaceFlushed(store.PathOf(kHeadFile), CanonicalText(head) + "\n");
}

// Puts seq, prev, ts and hash into an entry that follows `log` and gives its line, with LF.
absl::StatusOr<std::string> EntryLine(Doc& entry, const Log& log, const std::string& now) {
  for (const char* name : {"author", "decision", "hypothesis", "status"}) {
    if (At(entry, name) == "") entry[name] = nullptr;  // nothing said
  }
  entry["seq"] = log.entries.size() + 1;
  entry["prev"] = log.head_hash;
  entry["ts"] = now.empty() ? UtcNow() : now;
  entry["hash"] = LogHash(entry);
  H3RT_RETURN_IF_ERROR(CheckReadable(entry, "log entry"));
  const std::string line = CanonicalText(entry);
  Findings findings;
  CheckNextLine(log, line, findings);
  if (findings.errors() == 0) return line + "\n";
  return InvalidArgument({.what = "log entry", .got = GravestOf(findings)});
}

// Recover under a lock that the caller holds.
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
  if (text.ok() && NamedRegistry(log) == DigestOfText(*text)) {
    H3RT_RETURN_IF_ERROR(RenameFlushed(next, store.PathOf(kRegistryFile)));
    return said + "the registry of entry " + std::to_string(log.entries.size()) + " put in place";
  }
  if (::unlink(next.c_str()) != 0) return ErrnoStatus(errno, "remove", next);
  return said + "a registry that no entry names removed";
}

// Steps 1 to 4, under the lock.
absl::Status Write(const Store& store, const Log& log, Change change, Registry registry,
                   const std::string& now) {
  Doc& entry = change.entry;
  H3RT_RETURN_IF_ERROR(Apply(std::move(change.records), registry, entry));
  entry["registry"] = NamedRegistry(log);
  bool writes = !entry["records"].empty();
  Findings ignored;
  if (const std::optional<Doc> policy = LoadPolicy(store, ignored)) {
    const Doc before = std::exchange(registry.header["policy_digest"], DigestOf(*policy));
    const bool named = !entry["registry"].is_null();
    writes = writes || (named && before != registry.header["policy_digest"]);
  }
  const std::string text = writes ? RegistryText(registry) : "";
  if (writes) entry["registry"] = DigestOfText(text);
  if (At(entry, "commit_parent").is_null()) entry["commit_parent"] = CheckedOutCommit(store);
  H3RT_ASSIGN_OR_RETURN(const std::string line, EntryLine(entry, log, now));
  const std::string next = NextFile(store);
  absl::Status status;
  if (writes) status = WriteFlushed(next, text);
  if (writes && status.ok()) status = RenameFlushed(next, next);  // flushes the folder
  if (status.ok()) status = AppendLine(store.PathOf(kLogFile), line, log.bytes);
  if (!status.ok()) {
    // What is left is undone, or finished when the line is there after all.
    (void)RecoverLocked(store);
    return status;
  }
  H3RT_RETURN_IF_ERROR(WriteHead(store, entry, log.bytes + static_cast<int64_t>(line.size())));
  return writes ? RenameFlushed(next, store.PathOf(kRegistryFile)) : absl::OkStatus();
}

}  // namespace

std::string GravestOf(const Findings& findings) {
  const std::vector<Finding> sorted = findings.Sorted();
  const auto gravest = std::find_if(sorted.begin(), sorted.end(), [&](const Finding& finding) {
    const CodeEntry* code = FindCode(finding.code);
    return code != nullptr && code->severity == Severity::kError &&
           code->exit_code == findings.exit_code();
  });
  // Beyond the cap of findings the gravest is counted and not kept.
  return Findings::ToText(gravest == sorted.end() ? sorted.front() : *gravest);
}

absl::StatusOr<FileLock> TakeWriterLock(const Store& store) {
  const std::string path = store.PathOf(kLockFile);
  H3RT_RETURN_IF_ERROR(MakeFoldersOf(path));
  absl::StatusOr<FileLock> lock = FileLock::Take(path);
  if (!absl::IsAborted(lock.status())) return lock;
  return absl::AbortedError(
      FormatError({.what = "the registry is being written by another command",
                   .wanted = "to be the one writer: try again when it has ended",
                   .where = path}));
}

absl::StatusOr<Log> LoadSoundLog(const Store& store, bool torn) {
  Findings findings;
  std::optional<Log> log = LoadLog(store, findings);
  if (!log) return IoError({.what = GravestOf(findings)});
  if (!log->fault.empty()) return DataLoss({.what = log->fault});
  if (log->torn_bytes > 0 && !torn) {
    return DataLoss({.what = "the log ends in a torn line",
                     .got = std::to_string(log->torn_bytes) + " bytes after the last line feed",
                     .wanted = "`h3rt lab log repair` first",
                     .where = kLogFile});
  }
  return *std::move(log);
}

absl::StatusOr<std::string> Recover(const Store& store) {
  struct stat info = {};
  const bool there = ::stat(store.PathOf(kLogFile).c_str(), &info) == 0;
  const absl::StatusOr<std::string> head = ReadFile(store.PathOf(kHeadFile), 4096);
  // The rest is for LoadLog to judge: readers need no lock when nothing is left to do.
  const bool current = head.ok() ? IntAt(ParseHead(*head), "bytes", -1) == info.st_size : !there;
  if (current && !IsThere(NextFile(store))) return std::string();
  H3RT_ASSIGN_OR_RETURN(const FileLock lock, TakeWriterLock(store));
  return RecoverLocked(store);
}

absl::StatusOr<int64_t> Commit(const Store& store, const BuildChange& build,
                               const std::string& now) {
  H3RT_ASSIGN_OR_RETURN(const FileLock lock, TakeWriterLock(store));
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

absl::StatusOr<std::string> RepairLog(const Store& store, const std::string& now) {
  H3RT_ASSIGN_OR_RETURN(const FileLock lock, TakeWriterLock(store));
  H3RT_RETURN_IF_ERROR(RecoverLocked(store).status());
  H3RT_ASSIGN_OR_RETURN(const Log log, LoadSoundLog(store, true));
  if (log.torn_bytes == 0) return std::string();
  const std::string path = store.PathOf(kLogFile);
  H3RT_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  const std::string torn = text.substr(static_cast<size_t>(log.bytes));
  const std::string file = kQuarantine + DigestOfText(torn);
  H3RT_RETURN_IF_ERROR(MakeFoldersOf(store.PathOf(file)));
  H3RT_RETURN_IF_ERROR(ReplaceFlushed(store.PathOf(file), torn));
  text.resize(static_cast<size_t>(log.bytes));
  std::string said = std::to_string(torn.size()) + " bytes moved to " + file;
  Doc entry = EmptyEntry("quarantine", "Torn line moved to quarantine");
  if (!log.entries.empty()) {  // else there is no genesis for an entry to follow
    entry["actions"].push_back("Moved the bytes after the last line feed to " + file);
    entry["quarantine"] = {{"bytes", torn.size()}, {"file", file}, {"sha256", DigestOfText(torn)}};
    entry["registry"] = NamedRegistry(log);
    H3RT_ASSIGN_OR_RETURN(const std::string line, EntryLine(entry, log, now));
    text += line;
  }
  // The line goes and the entry that names it comes with one rename.
  H3RT_RETURN_IF_ERROR(ReplaceFlushed(path, text));
  if (!log.entries.empty()) {
    H3RT_RETURN_IF_ERROR(WriteHead(store, entry, static_cast<int64_t>(text.size())));
  }
  return said;
}

}  // namespace h3rt::lab
