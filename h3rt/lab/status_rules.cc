// Which statuses the evidence carries, and which changes are allowed.
#include "h3rt/lab/status_rules.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "h3rt/lab/scan.h"

namespace h3rt::lab {
namespace {

constexpr size_t kCorrect = 1, kIsolated = 2, kGateCount = std::size(kGates);
// Precedence of what can be said; production_accepted excludes a quality fail by itself.
constexpr const char* kStrongest[] = {"production_accepted",
                                      "quality_rejected",
                                      "architecture_rejected",
                                      "performance_rejected",
                                      "temporarily_blocked",
                                      "research_retained",
                                      "incomplete"};

// Whether a compile result or a failure blocks the work, and whether it says what would lift it.
void TakeBlock(const Doc& envelope, Predicates& p) {
  const Doc& body = At(envelope, "body");
  const bool log = !At(envelope, "blobs").empty() || !At(body, "diagnostics").empty();
  if (TextAt(envelope, "kind") == "failure") {
    if (!log && TextAt(body, "message").empty()) return;
    p.blocked = true;
    p.retry = p.retry || !TextAt(body, "retry").empty();
    return;
  }
  const std::string outcome = TextAt(body, "outcome");
  if (outcome == "ok" || !log) return;
  const Doc& control = At(body, "control");
  // A rejection counts where the same toolkit made the control come out as expected: otherwise it
  // may only be missing or misspelt.
  if (outcome == "rejected" &&
      (!control.is_object() || TextAt(control, "outcome") != TextAt(control, "expected"))) {
    return;
  }
  p.blocked = true;
  p.retry = true;  // another toolchain: `lab retry` compares it
}

void TakeEvidence(const Case& c, Predicates& p) {
  for (const Doc& reference : At(c.record, "evidence")) {
    const std::string digest = TextAt(reference, "sha256");
    const auto found = c.evidence.find(digest);
    const auto fresh = c.freshness.find(digest);
    if (found == c.evidence.end() || !BoolAt(reference, "valid")) continue;
    if (fresh == c.freshness.end() || fresh->second.stale) continue;
    const Doc& envelope = found->second.json;
    const std::string kind = TextAt(envelope, "kind");
    const std::string origin = TextAt(envelope, "origin");
    if (origin == "imported") continue;
    if (kind == "inspection" || origin == "modelled") {
      p.model = true;
      const Doc& body = At(envelope, "body");
      const bool named = !TextAt(body, "rule").empty() || !TextAt(body, "boundary").empty();
      const bool decided = At(At(c.record, "decision"), "log_seq").is_number_integer();
      if (kind == "inspection" && named && decided) p.architecture = true;
    } else if (kind != "failure") {
      p.any = true;
    }
    if (kind == "failure" || kind == "compile") TakeBlock(envelope, p);
  }
}

void TakeGates(const Case& c, Predicates& p) {
  size_t furthest = 0;
  p.gates = "build is not run on any device class";
  p.timing = "isolated is not run";
  for (const std::string& device_class : DeviceClasses(c)) {
    std::array<std::string, kGateCount> verdicts;
    const auto words = [&](size_t gate) {
      return Message(kGates[gate], " on ", device_class, " is ", verdicts[gate]);
    };
    for (size_t gate = 0; gate < kGateCount; ++gate) {
      const GateResult result = EvaluateGate(c, kGates[gate], device_class);
      verdicts[gate] = TextAt(result.verdict, "verdict", "not run");
      const bool ran = verdicts[gate] != "not run" && verdicts[gate] != "skipped";
      if (gate >= kIsolated && ran) p.timing = words(gate);
    }
    size_t passed = 0;
    while (passed < kGateCount && verdicts[passed] == "pass") ++passed;
    const bool slow =
        std::find(verdicts.begin() + kIsolated, verdicts.end(), "fail") != verdicts.end();
    p.all = p.all || passed == kGateCount;
    p.quality_fail = p.quality_fail || verdicts[kCorrect] == "fail";
    p.correct = p.correct || verdicts[kCorrect] == "pass";
    p.slow = p.slow || slow;
    p.correct_and_slow = p.correct_and_slow || (slow && verdicts[kCorrect] == "pass");
    if (passed < kGateCount && passed >= furthest) {
      furthest = passed;
      p.gates = words(passed);
    }
  }
}

// The first condition that does not hold, in words.
using Condition = std::pair<bool, std::string>;
StatusView View(const char* status, const std::vector<Condition>& conditions) {
  StatusView view;
  view.status = status;
  for (const auto& [holds, words] : conditions) {
    if (holds) continue;
    view.first_missing = words;
    return view;
  }
  view.permitted = true;
  return view;
}

}  // namespace

Predicates PredicatesOf(const Case& c) {
  Predicates p;
  const Doc& source = At(c.record, "source");
  const std::string kind = TextAt(c.record, "kind");
  const std::string recorded = TextAt(source, "digest");
  if (TextAt(source, "state") == "present" && !recorded.empty()) {
    std::vector<std::string> paths;
    for (const Doc& path : At(source, "paths")) {
      if (path.is_string()) paths.push_back(path.get<std::string>());
    }
    const absl::StatusOr<std::string> now = ClosureDigest(c.store, paths);
    p.source = now.ok() && *now == recorded;
  }
  p.eligible = !TextAt(At(c.record, "scope"), "eligible").empty();
  p.non_claims = !At(At(c.record, "scope"), "non_claims").empty();
  p.needs_non_claims = kind == "candidate" || kind == "probe";
  p.selected = TextAt(At(c.record, "retention"), "dispatch") == "default";
  p.superseded = !TextAt(At(c.record, "relations"), "superseded_by").empty();
  p.can_be_selected =
      kind != "baseline" && kind != "profile" && kind != "decision" && kind != "method";
  TakeEvidence(c, p);
  TakeGates(c, p);
  return p;
}

std::vector<StatusView> ViewsOf(const Predicates& p) {
  const Condition not_selected = {!p.selected, "it is dispatched by default: withdraw that first"};
  const Condition no_quality_fail = {!p.quality_fail,
                                     "its correct gate failed: quality comes first"};
  std::vector<StatusView> views = {
      View("production_accepted",
           {{p.can_be_selected, "a record of this kind cannot be what production runs"},
            no_quality_fail,
            {p.all, "all six gates as pass on one device class: " + p.gates},
            {p.source, "its source, present and with the recorded digest"},
            {p.eligible, "scope.eligible: where production may select it"},
            {p.selected, "retention.dispatch is not default"},
            {!p.superseded, "it is superseded"}}),
      View("research_retained",
           {{p.any || p.model, "one fresh piece of evidence, a model or an inspection"},
            {p.non_claims || !p.needs_non_claims, "scope.non_claims: what it does not say"},
            not_selected}),
      View("architecture_rejected",
           {{p.architecture,
             "an inspection that names the broken rule or boundary, and a decision "
             "in the log"},
            not_selected}),
      View("performance_rejected", {no_quality_fail,
                                    {p.correct, "a pass of the correct gate"},
                                    {p.slow, "a fail of a timing gate: " + p.timing},
                                    {p.correct_and_slow, "both on the same device class"},
                                    not_selected}),
      View("quality_rejected",
           {{p.quality_fail,
             "a fail of the correct gate: a mismatch, a hazard or a result that "
             "changes"},
            not_selected}),
      View("temporarily_blocked",
           {{p.blocked, "a failure, or a compiler that gave up or rejected it, with its log"},
            {p.retry, "what would lift the block"},
            no_quality_fail,
            {!p.slow, "a timing gate failed: that is no block"}}),
      View("incomplete", {})};
  for (const char* status : kStrongest) {
    for (StatusView& view : views) {
      view.strongest = view.permitted && view.status == status;
      if (view.strongest) return views;
    }
  }
  return views;
}

std::vector<StatusView> PermittedStatuses(const Case& c) { return ViewsOf(PredicatesOf(c)); }

std::string WhyNotTransition(std::string_view from, std::string_view to) {
  auto known = [](std::string_view status) {
    return std::find(std::begin(kStatuses), std::end(kStatuses), status) != std::end(kStatuses);
  };
  auto rejected = [](std::string_view status) { return status.ends_with("_rejected"); };
  if (!known(from) || !known(to)) return "one of the seven statuses";
  if (from == to || from == "incomplete") return {};
  if (from == "temporarily_blocked") {
    return to == "incomplete" ? "" : "incomplete first, when what blocked it is lifted";
  }
  if (from == "research_retained") {
    return to == "production_accepted" || rejected(to) || to == "incomplete"
               ? ""
               : "incomplete first, for its evidence was invalidated";
  }
  if (from == "production_accepted") {
    return to == "research_retained" || to == "quality_rejected"
               ? ""
               : "research_retained (withdrawn or superseded) or quality_rejected";
  }
  return to == "incomplete" || rejected(to) ? "" : "incomplete first, by its reopening rule";
}

}  // namespace h3rt::lab
