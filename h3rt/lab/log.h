// The append-only log: canonical JSON lines in a hash chain, a HEAD, one writer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "h3rt/lab/store.h"

namespace h3rt::lab {

struct LogEntry {
  Doc json;
  int64_t line = 0;
  int64_t seq() const { return IntAt(json, "seq"); }
};

struct Log {
  std::vector<LogEntry> entries;
  std::string head_hash;  // of the last entry; 64 zeros for an empty log
  int64_t bytes = 0;
};

// hash = sha256("lab.log/1" 0x00 <32 bytes of prev> <canonical entry without "hash">).
std::string LogHash(const Doc& entry);

// Reads and verifies the chain and HEAD: E-LOG-CHAIN, E-LOG-CUT, E-LOG-TORN, E-TIME, E-FIELD-*.
// Gives what was valid up to the first fault.
std::optional<Log> LoadLog(const Store& store, Findings& findings);

// Proves that the log at `head` ({"seq","bytes","hash"} of a HEAD file or of a git revision's HEAD)
// is a prefix of this one: E-LOG-CUT / E-LOG-CHAIN otherwise.
void VerifyAgainst(const Log& log, const Doc& head, std::string_view name, Findings& findings);

// An entry with every field present and empty; fill in what is said.
Doc EmptyEntry(std::string_view kind, std::string_view title);

// One change under the writers' lock: `build` sees the registry as it is and the seq that its entry
// will have, and gives the records it writes (whole, digests are set here) and the entry (its
// `records`, seq, prev, ts and hash are set here). Order: the new registry under a temporary name,
// the log line, fsync, HEAD, the rename. A crash anywhere is finished or undone by the next reader
// (Recover). kAborted when another writer holds the lock. Returns the seq.
struct Change {
  Doc entry;
  std::vector<Doc> records = {};
};
using BuildChange = std::function<absl::StatusOr<Change>(const Registry&, const Log&, int64_t seq)>;
absl::StatusOr<int64_t> Commit(const Store& store, const BuildChange& build,
                               const std::string& now = "");

// Finishes or undoes what an interrupted Commit left; says what it did, empty for nothing.
absl::StatusOr<std::string> Recover(const Store& store);
// Moves a torn last line to a quarantine blob and appends an entry that names it.
absl::StatusOr<std::string> RepairLog(const Store& store, const std::string& now = "");

// UTC, "2026-08-26T14:03:22.123456789Z".
std::string UtcNow();

}  // namespace h3rt::lab
