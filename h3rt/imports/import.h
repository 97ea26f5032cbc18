// What comes from elsewhere.
#pragma once

#include <string>

#include "h3rt/ledger/finding.h"
#include "h3rt/ledger/log.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// A registry page of the seed's form.
struct SeedRow {
  int64_t line = 0;
  std::string id, name, status, decision, evidence, gaps;
};
struct SeedPage {
  std::string file;
  std::string sha256;
  std::vector<SeedRow> rows = {};
  std::map<std::string, int64_t> counted = {};  // status -> rows
  std::map<std::string, int64_t> printed = {};  // status -> the Totals block
  int64_t printed_total = -1;
};
// Every inconsistency is a finding: E-TOTALS for each status whose printed total is not its count,
// and for the grand total, E-ID-DUP, E-STATUS-ENUM, E-SEED-FORM; W-SEED-PATH for evidence cells
// that name no path that a machine could resolve.
SeedPage ParseSeedPage(std::string_view text, std::string_view file, Findings& findings);

// A log of the seed's form (flattened or Markdown), as entries; and the proof that one is a prefix
// of the other on canonical entries.
struct SeedEntry {
  int64_t line = 0;
  std::string date = {}, title = {}, status = {};
  std::vector<std::string> paragraphs = {};  // markup removed; the cells of a table row have tabs
};
std::vector<SeedEntry> ParseSeedLog(std::string_view text, std::string_view file,
                                    Findings& findings);
// Empty when `shorter` is a prefix of `longer`, else the first difference.
std::string WhyNotPrefix(const std::vector<SeedEntry>& shorter,
                         const std::vector<SeedEntry>& longer);

// What people wrote about the seed's experiments in words of their own: groups, kinds, decisions,
// scope, relations, closed work, and records that the seed names without a row.
inline constexpr char kSeedInventoryFile[] = "research/seed_inventory.json";
// Takes over the rows of a page and the inventory's other records: one entry for each of the two.
// Own status incomplete, the seed's as imported_status, its gaps as missing[] entries. Records that
// are there already stay as they are. Gives the seq of the last entry; kInvalidArgument, with
// nothing written, when a row has no place in the inventory.
absl::StatusOr<int64_t> ImportSeedPage(const Store& store, const SeedPage& page,
                                       const std::string& now = "");
// Takes over a log: an entry of kind import for each dated entry and for the table of closed work,
// then one of kind close for each row of the table. What was imported before from the same document
// is left out. Gives the seq of the last entry.
absl::StatusOr<int64_t> ImportSeedLog(const Store& store, std::string_view text,
                                      std::string_view file, const std::string& now = "");

// Evidence made on another machine: one file. A line "h3rt-lab-bundle/1", a canonical line
// {"entries":[{"bytes","name","sha256"},..]} sorted by name, then the bytes of the entries in that
// order: envelopes "<sha256>.json" and the blobs they name, "<sha256>.z", as a store keeps them.
absl::StatusOr<std::string> PackBundle(const std::vector<NewEvidence>& evidence);
absl::Status WriteBundle(const std::string& path, const std::vector<NewEvidence>& evidence);
// E-BUNDLE unless everything is there, has its digest and form, and nothing else is.
std::optional<std::vector<NewEvidence>> ParseBundle(std::string_view bytes, std::string_view file,
                                                    Findings& findings);

// Checks every digest, form, experiment, variant and plan before anything is written; E-BUNDLE and
// nothing imported otherwise. Then the evidence, references to it in its records, one log entry. A
// variant that the experiment declares and its record lacks is added to the record. A second import
// changes nothing.
struct BundleResult {
  int64_t added = 0;
  int64_t present = 0;
  std::vector<std::string> digests;
  std::vector<std::string> experiments;
  int64_t log_seq = -1;  // -1: nothing was new
};
absl::StatusOr<BundleResult> ImportBundle(const Store& store, std::string_view bytes,
                                          std::string_view file, Findings& findings,
                                          const std::string& now = "");

// Another tool's output ("ptxas-log", "sanitizer-log", "ncu-csv") as an inspection of an
// experiment: origin imported, so no gate counts it. What the reader finds wrong is a finding and
// nothing is imported. Gives the seq of the entry.
absl::StatusOr<int64_t> ImportLogFile(const Store& store, std::string_view form,
                                      const std::string& path, const std::string& experiment,
                                      Findings& findings, const std::string& now = "");

// The tensors of a folder's .safetensors files as `fixture` evidence: name (behind the file's,
// where there are several), dtype, shape and hash of the bytes. They are read twice; kDataLoss when
// the hashes differ. Gives the seq of the entry, -1 when the same evidence was there.
absl::StatusOr<int64_t> ImportFixture(const Store& store, const std::string& folder,
                                      const std::string& experiment, Findings& findings,
                                      const std::string& now = "");
// A document of the tree as `inspection` evidence: what it says is broken. The evidence is stale
// when the document changes. One of `rule` and `boundary` at least.
struct InspectionRequest {
  std::string document;  // relative to the root
  std::string experiment;
  std::string rule, boundary;
};
absl::StatusOr<int64_t> ImportInspection(const Store& store, const InspectionRequest& request,
                                         Findings& findings, const std::string& now = "");

// benchmarks/reference_inventory.json: path, bytes and hash of every file of a folder of fixtures
// that is not committed. Gives the seq of the entry that took it over.
absl::StatusOr<int64_t> ImportInventory(const Store& store, const std::string& folder,
                                        const std::string& now = "");
// The folder against the inventory: E-ART-MISSING, E-ART-HASH, E-ART-FLAG (not in the inventory).
void VerifyInventory(const Store& store, const std::string& folder, Findings& findings);

}  // namespace h3rt::lab
