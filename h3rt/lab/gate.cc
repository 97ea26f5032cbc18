// What evidence says at a gate, by the thresholds of the policy.
#include "h3rt/lab/gate.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>

#include "h3rt/lab/evidence_rules.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/lab/scan.h"
#include "h3rt/lab/stats.h"

namespace h3rt::lab {
namespace {

constexpr int64_t kLeastSamplePs = 100'000'000;  // 100 us of work a sample
constexpr int64_t kLeastTicks = 1000;
constexpr int64_t kHostProcesses = 10;

// What was found for and against. A fail outweighs an open question, that outweighs a gap, and only
// what has none of them passes.
struct Tally {
  std::vector<std::string> fails = {};
  std::vector<std::string> open = {};     // ran and decided nothing
  std::vector<std::string> missing = {};  // not run
  std::vector<std::string> beside = {};   // does not apply
  std::string passed = {};                // the reason of a pass; empty: nothing ran
  std::set<std::string> evidence = {};
  std::set<std::string> workloads = {};
  std::vector<std::string> arithmetic = {};

  template <typename... Parts>
  void Note(const Parts&... parts) {
    arithmetic.push_back(Message(parts...));
  }
  template <typename... Parts>
  void FailIf(bool failed, const Parts&... parts) {
    if (failed) fails.push_back(Message(parts...));
  }
  // What of a list of the policy was not met.
  void Miss(const Doc& wanted, const std::set<std::string>& met, const char* words) {
    for (const Doc& one : wanted) {
      const auto name = one.get<std::string>();
      if (!met.contains(name)) missing.push_back(words + name);
    }
  }
};

std::string Short(const std::string& digest) { return digest.substr(0, 12); }

std::string Joined(const Doc& list) {
  std::string text;
  for (const Doc& item : list) {
    text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
  }
  return text;
}

// The evidence of one kind that may speak at a gate. What is left out is named, so that nobody
// wonders.
std::vector<const Evidence*> ResultsOf(const Case& c, const char* kind,
                                       std::string_view device_class, Tally& tally) {
  std::vector<const Evidence*> results;
  for (const Doc& reference : At(c.record, "evidence")) {
    const std::string digest = TextAt(reference, "sha256");
    const auto found = c.evidence.find(digest);
    if (found == c.evidence.end()) continue;
    const Doc& envelope = found->second.json;
    if (TextAt(envelope, "kind") != kind || TextAt(envelope, "target") != device_class) continue;
    const auto leave_out = [&](const std::string& why) {
      tally.Note(kind, " ", Short(digest), " does not count: ", why);
    };
    const std::string origin = TextAt(envelope, "origin");
    const bool compiled =
        std::string_view(kind) == "compile" || std::string_view(kind) == "resource";
    const auto fresh = c.freshness.find(digest);
    Findings faults;
    CheckEnvelope(found->second, c.policy, faults);
    if (!BoolAt(reference, "valid")) {
      leave_out("marked invalid: " + TextAt(reference, "invalid_reason", "no reason"));
    } else if (TextAt(reference, "role") != "result") {
      leave_out("its role is " + TextAt(reference, "role"));
    } else if (TextAt(envelope, "experiment") != TextAt(c.record, "id")) {
      leave_out("it is of " + TextAt(envelope, "experiment"));
    } else if (origin != "measured" && origin != "compiled") {
      leave_out("it was " + origin + ", not measured");
    } else if (!compiled && TextAt(envelope, "word") != "executed") {
      leave_out("it was not executed on " + std::string(device_class));
    } else if (fresh == c.freshness.end() || fresh->second.stale) {
      leave_out("stale: " + (fresh == c.freshness.end() ? "never compared" : fresh->second.reason));
    } else if (faults.errors() > 0) {
      leave_out("refused: " + Findings::ToText(faults.Sorted().front()));
    } else {
      results.push_back(&found->second);
      tally.evidence.insert(digest);
      const Doc& workload = At(envelope, "workload");
      if (workload.is_object()) tally.workloads.insert(TextAt(workload, "id"));
    }
  }
  return results;
}

void JudgeCompile(const Evidence& evidence, Tally& tally) {
  const Doc& body = At(evidence.json, "body");
  const Doc& control = At(body, "control");
  const std::string outcome = TextAt(body, "outcome");
  const std::string target = TextAt(evidence.json, "target");
  tally.Note("compile ", Short(evidence.digest), " for ", target, ": ", outcome, ", expected ",
             TextAt(body, "expected"));
  if (outcome == "ok") {
    tally.passed = "compiles for " + target;
  } else if (outcome != "rejected") {
    tally.open.push_back("the compiler ended with " + outcome + " for " + target);
  } else if (TextAt(body, "expected") != "rejected") {
    tally.open.push_back("rejected for " + target + ", which was not expected");
  } else if (!control.is_object() || TextAt(control, "outcome") != TextAt(control, "expected")) {
    tally.open.push_back("rejected for " + target +
                         ", but no control shows that the toolkit works");
  } else {
    tally.beside.push_back("rejected for " + target + " as expected, with " +
                           TextAt(control, "target") + " as control");
  }
}

void JudgeBuild(const Case& c, std::string_view device_class, Tally& tally) {
  const Doc& limits = At(At(c.policy, "gates"), "build");
  const int64_t most_spill = IntAt(limits, "max_spill_bytes");
  const int64_t most_stack = IntAt(limits, "max_stack_bytes");
  const int64_t least_ctas = IntAt(limits, "min_ctas_per_sm");
  const std::vector<const Evidence*> compiles = ResultsOf(c, "compile", device_class, tally);
  const std::vector<const Evidence*> resources = ResultsOf(c, "resource", device_class, tally);
  for (const Evidence* evidence : compiles) JudgeCompile(*evidence, tally);
  for (const Evidence* evidence : resources) {
    for (const Doc& kernel : At(At(evidence->json, "body"), "kernels")) {
      const std::string name = TextAt(kernel, "symbol");
      const int64_t spill = IntAt(kernel, "spill_store_bytes") + IntAt(kernel, "spill_load_bytes");
      const int64_t stack = IntAt(kernel, "stack_bytes");
      const Doc& ctas = At(kernel, "ctas_per_sm");
      tally.Note(name, ": ", IntAt(kernel, "registers"), " registers, spill ", spill, " B of ",
                 most_spill, " allowed, stack ", stack, " B of ", most_stack, ", CTAs per SM ",
                 ctas.is_null() ? "unknown" : ctas.dump(), ", wanted ", least_ctas);
      tally.FailIf(spill > most_spill, name, " spills ", spill, " bytes");
      tally.FailIf(stack > most_stack, name, " has a stack of ", stack, " bytes");
      tally.FailIf(ctas.is_number_integer() && ctas.get<int64_t>() < least_ctas, name, " fits ",
                   ctas.dump(), " CTAs on an SM");
    }
  }
  if (compiles.empty() && !resources.empty()) tally.missing.push_back("no compile evidence");
  if (!tally.passed.empty() && device_class != "host") {
    if (resources.empty()) tally.missing.push_back("no resource report");
    tally.passed += " within the resource budget";
  }
}

void JudgeParity(const Evidence& evidence, int64_t launches, std::set<std::string>& levels,
                 int64_t& repeated, Tally& tally) {
  const Doc& body = At(evidence.json, "body");
  const std::string reference = TextAt(body, "reference");
  int64_t elements = 0;
  int64_t wrong = 0;
  for (const Doc& one : At(body, "cases")) {
    tally.workloads.insert(TextAt(one, "workload"));
    elements += IntAt(one, "elements");
    const std::string why = WhyCaseDiffers(body, one);
    if (why.empty()) levels.insert(TextAt(one, "level"));
    wrong += why.empty() ? 0 : 1;
    tally.FailIf(!why.empty(), TextAt(one, "workload"), " against ", reference, ": ", why);
  }
  tally.Note("parity ", Short(evidence.digest), ", ", TextAt(body, "mode"), " against ", reference,
             ": ", At(body, "cases").size(), " cases, ", elements, " elements, ", wrong,
             " cases differ");
  const Doc& repeat = At(body, "repeat_exact");
  if (!repeat.is_object()) return;
  const int64_t done = IntAt(repeat, "launches");
  const int64_t results = IntAt(repeat, "distinct_digests");
  tally.Note("repeats: ", done, " launches, wanted ", launches, ", ", results, " results");
  tally.FailIf(results > 1, "not deterministic: ", results, " results in ", done, " launches");
  repeated = std::max(repeated, done);
}

// A reference that does not repeat itself decides nothing. Such checks lie beside the results.
void JudgeReferences(const Case& c, std::string_view device_class, Tally& tally) {
  for (const Doc& cited : At(c.record, "evidence")) {
    const auto found = c.evidence.find(TextAt(cited, "sha256"));
    if (found == c.evidence.end() || TextAt(cited, "role") != "reference") continue;
    const Doc& envelope = found->second.json;
    if (BoolAt(cited, "valid") && TextAt(envelope, "kind") == "parity" &&
        TextAt(envelope, "target") == device_class &&
        IntAt(At(At(envelope, "body"), "repeat_exact"), "distinct_digests") > 1) {
      tally.open.push_back("the reference itself is not deterministic");
    }
  }
}

void JudgeCorrect(const Case& c, std::string_view device_class, Tally& tally) {
  const Doc& wanted = At(At(c.policy, "gates"), "correct");
  const int64_t launches = IntAt(wanted, "repeat_launches");
  std::set<std::string> levels;
  int64_t repeated = 0;
  const std::vector<const Evidence*> parity = ResultsOf(c, "parity", device_class, tally);
  for (const Evidence* evidence : parity) {
    JudgeParity(*evidence, launches, levels, repeated, tally);
  }
  std::set<std::string> tools;
  const std::vector<const Evidence*> sanitizers = ResultsOf(c, "sanitizer", device_class, tally);
  for (const Evidence* evidence : sanitizers) {
    const Doc& body = At(evidence->json, "body");
    const std::string tool = TextAt(body, "tool");
    const int64_t faults = std::max(
        {IntAt(body, "errors"), IntAt(body, "hazards_displayed"), IntAt(body, "hazards_total")});
    tally.Note(tool, " ", Short(evidence->digest), ": ", faults, " errors or hazards");
    tally.FailIf(faults > 0, tool, " found ", faults);
    tools.insert(tool);
  }
  if (parity.empty() && sanitizers.empty()) return;
  JudgeReferences(c, device_class, tally);
  tally.Miss(At(wanted, "levels"), levels, "no parity on the level ");
  if (repeated < launches) {
    tally.missing.push_back(Message("only ", repeated, " repeated launches of ", launches));
  }
  Doc needed = device_class == "host" ? Doc::array() : At(wanted, "sanitizers");
  const Experiment* experiment = FindExperiment(TextAt(c.record, "id"));
  if (experiment != nullptr && experiment->uses_async && device_class != "host") {
    for (const Doc& tool : At(wanted, "async_sanitizers")) needed.push_back(tool);
  }
  tally.Miss(needed, tools, "no run of ");
  tally.passed = Message("equal on ", Joined(At(wanted, "levels")), ", ", repeated,
                         " launches alike", needed.empty() ? "" : ", clean in " + Joined(needed));
}

// Why a timing cannot speak before its numbers are looked at.
std::string WhyUnplanned(const Doc& envelope) {
  const Doc& plan = At(envelope, "plan");
  const Doc& body = At(envelope, "body");
  if (!plan.is_object()) return "its sizes were not fixed before the run: it has no plan";
  const int64_t processes = IntAt(body, "processes"), quads = IntAt(body, "quads");
  const int64_t planned = IntAt(plan, "processes"), planned_quads = IntAt(plan, "quads");
  if (processes != planned || quads != planned_quads) {
    return Message("it has ", processes, " processes of ", quads, " quads, planned were ", planned,
                   " of ", planned_quads);
  }
  const int64_t sample =
      IntAt(At(body, "statistics"), "candidate_p50_ps") * IntAt(body, "batch", 1);
  if (sample < kLeastSamplePs) return "a sample holds less than 100 us of work: batch the calls";
  if (sample / 1000 < kLeastTicks * IntAt(body, "tick_ns")) {
    return "a sample is shorter than 1,000 ticks of its timer";
  }
  return {};
}

PairVerdict JudgePair(const Doc& envelope, const Doc& policy, std::string_view gate) {
  const Doc& limits = At(At(policy, "gates"), gate);
  const Doc& body = At(envelope, "body");
  PairVerdict verdict;
  verdict.reason = WhyUnplanned(envelope);
  if (!verdict.reason.empty()) return verdict;
  PairThresholds thresholds;
  thresholds.calls = IntAt(body, "calls", 1);
  thresholds.min_gain_ppm = IntAt(limits, "min_gain_ppm");
  thresholds.min_abs_ns = IntAt(limits, "min_abs_ns");
  thresholds.min_processes = IntAt(limits, "min_processes");
  if (TextAt(body, "timer") == "host") {
    thresholds.min_processes = std::max(thresholds.min_processes, kHostProcesses);
  }
  thresholds.max_discard_ppm = IntAt(limits, "max_discard_ppm");
  thresholds.max_discard_difference_ppm = IntAt(limits, "max_discard_difference_ppm");
  return DecidePair(PairStatisticsOf(At(body, "statistics")), thresholds);
}

// A workload is decided by the run of its newest plan. Two runs of one plan must agree: to run
// until one wins is no measurement.
void JudgeIsolated(const Case& c, std::string_view device_class, Tally& tally) {
  const char* const gate = "isolated";
  const Doc& levels = At(At(At(c.policy, "gates"), gate), "levels");
  std::map<std::string, std::vector<const Evidence*>> newest;
  std::set<std::string> met;
  for (const Evidence* evidence : ResultsOf(c, "timing_pair", device_class, tally)) {
    const Doc& workload = At(evidence->json, "workload");
    const bool elsewhere = TextAt(At(evidence->json, "plan"), "gate", gate) != gate;
    const Doc& level = At(workload, "level");
    if (elsewhere || std::find(levels.begin(), levels.end(), level) == levels.end()) {
      tally.evidence.erase(evidence->digest);
      tally.workloads.erase(TextAt(workload, "id"));
      continue;
    }
    std::vector<const Evidence*>& runs = newest[TextAt(workload, "id")];
    auto plan_of = [](const Evidence* run) { return IntAt(At(run->json, "plan"), "log_seq", -1); };
    if (!runs.empty() && plan_of(runs[0]) < plan_of(evidence)) runs.clear();
    if (runs.empty() || plan_of(runs[0]) == plan_of(evidence)) runs.push_back(evidence);
    met.insert(TextAt(workload, "level"));
  }
  if (newest.empty()) return;
  for (const auto& [workload, runs] : newest) {
    std::set<Decision> decisions;
    PairVerdict verdict;
    for (const Evidence* run : runs) {
      verdict = JudgePair(run->json, c.policy, gate);
      decisions.insert(verdict.decision);
      tally.Note("timing ", Short(run->digest), " of ", workload, ":");
      for (const std::string& line : verdict.arithmetic) tally.Note("  ", line);
    }
    const std::string reason = workload + ": " + verdict.reason;
    if (decisions.size() > 1) {
      tally.open.push_back(Message(workload, ": ", runs.size(), " runs of one plan disagree"));
    } else if (verdict.decision == Decision::kFail) {
      tally.fails.push_back(reason);
    } else if (verdict.decision == Decision::kInconclusive) {
      tally.open.push_back(reason);
    } else {
      tally.passed += (tally.passed.empty() ? "" : "; ") + reason;
    }
  }
  tally.Miss(levels, met, "no timing on the level ");
}

size_t IndexOfGate(std::string_view gate) {
  return static_cast<size_t>(std::find(std::begin(kGates), std::end(kGates), gate) -
                             std::begin(kGates));
}

// A gate is skipped only where an earlier one ended without a pass. Fills in the verdict, or says
// why the skip does not stand.
void JudgeSkip(const Case& c, std::string_view gate, std::string_view device_class,
               std::string& verdict, std::string& reason, Tally& tally) {
  for (const Doc& skip : At(c.record, "skipped")) {
    if (TextAt(skip, "gate") != gate) continue;
    const std::string because = TextAt(skip, "because_gate");
    if (because.empty() || IndexOfGate(because) >= IndexOfGate(gate)) {
      tally.Note("the skip names no earlier gate");
      continue;
    }
    const std::string earlier =
        TextAt(EvaluateGate(c, because, device_class).verdict, "verdict", "not run");
    if (earlier == "fail" || earlier == "inconclusive" || earlier == "not_applicable") {
      verdict = "skipped";
      reason = because + " is " + earlier;
      return;
    }
    tally.Note("the skip does not stand: ", because, " is ", earlier);
  }
}

}  // namespace

GateResult EvaluateGate(const Case& c, std::string_view gate, std::string_view device_class) {
  Tally tally;
  if (gate == "build") {
    JudgeBuild(c, device_class, tally);
  } else if (gate == "correct") {
    JudgeCorrect(c, device_class, tally);
  } else if (gate == "isolated") {
    JudgeIsolated(c, device_class, tally);
  }  // The others need evidence of kinds that nothing produces yet: they are not run.
  std::string verdict;
  std::string reason;
  if (!tally.fails.empty()) {
    verdict = "fail";
    reason = tally.fails.front();
  } else if (!tally.open.empty()) {
    verdict = "inconclusive";
    reason = tally.open.front();
  } else if (tally.missing.empty() && !tally.passed.empty()) {
    verdict = "pass";
    reason = tally.passed;
  } else if (tally.missing.empty() && !tally.beside.empty()) {
    verdict = "not_applicable";
    reason = tally.beside.front();
  } else {
    JudgeSkip(c, gate, device_class, verdict, reason, tally);
  }
  for (const std::vector<std::string>* list : {&tally.fails, &tally.open, &tally.missing}) {
    for (const std::string& line : *list) {
      if (line != reason) tally.arithmetic.push_back(line);
    }
  }
  GateResult result;
  result.arithmetic = std::move(tally.arithmetic);
  if (verdict.empty()) return result;
  constexpr size_t kLongestReason = 1900;  // a document holds 2,000 bytes
  if (reason.size() > kLongestReason) reason = reason.substr(0, kLongestReason) + " ...";
  result.verdict = {{"class", std::string(device_class)},
                    {"evidence", tally.evidence},
                    {"policy_digest", DigestOf(c.policy)},
                    {"reason", reason},
                    {"verdict", verdict},
                    {"workloads", tally.workloads}};
  return result;
}

std::vector<std::string> DeviceClasses(const Case& c) {
  std::set<std::string> classes;
  for (const Doc& arch : At(At(c.record, "scope"), "archs")) {
    if (arch.is_string()) classes.insert(arch.get<std::string>());
  }
  for (const Doc& reference : At(c.record, "evidence")) {
    const auto found = c.evidence.find(TextAt(reference, "sha256"));
    if (found == c.evidence.end() || !BoolAt(reference, "valid")) continue;
    const std::string target = TextAt(found->second.json, "target");
    if (!target.empty()) classes.insert(target);
  }
  return {classes.begin(), classes.end()};
}

}  // namespace h3rt::lab
