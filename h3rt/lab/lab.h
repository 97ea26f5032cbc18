// The laboratory as a whole: everything loaded, and the actions that change it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "h3rt/lab/gate.h"
#include "h3rt/ledger/log.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

struct Lab {
  Store store;
  Registry registry = {};
  Log log = {};
  Doc policy = {};
  Doc manifest = {};
  std::map<std::string, Evidence> evidence = {};
  std::map<std::string, Freshness> freshness = {};
  Case CaseOf(const Doc& record) const;
};
// Loads a store. The first error of its form is the status (exit 7 where a hash or chain is wrong,
// 3 where a file is missing); `lab validate` lists all.
absl::StatusOr<Lab> OpenLab(const Store& store, const Toolchain& toolchain = {});
// The record, or kNotFound with the ids that are near.
absl::StatusOr<const Record*> RecordOf(const Registry& registry, std::string_view id);
// The status of the gravest finding: "3 findings, the first: ...".
absl::Status StatusOfFindings(const Findings& findings);

// The pre-registration of a timing: sizes and thresholds are fixed before the run.
struct PlanRequest {
  std::string id;
  std::string gate;
  std::string hypothesis;
  int64_t processes = 6;
  int64_t quads = 60;
  // What is expected, in ns per call; 0: nothing is predicted.
  int64_t predicted_low_ns = 0;
  int64_t predicted_high_ns = 0;
};
absl::StatusOr<int64_t> WritePlan(const Store& store, const PlanRequest& request,
                                  const std::string& now);
// The `plan` block of evidence from the newest plan entry for (id, gate); null when there is none.
Doc PlanOf(const Log& log, std::string_view id, std::string_view gate);

// Evaluates the gates over the evidence there is, writes verdicts that changed with one log entry.
// Refused when a rule or a recomputation from the blobs finds a fault in valid evidence.
struct GateReport {
  std::vector<GateResult> results;  // of every gate and class that has evidence
  int64_t log_seq = -1;             // -1: nothing changed
};
absl::StatusOr<GateReport> ApplyGates(const Store& store, std::string_view id,
                                      std::string_view gate, const std::string& now);

// A record of which nothing is known yet: every field, empty, with status incomplete and without
// name, group, kind, the missing entries of its nulls (UnexplainedNulls) and a digest. `seq`: the
// entry it comes with.
Doc EmptyRecord(std::string_view id, int64_t seq);
// A new native record. `words` gives name, group and kind, and may give decision.text, relations,
// retention, scope and variants (each at least its vid); the rest is as in EmptyRecord, with a
// missing entry for each null that needs one. Refused, with nothing written, for an id that exists,
// is retired or is none, for other fields, and for a record that `lab validate` would find faulty.
struct AddRequest {
  std::string id;
  Doc words = Doc::object();
  std::string title = {};     // of the log entry; empty: one that names the id
  std::string decision = {};  // of the log entry: why
};
absl::StatusOr<int64_t> AddRecord(const Store& store, const AddRequest& request,
                                  const std::string& now);

// An author's change of a record: an RFC 7396 patch of its fields, with the reason. Identity,
// gates, evidence and provenance cannot be patched. A status must be permitted by the evidence and
// reachable from the old one. `source.digest` is computed where source.state is present.
struct SetRequest {
  std::string id;
  Doc patch = Doc::object();
  std::string title;
  std::string decision;  // of the log entry
  std::string kind = "decision";
};
absl::StatusOr<int64_t> SetRecord(const Store& store, const SetRequest& request,
                                  const std::string& now);

// An entry in words of its own, from {"title",...} (any field of an entry but those of the chain).
absl::StatusOr<int64_t> AppendEntry(const Store& store, const Doc& fields, const std::string& now);
// Marks evidence of a record as invalid, with the reason; it stays where it is.
absl::StatusOr<int64_t> InvalidateEvidence(const Store& store, std::string_view id,
                                           std::string_view digest, std::string_view reason,
                                           const std::string& now);

}  // namespace h3rt::lab
