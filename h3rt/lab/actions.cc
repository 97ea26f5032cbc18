// What people do to the registry: plans, verdicts, decisions. Every change is one Commit.
#include <algorithm>
#include <set>

#include "h3rt/lab/freshness.h"
#include "h3rt/lab/lab.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

absl::Status CheckGate(std::string_view gate) {
  if (std::find(std::begin(kGates), std::end(kGates), gate) != std::end(kGates)) return {};
  return InvalidArgument({.what = "gate",
                          .got = std::string(gate),
                          .wanted = "build, correct, isolated, block, trajectory or deployment"});
}

absl::StatusOr<int64_t> CommitEntry(const Store& store, const Doc& entry, const std::string& now) {
  return Commit(
      store, [&](const Registry&, const Log&, int64_t) { return Change{.entry = entry}; }, now);
}

// One change of one record: `edit` gets the record as it is, as the one of the change.
using Edit = std::function<absl::Status(Doc& entry, Doc& record, int64_t seq)>;
absl::StatusOr<int64_t> CommitRecord(const Store& store, std::string_view id, const Doc& entry,
                                     const std::string& now, const Edit& edit) {
  return Commit(
      store,
      [&](const Registry& registry, const Log&, int64_t seq) -> absl::StatusOr<Change> {
        H3RT_ASSIGN_OR_RETURN(const Record* record, RecordOf(registry, id));
        Change change{.entry = entry, .records = {record->json}};
        H3RT_RETURN_IF_ERROR(edit(change.entry, change.records[0], seq));
        return change;
      },
      now);
}

// Puts a verdict into its gate's list: one a class, sorted by class. What says the same as the old
// one, whatever entry that was written with, becomes the old one.
void PutVerdict(Doc& verdicts, Doc& verdict) {
  if (!verdicts.is_array()) verdicts = Doc::array();
  const auto before = [](const Doc& a, const Doc& b) {
    return TextAt(a, "class") < TextAt(b, "class");
  };
  for (Doc& old : verdicts) {
    if (TextAt(old, "class") != TextAt(verdict, "class")) continue;
    const Doc seq = std::exchange(old["log_seq"], verdict["log_seq"]);
    if (old == verdict) old["log_seq"] = verdict["log_seq"] = seq;
    old = verdict;
    return;
  }
  verdicts.push_back(verdict);
  std::sort(verdicts.begin(), verdicts.end(), before);
}

// A verdict whose evidence is gone is not run again.
void DropVerdict(Doc& verdicts, const std::string& device_class) {
  Doc kept = Doc::array();
  for (const Doc& verdict : verdicts) {
    if (TextAt(verdict, "class") != device_class) kept.push_back(verdict);
  }
  verdicts = kept.empty() ? Doc() : kept;
}

// Evaluates gates in their order, each seeing the verdicts of the earlier ones. A verdict that is
// new has `seq`.
std::vector<GateResult> Evaluate(const Lab& lab, Doc& record, std::string_view only, int64_t seq) {
  std::vector<GateResult> results;
  for (const char* gate : kGates) {
    if (!only.empty() && only != gate) continue;
    const Case judged = lab.CaseOf(record);
    for (const std::string& device_class : DeviceClasses(judged)) {
      GateResult result = EvaluateGate(judged, gate, device_class);
      if (result.verdict.is_null()) {
        DropVerdict(record["gates"][gate], device_class);
        continue;
      }
      result.verdict["log_seq"] = seq;
      PutVerdict(record["gates"][gate], result.verdict);
      result.arithmetic.insert(
          result.arithmetic.begin(),
          std::string(gate) + " on " + device_class + ": " + TextAt(result.verdict, "verdict"));
      results.push_back(std::move(result));
    }
  }
  return results;
}

bool IsNew(const GateResult& result, int64_t seq) {
  return IntAt(result.verdict, "log_seq", seq - 1) == seq;
}

// No verdict rests on evidence that its own blobs contradict. Invalidated evidence counts for
// nothing, so it is not looked at.
absl::Status CheckEvidence(const Lab& lab, const Doc& record) {
  Findings findings;
  for (const Doc& reference : At(record, "evidence")) {
    const auto evidence = lab.evidence.find(TextAt(reference, "sha256"));
    if (!BoolAt(reference, "valid") || evidence == lab.evidence.end()) continue;
    if (!CheckEvidenceForm(evidence->second, findings)) continue;
    ValidateEvidence(lab.store, evidence->second, lab.policy, findings);
    RecomputeEvidence(lab.store, evidence->second, findings);
  }
  return StatusOfFindings(findings);
}

// Fields that only commands which prove them may write.
constexpr const char* kNotPatched[] = {
    "id", "gates", "evidence", "imported_status", "record_digest", "provenance"};

absl::Status CheckPatch(const SetRequest& request) {
  if (!request.patch.is_object() || request.patch.empty()) {
    return InvalidArgument({.what = "the patch of a record",
                            .got = request.patch.is_object() ? "nothing" : "no object",
                            .wanted = "an object of fields to change"});
  }
  for (const char* field : kNotPatched) {
    if (!request.patch.contains(field)) continue;
    return InvalidArgument({.what = "the patch of a record",
                            .got = std::string("field ") + field,
                            .wanted = "fields that people decide",
                            .where = request.id});
  }
  if (!request.title.empty() && !request.decision.empty()) return absl::OkStatus();
  return InvalidArgument({.what = "a change of a record",
                          .got = "no reason",
                          .wanted = "--title and --because",
                          .where = request.id});
}

absl::Status CheckStatusChange(const Lab& lab, const std::string& from, const Doc& record) {
  const std::string to = TextAt(record, "status");
  if (const std::string why_not = from == to ? "" : WhyNotTransition(from, to); !why_not.empty()) {
    return InvalidArgument({.what = "status", .got = from + " to " + to, .wanted = why_not});
  }
  for (const StatusView& view : PermittedStatuses(lab.CaseOf(record))) {
    if (view.status != to || view.permitted) continue;
    return InvalidArgument(
        {.what = "status " + to + " is not carried by the evidence",
         .got = "missing: " + view.first_missing,
         .wanted = "`h3rt lab show " + TextAt(record, "id") + " --why` says what is"});
  }
  return absl::OkStatus();
}

// The source block knows its own digest.
absl::Status RefreshSource(const Store& store, Doc& record) {
  Doc& source = record["source"];
  if (TextAt(source, "state") != "present") return absl::OkStatus();
  std::vector<std::string> paths;
  for (const Doc& path : At(source, "paths")) {
    if (path.is_string()) paths.push_back(path.get<std::string>());
  }
  H3RT_ASSIGN_OR_RETURN(source["digest"], ClosureDigest(store, paths));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> WritePlan(const Store& store, const PlanRequest& request,
                                  const std::string& now) {
  H3RT_RETURN_IF_ERROR(CheckGate(request.gate));
  H3RT_ASSIGN_OR_RETURN(const Lab lab, OpenLab(store));
  H3RT_RETURN_IF_ERROR(RecordOf(lab.registry, request.id).status());
  const Doc& thresholds = At(At(lab.policy, "gates"), request.gate);
  const int64_t least = IntAt(thresholds, "min_processes");
  if (request.processes < std::max<int64_t>(least, 1) || request.processes > 64 ||
      request.quads < 8 || request.quads > 10000) {
    return InvalidArgument(
        {.what = "size of a plan",
         .got = std::to_string(request.processes) + " processes of " +
                std::to_string(request.quads) + " quads",
         .wanted = std::to_string(least) + " to 64 processes of 8 to 10000 quads"});
  }
  Doc entry = EmptyEntry("plan", "Plan: " + request.id + ", " + request.gate + " gate");
  entry["hypothesis"] = request.hypothesis;
  entry["authorizes"].push_back("run " + request.id + " " + request.gate);
  entry["plan"] = {{"experiment", request.id},
                   {"gate", request.gate},
                   {"min_abs_ns", IntAt(thresholds, "min_abs_ns")},
                   {"min_gain_ppm", IntAt(thresholds, "min_gain_ppm")},
                   {"policy_digest", DigestOf(lab.policy)},
                   {"processes", request.processes},
                   {"quads", request.quads}};
  if (request.predicted_high_ns > 0) {
    entry["projections"].push_back(
        {{"high", request.predicted_high_ns}, {"low", request.predicted_low_ns}, {"unit", "ns"}});
  }
  return CommitEntry(store, entry, now);
}

Doc PlanOf(const Log& log, std::string_view id, std::string_view gate) {
  for (auto entry = log.entries.rbegin(); entry != log.entries.rend(); ++entry) {
    Doc plan = At(entry->json, "plan");
    if (TextAt(entry->json, "kind") != "plan" || TextAt(plan, "experiment") != id ||
        TextAt(plan, "gate") != gate) {
      continue;
    }
    plan.erase("experiment");
    plan.erase("policy_digest");
    plan["entry_hash"] = At(entry->json, "hash");
    plan["log_seq"] = At(entry->json, "seq");
    return plan;
  }
  return nullptr;
}

absl::StatusOr<GateReport> ApplyGates(const Store& store, std::string_view id,
                                      std::string_view gate, const std::string& now) {
  if (!gate.empty()) H3RT_RETURN_IF_ERROR(CheckGate(gate));
  H3RT_ASSIGN_OR_RETURN(const Lab lab, OpenLab(store));
  H3RT_ASSIGN_OR_RETURN(const Record* record, RecordOf(lab.registry, id));
  H3RT_RETURN_IF_ERROR(CheckEvidence(lab, record->json));
  GateReport report;
  Doc judged = record->json;
  report.results = Evaluate(lab, judged, gate, -1);
  if (judged == record->json) return report;
  const auto judge = [&](Doc& entry, Doc& current, int64_t seq) {
    report.results = Evaluate(lab, current, gate, seq);
    std::set<std::string> evidence;
    for (const GateResult& result : report.results) {
      if (!IsNew(result, seq)) continue;
      for (const Doc& digest : At(result.verdict, "evidence")) {
        evidence.insert(digest.get<std::string>());
      }
      // Words only: the numbers stand in the record and in the evidence.
      entry["actions"].push_back(result.arithmetic.front());
    }
    entry["evidence"] = evidence;
    return absl::OkStatus();
  };
  const Doc entry = EmptyEntry("decision", "Verdicts of " + std::string(id));
  H3RT_ASSIGN_OR_RETURN(report.log_seq, CommitRecord(store, id, entry, now, judge));
  return report;
}

absl::StatusOr<int64_t> SetRecord(const Store& store, const SetRequest& request,
                                  const std::string& now) {
  H3RT_RETURN_IF_ERROR(CheckPatch(request));
  H3RT_ASSIGN_OR_RETURN(const Lab lab, OpenLab(store));
  H3RT_ASSIGN_OR_RETURN(const Record* known, RecordOf(lab.registry, request.id));
  const auto patch = [&](Doc& entry, Doc& record, int64_t seq) -> absl::Status {
    const std::string status_before = TextAt(record, "status");
    record.merge_patch(request.patch);
    record["decision"]["log_seq"] = seq;
    H3RT_RETURN_IF_ERROR(RefreshSource(store, record));
    RefreshDigest(record);
    Findings findings;
    ValidateRecord(record, lab.policy, kRegistryFile, known->line, findings);
    H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
    H3RT_RETURN_IF_ERROR(CheckStatusChange(lab, status_before, record));
    entry["decision"] = request.decision;
    entry["status"] = TextAt(record, "status");
    return absl::OkStatus();
  };
  return CommitRecord(store, request.id, EmptyEntry(request.kind, request.title), now, patch);
}

absl::StatusOr<int64_t> AppendEntry(const Store& store, const Doc& fields, const std::string& now) {
  Doc entry = EmptyEntry(TextAt(fields, "kind", "entry"), TextAt(fields, "title"));
  const std::set<std::string> chained = {"hash", "prev", "records", "schema", "seq", "ts"};
  for (const auto& [name, value] : fields.items()) {
    if (chained.contains(name) || !entry.contains(name)) {
      return InvalidArgument(
          {.what = "field of a log entry",
           .got = name,
           .wanted = chained.contains(name) ? "nothing: the log sets it" : "a field of an entry"});
    }
    entry[name] = value;
  }
  return CommitEntry(store, entry, now);
}

absl::StatusOr<int64_t> InvalidateEvidence(const Store& store, std::string_view id,
                                           std::string_view digest, std::string_view reason,
                                           const std::string& now) {
  const auto invalidate = [&](Doc& entry, Doc& record, int64_t seq) {
    for (Doc& reference : record["evidence"]) {
      const std::string sha256 = TextAt(reference, "sha256");
      if (digest.size() < 8 || !sha256.starts_with(digest)) continue;
      reference["valid"] = false;
      reference["invalid_reason"] = std::string(reason);
      reference["invalid_log_seq"] = seq;
      entry["evidence"].push_back(sha256);
    }
    entry["decision"] = std::string(reason);
    if (!entry["evidence"].empty()) return absl::OkStatus();
    return NotFound({.what = "no such evidence of " + std::string(id),
                     .got = std::string(digest),
                     .wanted = "at least 8 digits of a digest that the record names"});
  };
  const Doc entry = EmptyEntry("invalidate", "Invalid evidence of " + std::string(id));
  return CommitRecord(store, id, entry, now, invalidate);
}

}  // namespace h3rt::lab
