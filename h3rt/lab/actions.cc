// What people do to the registry: plans, verdicts, decisions. Every change is one Commit.
#include <algorithm>
#include <set>

#include "h3rt/lab/freshness.h"
#include "h3rt/lab/lab.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

bool IsGate(std::string_view gate) {
  return std::find(std::begin(kGates), std::end(kGates), gate) != std::end(kGates);
}

absl::Status CheckGate(std::string_view gate) {
  if (IsGate(gate)) return absl::OkStatus();
  return InvalidArgument({.what = "gate",
                          .got = std::string(gate),
                          .wanted = "build, correct, isolated, block, trajectory or deployment"});
}

// The verdicts of a gate's list after a new one is put in: one a class, sorted by class.
Doc WithVerdict(const Doc& verdicts, const Doc& verdict) {
  Doc result = Doc::array();
  if (verdicts.is_array()) {
    for (const Doc& old : verdicts) {
      if (TextAt(old, "class") != TextAt(verdict, "class")) result.push_back(old);
    }
  }
  result.push_back(verdict);
  std::sort(result.begin(), result.end(),
            [](const Doc& a, const Doc& b) { return TextAt(a, "class") < TextAt(b, "class"); });
  return result;
}

// Whether two verdicts say the same, whatever entry they were written with.
bool SameVerdict(Doc a, Doc b) {
  a.erase("log_seq");
  b.erase("log_seq");
  return a == b;
}

const Doc* VerdictOf(const Doc& record, const std::string& gate, const std::string& device_class) {
  const Doc& verdicts = At(At(record, "gates"), gate);
  if (!verdicts.is_array()) return nullptr;
  for (const Doc& verdict : verdicts) {
    if (TextAt(verdict, "class") == device_class) return &verdict;
  }
  return nullptr;
}

// Evaluates gates in their order, each seeing the verdicts of the earlier ones.
std::vector<GateResult> Evaluate(const Lab& lab, Doc& record, std::string_view only, int64_t seq,
                                 bool& changed) {
  std::vector<GateResult> results;
  for (const char* gate : kGates) {
    if (!only.empty() && only != gate) continue;
    const Case judged = lab.CaseOf(record);
    for (const std::string& device_class : DeviceClasses(judged)) {
      GateResult result = EvaluateGate(judged, gate, device_class);
      if (result.verdict.is_null()) continue;
      result.verdict["log_seq"] = seq;
      const Doc* old = VerdictOf(record, gate, device_class);
      if (old == nullptr || !SameVerdict(*old, result.verdict)) {
        record["gates"][gate] = WithVerdict(record["gates"][gate], result.verdict);
        changed = true;
      } else {
        result.verdict = *old;
      }
      result.arithmetic.insert(
          result.arithmetic.begin(),
          std::string(gate) + " on " + device_class + ": " + TextAt(result.verdict, "verdict"));
      results.push_back(std::move(result));
    }
  }
  return results;
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
  if (request.title.empty() || request.decision.empty()) {
    return InvalidArgument({.what = "a change of a record",
                            .got = "no reason",
                            .wanted = "--title and --because",
                            .where = request.id});
  }
  return absl::OkStatus();
}

absl::Status CheckStatusChange(const Lab& lab, const Doc& before, const Doc& after) {
  const std::string from = TextAt(before, "status");
  const std::string to = TextAt(after, "status");
  if (const std::string why_not = from == to ? "" : WhyNotTransition(from, to); !why_not.empty()) {
    return InvalidArgument({.what = "status", .got = from + " to " + to, .wanted = why_not});
  }
  for (const StatusView& view : PermittedStatuses(lab.CaseOf(after))) {
    if (view.status != to || view.permitted) continue;
    return InvalidArgument(
        {.what = "status " + to + " is not carried by the evidence",
         .got = "missing: " + view.first_missing,
         .wanted = "`h3rt lab show " + TextAt(after, "id") + " --why` says what is"});
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
  return Commit(
      store,
      [&](const Registry&, const Log&, int64_t) -> absl::StatusOr<Change> {
        Change change{
            .entry = EmptyEntry("plan", "Plan: " + request.id + ", " + request.gate + " gate")};
        change.entry["hypothesis"] = request.hypothesis;
        change.entry["authorizes"] = Doc::array({"run " + request.id + " " + request.gate});
        change.entry["plan"] = {{"experiment", request.id},
                                {"gate", request.gate},
                                {"min_abs_ns", IntAt(thresholds, "min_abs_ns")},
                                {"min_gain_ppm", IntAt(thresholds, "min_gain_ppm")},
                                {"policy_digest", DigestOf(lab.policy)},
                                {"processes", request.processes},
                                {"quads", request.quads}};
        if (request.predicted_high_ns > 0) {
          change.entry["projections"] = Doc::array({{{"high", request.predicted_high_ns},
                                                     {"low", request.predicted_low_ns},
                                                     {"unit", "ns"}}});
        }
        return change;
      },
      now);
}

Doc PlanOf(const Log& log, std::string_view id, std::string_view gate) {
  for (size_t i = log.entries.size(); i > 0; --i) {
    const Doc& entry = log.entries[i - 1].json;
    const Doc& plan = At(entry, "plan");
    if (TextAt(entry, "kind") != "plan" || TextAt(plan, "experiment") != id ||
        TextAt(plan, "gate") != gate) {
      continue;
    }
    return {{"entry_hash", TextAt(entry, "hash")},
            {"gate", std::string(gate)},
            {"log_seq", IntAt(entry, "seq")},
            {"min_abs_ns", IntAt(plan, "min_abs_ns")},
            {"min_gain_ppm", IntAt(plan, "min_gain_ppm")},
            {"processes", IntAt(plan, "processes")},
            {"quads", IntAt(plan, "quads")}};
  }
  return nullptr;
}

absl::StatusOr<GateReport> ApplyGates(const Store& store, std::string_view id,
                                      std::string_view gate, const std::string& now) {
  if (!gate.empty()) H3RT_RETURN_IF_ERROR(CheckGate(gate));
  H3RT_ASSIGN_OR_RETURN(const Lab lab, OpenLab(store));
  H3RT_ASSIGN_OR_RETURN(const Record* record, RecordOf(lab.registry, id));
  GateReport report;
  Doc judged = record->json;
  bool changed = false;
  report.results = Evaluate(lab, judged, gate, lab.log.entries.empty() ? 0 : -1, changed);
  if (!changed) return report;
  H3RT_ASSIGN_OR_RETURN(
      report.log_seq,
      Commit(
          store,
          [&](const Registry& registry, const Log&, int64_t seq) -> absl::StatusOr<Change> {
            H3RT_ASSIGN_OR_RETURN(const Record* current, RecordOf(registry, id));
            Change change{.entry = EmptyEntry("decision", "Verdicts of " + std::string(id)),
                          .records = {current->json}};
            bool again = false;
            report.results = Evaluate(lab, change.records[0], gate, seq, again);
            std::set<std::string> evidence;
            for (const GateResult& result : report.results) {
              if (IntAt(result.verdict, "log_seq", -1) != seq) continue;
              for (const Doc& digest : At(result.verdict, "evidence")) {
                evidence.insert(digest.get<std::string>());
              }
              change.entry["actions"].push_back(result.arithmetic.front() + ": " +
                                                TextAt(result.verdict, "reason"));
            }
            change.entry["evidence"] = evidence;
            return change;
          },
          now));
  return report;
}

absl::StatusOr<int64_t> SetRecord(const Store& store, const SetRequest& request,
                                  const std::string& now) {
  H3RT_RETURN_IF_ERROR(CheckPatch(request));
  H3RT_ASSIGN_OR_RETURN(const Lab lab, OpenLab(store));
  return Commit(
      store,
      [&](const Registry& registry, const Log&, int64_t seq) -> absl::StatusOr<Change> {
        H3RT_ASSIGN_OR_RETURN(const Record* current, RecordOf(registry, request.id));
        Doc after = current->json;
        after.merge_patch(request.patch);
        after["decision"]["log_seq"] = seq;
        H3RT_RETURN_IF_ERROR(RefreshSource(store, after));
        RefreshDigest(after);
        Findings findings;
        ValidateRecord(after, lab.policy, kRegistryFile, current->line, findings);
        H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
        H3RT_RETURN_IF_ERROR(CheckStatusChange(lab, current->json, after));
        Change change{.entry = EmptyEntry(request.kind, request.title), .records = {after}};
        change.entry["decision"] = request.decision;
        change.entry["status"] = TextAt(after, "status");
        return change;
      },
      now);
}

absl::StatusOr<int64_t> AppendEntry(const Store& store, const Doc& fields, const std::string& now) {
  const std::string kind = TextAt(fields, "kind", "entry");
  Doc entry = EmptyEntry(kind, TextAt(fields, "title"));
  for (const auto& [name, value] : fields.items()) {
    const bool chained = name == "hash" || name == "prev" || name == "seq" || name == "ts" ||
                         name == "records" || name == "schema";
    if (chained || !entry.contains(name)) {
      return InvalidArgument(
          {.what = "field of a log entry",
           .got = name,
           .wanted = chained ? "nothing: the log sets it" : "a field of an entry"});
    }
    entry[name] = value;
  }
  return Commit(
      store,
      [&](const Registry&, const Log&, int64_t) -> absl::StatusOr<Change> {
        return Change{.entry = entry};
      },
      now);
}

absl::StatusOr<int64_t> InvalidateEvidence(const Store& store, std::string_view id,
                                           std::string_view digest, std::string_view reason,
                                           const std::string& now) {
  return Commit(
      store,
      [&](const Registry& registry, const Log&, int64_t seq) -> absl::StatusOr<Change> {
        H3RT_ASSIGN_OR_RETURN(const Record* current, RecordOf(registry, id));
        Change change{.entry = EmptyEntry("invalidate", "Invalid evidence of " + std::string(id)),
                      .records = {current->json}};
        for (Doc& reference : change.records[0]["evidence"]) {
          const std::string sha256 = TextAt(reference, "sha256");
          if (digest.size() < 8 || !sha256.starts_with(digest)) continue;
          reference["valid"] = false;
          reference["invalid_reason"] = std::string(reason);
          reference["invalid_log_seq"] = seq;
          change.entry["evidence"].push_back(sha256);
        }
        if (change.entry["evidence"].empty()) {
          return NotFound({.what = "no such evidence of " + std::string(id),
                           .got = std::string(digest),
                           .wanted = "at least 8 digits of a digest that the record names"});
        }
        change.entry["decision"] = std::string(reason);
        return change;
      },
      now);
}

}  // namespace h3rt::lab
