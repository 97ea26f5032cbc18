// A new record, from the words of whoever opens the work.
#include <algorithm>
#include <iterator>

#include "h3rt/lab/lab.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

constexpr const char* kNeeded[] = {"name", "group", "kind"};
// Objects: what the file says of them goes over what an empty record has.
constexpr const char* kObjects[] = {"decision", "relations", "retention", "scope"};

bool IsOneOf(const auto& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

absl::Status Refused(const AddRequest& request, std::string got, std::string wanted) {
  return InvalidArgument({.what = "a new record",
                          .got = std::move(got),
                          .wanted = std::move(wanted),
                          .where = request.id});
}

absl::Status CheckWords(const AddRequest& request) {
  if (!IsId(request.id)) {
    return Refused(request, "id \"" + request.id + "\"",
                   "3 to 80 of a-z and 0-9, in words with one hyphen between");
  }
  if (request.decision.empty()) return Refused(request, "no reason", "--because");
  const Doc& words = request.words;
  if (!words.is_object()) return Refused(request, "no object", "an object of fields");
  for (const char* field : kNeeded) {
    if (!words.contains(field)) return Refused(request, std::string("no ") + field, "it");
  }
  for (const auto& [field, value] : words.items()) {
    const bool object = IsOneOf(kObjects, field);
    if (!object && !IsOneOf(kNeeded, field) && field != "variants") {
      return Refused(request, "field " + field,
                     "name, group, kind, decision, relations, retention, scope, variants");
    }
    if (object && !value.is_object()) return Refused(request, field + " that is no object", "one");
  }
  for (const auto& [field, value] : At(words, "decision").items()) {
    if (field != "text") return Refused(request, "field decision." + field, "decision.text");
  }
  return absl::OkStatus();
}

// What the fields are that are null in an incomplete record.
const char* WhatIs(std::string_view pointer) {
  if (pointer == "/baseline") return "what it is compared with";
  if (pointer == "/boundary") return "a boundary that it crosses";
  if (pointer == "/scope/eligible") return "where it may be selected";
  if (pointer == "/source/commit") return "the commit of the origin's source";
  if (pointer == "/source/patch") return "the origin's patch";
  return "nothing of the kind yet";
}

Doc RecordFrom(const AddRequest& request, int64_t seq) {
  Doc record = EmptyRecord(request.id, seq);
  for (const char* field : kNeeded) record[field] = At(request.words, field);
  for (const char* field : kObjects) {
    if (request.words.contains(field)) record[field].update(request.words[field]);
  }
  const Doc& variants = At(request.words, "variants");
  if (request.words.contains("variants") && !variants.is_array()) record["variants"] = variants;
  for (const Doc& given : variants.is_array() ? variants : Doc::array()) {
    Doc variant = {{"note", nullptr}, {"params", Doc::object()}, {"source_digest", nullptr}};
    if (given.is_object()) variant.update(given);
    record["variants"].push_back(given.is_object() ? variant : given);
  }
  for (const std::string& pointer : UnexplainedNulls(record)) {
    record["missing"].push_back({{"blocker", false},
                                 {"note", nullptr},
                                 {"pointer", pointer},
                                 {"what", WhatIs(pointer)},
                                 {"why", "not_applicable"}});
  }
  RefreshDigest(record);
  return record;
}

// The record by itself and beside the others. Faults of other records do not count: the new one
// may be what mends them.
absl::Status CheckNew(const Store& store, const Registry& registry, const Doc& policy,
                      const Doc& record) {
  Registry with = registry;
  const int64_t line = registry.records.empty() ? 1 : registry.records.back().line + 1;
  with.records.push_back({.json = record, .line = line});
  Findings all;
  ValidateRecord(record, policy, kRegistryFile, line, all);
  if (all.errors() == 0) ValidateLinks(store, with, policy, nullptr, false, all);
  Findings own;
  for (const Finding& finding : all.Sorted()) {
    if (finding.line == line) own.Add(finding);
  }
  return StatusOfFindings(own);
}

}  // namespace

Doc EmptyRecord(std::string_view id, int64_t seq) {
  const Doc none = Doc::array();
  Doc record = {{"artifacts", none},
                {"baseline", nullptr},
                {"boundary", nullptr},
                {"closed", nullptr},
                {"evidence", none},
                {"imported_status", nullptr},
                {"missing", none},
                {"skipped", none},
                {"variants", none},
                {"id", id},
                {"status", "incomplete"},
                {"name", ""},
                {"group", ""},
                {"kind", ""},
                {"gates", Doc::object()}};
  for (const char* gate : kGates) record["gates"][gate] = nullptr;
  record["decision"] = {{"log_seq", seq}, {"text", "Nothing was run, so nothing is decided."}};
  record["provenance"] = {{"from", nullptr}, {"origin", "native"}};
  record["relations"] = {{"derived_from", none},
                         {"duplicate_of", nullptr},
                         {"shares_evidence_with", none},
                         {"superseded_by", nullptr},
                         {"supersedes", none}};
  record["retention"] = {
      {"callable", false}, {"dispatch", "none"}, {"purpose", Doc::array({"reference"})}};
  record["scope"] = {
      {"archs", none}, {"eligible", nullptr}, {"non_claims", none}, {"workloads", none}};
  record["source"] = {{"commit", nullptr}, {"digest", nullptr}, {"entry", none},
                      {"patch", nullptr},  {"paths", none},     {"state", "not_started"}};
  return record;
}

absl::StatusOr<int64_t> AddRecord(const Store& store, const AddRequest& request,
                                  const std::string& now) {
  H3RT_RETURN_IF_ERROR(CheckWords(request));
  Findings findings;
  const std::optional<Doc> policy = LoadPolicy(store, findings);
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  if (!policy) return NotFound({.what = "no policy", .where = kPolicyFile});
  return Commit(
      store,
      [&](const Registry& registry, const Log&, int64_t seq) -> absl::StatusOr<Change> {
        if (registry.Find(request.id) != nullptr) {
          return Refused(request, "an id that the registry has", "another, or `h3rt lab set`");
        }
        if (Holds(At(registry.header, "tombstones"), request.id)) {
          return Refused(request, "a retired id", "another: a retired id stays retired");
        }
        Change change{
            .entry = EmptyEntry(
                "entry", request.title.empty() ? "New record: " + request.id : request.title),
            .records = {RecordFrom(request, seq)}};
        H3RT_RETURN_IF_ERROR(CheckNew(store, registry, *policy, change.records[0]));
        change.entry["decision"] = request.decision;
        change.entry["status"] = "incomplete";
        return change;
      },
      now);
}

}  // namespace h3rt::lab
