// One record by itself: its form, its nulls, and what its kind and status ask for.
#include <algorithm>
#include <set>

#include "h3rt/lab/gate.h"
#include "h3rt/lab/schema.h"
#include "h3rt/lab/validate.h"

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
  void Rule(const std::string& pointer, std::string message) {
    check_.Add("E-RULE", pointer, std::move(message));
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
      if (TextAt(gap, "why") == "not_enumerated" && pointer != "/variants") {
        Rule(here + "/why", "variants are enumerated, " + pointer + " is not");
      }
    }
    for (const std::string& pointer : check_.gaps) {
      if (explained.count(pointer) > 0 || IsNaturalNull(record_, pointer)) continue;
      check_.Add("E-NULL", pointer, "null without an entry in missing");
    }
  }

  void Identity() {
    const Doc& groups = At(policy_, "groups");
    if (groups.is_array() &&
        std::find(groups.begin(), groups.end(), Text("group")) == groups.end()) {
      check_.Add("E-ENUM", "/group", "got \"" + Text("group") + "\", no group of the policy");
    }
    const bool imported = TextAt(At(record_, "provenance"), "origin") == "imported";
    if (!imported && !At(record_, "imported_status").is_null()) {
      Rule("/imported_status", "only imported records have one");
    }
    if (imported == At(At(record_, "provenance"), "from").is_null()) {
      Rule("/provenance/from",
           imported ? "imported from where?" : "a native record comes from here");
    }
    if (!imported && At(At(record_, "decision"), "log_seq").is_null()) {
      Rule("/decision/log_seq", "null only in imported records");
    }
  }

  void ByStatus() {
    const std::string status = Text("status");
    const std::string kind = Text("kind");
    const Doc& scope = At(record_, "scope");
    if (status == "architecture_rejected" && At(record_, "boundary").is_null()) {
      Rule("/boundary", "architecture_rejected names the boundary or rule that it breaks");
    }
    if (status == "production_accepted") {
      if (At(scope, "eligible").is_null()) Rule("/scope/eligible", "accepted for what?");
      if (IsOneOf(kind, {"baseline", "profile", "decision", "method"})) {
        Rule("/kind", "a " + kind + " is never production_accepted");
      }
    }
    if (status == "research_retained" && IsOneOf(kind, {"candidate", "probe"}) &&
        At(scope, "non_claims").empty()) {
      Rule("/scope/non_claims", "a retained " + kind + " says what it does not claim");
    }
  }

  void Source() {
    const Doc& source = At(record_, "source");
    const Doc& retention = At(record_, "retention");
    const std::string state = TextAt(source, "state");
    const bool gone = IsOneOf(state, {"unrecoverable", "not_started"});
    if (At(source, "paths").empty() && !gone)
      Rule("/source/paths", "source is " + state + ": where?");
    if (!At(source, "digest").is_null() && !IsOneOf(state, {"present", "partial"})) {
      Rule("/source/digest", "source is " + state + ": nothing to digest");
    }
    if (gone && BoolAt(retention, "callable")) {
      Rule("/retention/callable", "source is " + state + ": nothing to call");
    }
    const Doc& purposes = At(retention, "purpose");
    if (gone && std::find(purposes.begin(), purposes.end(), "reproducer") != purposes.end()) {
      Rule("/retention/purpose", "source is " + state + ": it reproduces nothing");
    }
    if (!IsOneOf(state, {"present", "partial"})) return;
    for (size_t i = 0; i < At(source, "paths").size(); ++i) {
      const std::string why = WhyNotRelative(At(source, "paths")[i].get<std::string>());
      if (!why.empty()) check_.Add("E-PATH", "/source/paths/" + std::to_string(i), why);
    }
  }

  void Variants() {
    std::set<std::string> vids;
    for (const Doc& variant : At(record_, "variants")) {
      const std::string vid = TextAt(variant, "vid");
      if (!vids.insert(vid).second) Rule("/variants", "two variants are called " + vid);
    }
    const Doc& baseline = At(record_, "baseline");
    const std::string vid = TextAt(baseline, "vid");
    if (TextAt(baseline, "id") == Text("id") && vids.count(vid) == 0) {
      check_.Add("E-REL-SELF", "/baseline", "a record is its own baseline only by a variant");
    }
    size_t index = 0;
    for (const Doc& cited : At(record_, "evidence")) {
      const std::string cited_vid = TextAt(cited, "vid");
      if (!cited_vid.empty() && vids.count(cited_vid) == 0) {
        check_.Add("E-EV-REF", "/evidence/" + std::to_string(index) + "/vid",
                   "no variant is called " + cited_vid);
      }
      ++index;
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
      if (because.empty() && At(skip, "because_evidence").is_null()) {
        Rule(here, "a skip names the gate or the evidence that allows it");
      } else if (!because.empty() && Rank(because) >= Rank(gate)) {
        Rule(here + "/because_gate", because + " does not come before " + gate);
      }
    }
    for (const char* gate : kGates) {
      const std::string here = std::string("/gates/") + gate;
      std::string previous;
      for (const Doc& verdict : At(At(record_, "gates"), gate)) {
        const std::string device = TextAt(verdict, "class");
        if (device <= previous)
          check_.Add("E-ORDER", here, "verdicts are sorted by class, one each");
        previous = device;
        if (TextAt(verdict, "verdict") == "skipped" && skipped.count(gate) == 0) {
          Rule(here, "skipped, but no entry of skipped names the gate");
        }
      }
    }
  }

  void Evidence() {
    std::set<std::string> seen;
    size_t index = 0;
    for (const Doc& cited : At(record_, "evidence")) {
      const std::string here = "/evidence/" + std::to_string(index++);
      if (!seen.insert(TextAt(cited, "sha256")).second) Rule(here, "cited twice");
      const bool valid = BoolAt(cited, "valid");
      for (const char* key : {"invalid_reason", "invalid_log_seq"}) {
        if (valid != At(cited, key).is_null()) {
          Rule(here + "/" + key, valid ? "valid evidence has none" : "invalid evidence says why");
        }
      }
    }
  }

  void Closed() {
    const Doc& closed = At(record_, "closed");
    if (closed.is_null()) return;
    const Doc& reopen = At(closed, "reopen");
    const bool conditional = TextAt(reopen, "mode") == "condition";
    if (conditional && At(reopen, "conditions").empty()) {
      check_.Add("E-CLOSED", "/closed/reopen/conditions", "reopened on which condition?");
    }
    if (Text("status") == "production_accepted") {
      check_.Add("E-CLOSED", "/closed", "closed work is not production_accepted");
    }
  }

  void Texts() {
    const std::string eligible = TextAt(At(record_, "scope"), "eligible");
    bool holds = false;
    if (!eligible.empty()) {
      const std::string why = EvaluatePredicate(eligible, nullptr, holds);
      if (!why.empty()) Rule("/scope/eligible", why);
    }
    const std::string number = FirstUncitedNumber(TextAt(At(record_, "decision"), "text"));
    if (!number.empty())
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
    const Doc& missing = At(record, "missing");
    const bool explained = std::any_of(missing.begin(), missing.end(), [&](const Doc& entry) {
      return TextAt(entry, "pointer") == gap;
    });
    if (!explained && !IsNaturalNull(record, gap)) out.push_back(gap);
  }
  return out;
}

}  // namespace h3rt::lab
