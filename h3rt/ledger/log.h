// The append-only log: canonical JSON lines in a hash chain, a HEAD, one writer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "h3rt/base/utc.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

struct LogEntry {
  Doc json;
  int64_t line = 0;
  int64_t end = 0;  // bytes of the log up to and with this line
  int64_t seq() const { return IntAt(json, "seq"); }
};

// The sound part of a log. The first entry has seq 1 and kind genesis, so a seq is also a count.
struct Log {
  std::vector<LogEntry> entries;
  std::string head_hash;   // of the last entry; 64 zeros for an empty log
  int64_t bytes = 0;       // of the sound part
  int64_t torn_bytes = 0;  // after the last line feed: an append that was interrupted
  int64_t head_seq = 0;    // what HEAD says; less than the entries after an interrupted append
  std::string fault = {};  // why the chain or HEAD cannot be trusted; empty: it can
};

// hash = sha256("lab.log/1" 0x00 <32 bytes of prev> <canonical entry without "hash">). Empty when
// prev is no digest.
std::string LogHash(const Doc& entry);

// Verifies a log and the HEAD that goes with it (nullopt: there is none): E-LOG-CHAIN, E-LOG-CUT,
// E-LOG-TORN, E-LOG-FORM, E-TIME, W-TIME, what is wrong with the form of an entry, and W-NUMBER for
// numbers in its texts that cite nothing (not for imports). A log longer than HEAD is no fault:
// HEAD is written after the log. `now` is for the time checks; empty: the clock.
Log ParseLog(std::string_view text, std::optional<std::string_view> head, const std::string& now,
             Findings& findings);
// The same from a store; an empty log where there is none. Nothing only when it cannot be read
// (E-IO).
std::optional<Log> LoadLog(const Store& store, Findings& findings, const std::string& now = "");

// Proves that the log at `head` ({"seq","bytes","hash"} of a HEAD file or of a git revision's HEAD)
// is a prefix of this one: E-LOG-CUT / E-LOG-CHAIN otherwise.
void VerifyAgainst(const Log& log, const Doc& head, std::string_view name, Findings& findings);

// What a HEAD file says: one canonical line, {"bytes","hash","seq"}. Null when it is no such line.
Doc ParseHead(std::string_view text);

// An entry with every field present and empty (texts are null); fill in what is said. The fields
// are those of the specification, and: `plan` (plan entries: experiment, gate, sizes, thresholds),
// `document` (import entries: where the words come from), `quarantine` (sha256 and bytes of what
// was moved away), `registry` (digest of the registry file after the entry; set by Commit).
Doc EmptyEntry(std::string_view kind, std::string_view title);

// One change under the writers' lock: `build` sees the registry as it is and the seq that its entry
// will have, and gives the records it writes (whole, digests are set here) and the entry (its
// `records`, seq, prev, ts and hash are set here). Order: the new registry under a temporary name,
// the log line, fsync, HEAD, the rename. A crash anywhere is finished or undone by the next reader
// (Recover). kAborted when another writer holds the lock. Returns the seq. The first change of a
// store is preceded by the genesis entry; the header's policy_digest follows the policy file.
struct Change {
  Doc entry;
  std::vector<Doc> records = {};
};
using BuildChange = std::function<absl::StatusOr<Change>(const Registry&, const Log&, int64_t seq)>;
absl::StatusOr<int64_t> Commit(const Store& store, const BuildChange& build,
                               const std::string& now = "");

// Finishes or undoes what an interrupted Commit left; says what it did, empty for nothing. Takes
// the lock only when there is something to do.
absl::StatusOr<std::string> Recover(const Store& store);
// Moves a torn last line to a quarantine blob and appends an entry that names it. Never touches
// what ends in a line feed. Says what it did, empty for nothing.
absl::StatusOr<std::string> RepairLog(const Store& store, const std::string& now = "");

}  // namespace h3rt::lab
