// One record by itself: its form, its nulls, and what its kind and status ask for.
#include <algorithm>
#include <set>

#include "h3rt/lab/gate.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool IsFilled(const Doc* value) {
  return value != nullptr && !value->is_null() && !(value->is_structured() && value->empty());
}

// Where null says what it should: the fields of what is not there.
bool IsNaturalNull(const Doc& record, const std::string& pointer) {
  if (pointer == "/source/digest") {
    return !IsOneOf(TextAt(At(record, "source"), "state"), {"present", "partial"});
  }
  if (!pointer.starts_with("/artifacts/")) return false;
  const Doc* artifact = AtPointer(record, pointer.substr(0, pointer.rfind('/')));
  return artifact != nullptr && !BoolAt(*artifact, "exists");
}

class RecordCheck {
 public:
  RecordCheck(const Doc& record, const Doc& policy, FormCheck& check)
      : record_(record), policy_(policy), check_(check) {}

  void Run() {
    Missing();
    Identity();
    ByStatus();
    Source();
    Variants();
    Gates();
    Evidence();
    Closed();
    Texts();
  }

 private:
  void Rule(bool broken, const std::string& pointer, std::string message) {
    if (broken) check_.Add("E-RULE", pointer, std::move(message));
  }
  std::string Text(std::string_view key) const { return TextAt(record_, key); }

  // N2 and N4.
  void Missing() {
    std::set<std::string> explained;
    size_t index = 0;
    for (const Doc& gap : At(record_, "missing")) {
      const std::string here = "/missing/" + std::to_string(index++);
      const std::string pointer = TextAt(gap, "pointer");
      explained.insert(pointer);
      const Doc* value = AtPointer(record_, pointer);
      if (value == nullptr || IsFilled(value)) {
        check_.Add("E-MISSING-STALE", here + "/pointer",
                   pointer + (value == nullptr ? " is no field" : " is filled"));
      }
      Rule(TextAt(gap, "why") == "not_enumerated" && pointer != "/variants", here + "/why",
           "variants are enumerated, " + pointer + " is not");
    }
    for (const std::string& pointer : check_.gaps) {
      if (explained.count(pointer) > 0 || IsNaturalNull(record_, pointer)) continue;
      check_.Add("E-NULL", pointer, "null without an entry in missing");
    }
  }

  void Identity() {
    const Doc& groups = At(policy_, "groups");
    if (groups.is_array() && !Holds(groups, Text("group"))) {
      check_.Add("E-ENUM", "/group", "got \"" + Text("group") + "\", no group of the policy");
    }
    const Doc& provenance = At(record_, "provenance");
    const bool imported = TextAt(provenance, "origin") == "imported";
    Rule(!imported && !At(record_, "imported_status").is_null(), "/imported_status",
         "only imported records have one");
    Rule(imported == At(provenance, "from").is_null(), "/provenance/from",
         imported ? "imported from where?" : "a native record comes from here");
    Rule(!imported && At(At(record_, "decision"), "log_seq").is_null(), "/decision/log_seq",
         "null only in imported records");
  }

  void ByStatus() {
    const std::string status = Text("status");
    const std::string kind = Text("kind");
    const Doc& scope = At(record_, "scope");
    const bool accepted = status == "production_accepted";
    Rule(status == "architecture_rejected" && At(record_, "boundary").is_null(), "/boundary",
         "architecture_rejected names the boundary or rule that it breaks");
    Rule(accepted && At(scope, "eligible").is_null(), "/scope/eligible", "accepted for what?");
    Rule(accepted && IsOneOf(kind, {"baseline", "profile", "decision", "method"}), "/kind",
         "a " + kind + " is never production_accepted");
    Rule(status == "research_retained" && IsOneOf(kind, {"candidate", "probe"}) &&
             At(scope, "non_claims").empty(),
         "/scope/non_claims", "a retained " + kind + " says what it does not claim");
  }

  void Source() {
    const Doc& source = At(record_, "source");
    const Doc& retention = At(record_, "retention");
    const std::string state = TextAt(source, "state");
    const std::string is = "source is " + state + ": ";
    const bool gone = IsOneOf(state, {"unrecoverable", "not_started"});
    const bool here = IsOneOf(state, {"present", "partial"});
    Rule(!gone && At(source, "paths").empty(), "/source/paths", is + "where?");
    Rule(!here && !At(source, "digest").is_null(), "/source/digest", is + "nothing to digest");
    Rule(gone && BoolAt(retention, "callable"), "/retention/callable", is + "nothing to call");
    Rule(gone && Holds(At(retention, "purpose"), "reproducer"), "/retention/purpose",
         is + "it reproduces nothing");
    for (size_t i = 0; here && i < At(source, "paths").size(); ++i) {
      const std::string why = WhyNotRelative(At(source, "paths")[i].get<std::string>());
      if (!why.empty()) check_.Add("E-PATH", "/source/paths/" + std::to_string(i), why);
    }
  }

  void Variants() {
    std::set<std::string> vids;
    for (const Doc& variant : At(record_, "variants")) {
      const std::string vid = TextAt(variant, "vid");
      Rule(!vids.insert(vid).second, "/variants", "two variants are called " + vid);
    }
    const Doc& baseline = At(record_, "baseline");
    if (TextAt(baseline, "id") == Text("id") && vids.count(TextAt(baseline, "vid")) == 0) {
      check_.Add("E-REL-SELF", "/baseline", "a record is its own baseline only by a variant");
    }
    size_t index = 0;
    for (const Doc& cited : At(record_, "evidence")) {
      const std::string here = "/evidence/" + std::to_string(index++) + "/vid";
      const std::string vid = TextAt(cited, "vid");
      if (vid.empty() || vids.count(vid) > 0) continue;
      check_.Add("E-EV-REF", here, "no variant is called " + vid);
    }
  }

  static int64_t Rank(const std::string& gate) {
    return std::find(std::begin(kGates), std::end(kGates), gate) - std::begin(kGates);
  }

  void Gates() {
    std::set<std::string> skipped;
    size_t index = 0;
    for (const Doc& skip : At(record_, "skipped")) {
      const std::string here = "/skipped/" + std::to_string(index++);
      const std::string gate = TextAt(skip, "gate");
      const std::string because = TextAt(skip, "because_gate");
      skipped.insert(gate);
      Rule(because.empty() && At(skip, "because_evidence").is_null(), here,
           "a skip names the gate or the evidence that allows it");
      Rule(!because.empty() && Rank(because) >= Rank(gate), here + "/because_gate",
           because + " does not come before " + gate);
    }
    for (const char* gate : kGates) {
      const std::string here = std::string("/gates/") + gate;
      std::string previous;
      for (const Doc& verdict : At(At(record_, "gates"), gate)) {
        const std::string device = TextAt(verdict, "class");
        if (device <= previous) {
          check_.Add("E-ORDER", here, "verdicts are sorted by class, one each");
        }
        previous = device;
        Rule(TextAt(verdict, "verdict") == "skipped" && skipped.count(gate) == 0, here,
             "skipped, but no entry of skipped names the gate");
      }
    }
  }

  void Evidence() {
    std::set<std::string> seen;
    size_t index = 0;
    for (const Doc& cited : At(record_, "evidence")) {
      const std::string here = "/evidence/" + std::to_string(index++);
      Rule(!seen.insert(TextAt(cited, "sha256")).second, here, "cited twice");
      const bool valid = BoolAt(cited, "valid");
      for (const char* key : {"invalid_reason", "invalid_log_seq"}) {
        Rule(valid != At(cited, key).is_null(), here + "/" + key,
             valid ? "valid evidence has none" : "invalid evidence says why");
      }
    }
  }

  void Closed() {
    const Doc& closed = At(record_, "closed");
    if (closed.is_null()) return;
    const Doc& reopen = At(closed, "reopen");
    if (TextAt(reopen, "mode") == "condition" && At(reopen, "conditions").empty()) {
      check_.Add("E-CLOSED", "/closed/reopen/conditions", "reopened on which condition?");
    }
    if (Text("status") == "production_accepted") {
      check_.Add("E-CLOSED", "/closed", "closed work is not production_accepted");
    }
  }

  void Texts() {
    const std::string eligible = TextAt(At(record_, "scope"), "eligible");
    bool holds = false;
    const std::string why = eligible.empty() ? "" : EvaluatePredicate(eligible, nullptr, holds);
    Rule(!why.empty(), "/scope/eligible", why);
    const std::string number = FirstUncitedNumber(TextAt(At(record_, "decision"), "text"));
    if (number.empty()) return;
    check_.Add("W-NUMBER", "/decision/text", "\"" + number + "\" cites nothing");
  }

  const Doc& record_;
  const Doc& policy_;
  FormCheck& check_;
};

}  // namespace

void ValidateRecord(const Doc& record, const Doc& policy, std::string_view file, int64_t line,
                    Findings& findings) {
  FormCheck check{.file = file, .line = line, .findings = findings};
  std::string pointer;
  CheckShape(record, RecordShape(), pointer, check);
  // What a rule says of a document that lacks its fields would only hide the cause.
  if (!check.bad) RecordCheck(record, policy, check).Run();
}

std::vector<std::string> UnexplainedNulls(const Doc& record) {
  Findings findings;
  FormCheck check{.file = "", .findings = findings};
  std::string pointer;
  CheckShape(record, RecordShape(), pointer, check);
  std::vector<std::string> out;
  for (const std::string& gap : check.gaps) {
    const bool explained = FindBy(At(record, "missing"), "pointer", gap) != nullptr;
    if (!explained && !IsNaturalNull(record, gap)) out.push_back(gap);
  }
  return out;
}

}  // namespace h3rt::lab
