// What a piece of evidence must hold beyond its form. The limits of the audits are told in
// README.md.
#include "h3rt/lab/evidence_rules.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

// Medians of two separate runs in one process differ by up to this with nothing the matter.
constexpr double kAuditTolerance = 0.03;
// A cache level explains less; a stored result more.
constexpr double kReplayRatio = 3;
// Host time over timed time: launches and the last synchronisation.
constexpr double kWallShare = 1.25;
constexpr int64_t kWallSlackNs = 2'000'000;
constexpr int64_t kWallSampleNs = 50'000;  // of each sample: a launch and a wait
constexpr double kExcess = 1.05;           // reads go a little faster than a copy
constexpr int64_t kClockSkewUs = 300'000'000;
constexpr int64_t kDayUs = 86'400'000'000;

std::string Text(double value) { return std::to_string(std::llround(value)); }

class Check {
 public:
  Check(const Evidence& evidence, Findings& findings)
      : evidence_(evidence),
        envelope_(evidence.json),
        body_(At(evidence.json, "body")),
        findings_(findings) {}

  void Add(const char* code, const std::string& pointer, const std::string& message) {
    findings_.Add(
        {.code = code, .file = evidence_.file, .line = 1, .pointer = pointer, .message = message});
  }

  void Origin();
  void Times();
  void Blobs();
  void Compile();
  void Resource();
  void Parity();
  void Sanitizer();
  void Pair(const Doc& policy);
  void Audit(const Doc& audit, const std::string& pointer, double tolerance, int64_t samples);
  void Speed(const Doc& policy);
  void Processes();

 private:
  const Evidence& evidence_;
  const Doc& envelope_;
  const Doc& body_;
  Findings& findings_;
};

// What a kind is made from. Imported and modelled evidence may be of any kind; it serves no gate.
void Check::Origin() {
  const std::string kind = TextAt(envelope_, "kind");
  const std::string origin = TextAt(envelope_, "origin");
  const std::string word = TextAt(envelope_, "word");
  if (origin == "imported" || origin == "modelled") {
    if (word == "executed")
      Add("E-ORIGIN", "/word", origin + " evidence was executed nowhere here");
    if (At(envelope_, "plan").is_object()) {
      Add("E-ORIGIN", "/plan", origin + " evidence cannot follow a plan: it serves no gate");
    }
    // What a foreign source did not tell stays unknown.
    if (origin == "imported" && !At(At(envelope_, "invocation"), "start_us").is_null()) {
      Add("E-ORIGIN", "/invocation/start_us", "imported evidence has no invocation of ours");
    }
    return;
  }
  const bool compiled = kind == "compile" || kind == "resource";
  const bool inspected = kind == "inspection" || kind == "fixture";
  const bool fits = compiled ? origin == "compiled" || origin == "measured"
                    : inspected
                        ? origin == "inspected" || origin == "measured"
                        : origin == "measured" || (kind == "failure" && origin == "compiled");
  if (!fits) Add("E-ORIGIN", "/origin", kind + " evidence cannot be " + origin);
  const bool timed =
      kind == "timing_single" || kind == "timing_pair" || kind == "profile" || kind == "sanitizer";
  if (timed && word != "executed" && word != "emulated") {
    Add("E-ORIGIN", "/word", kind + " evidence comes from a run");
  }
}

void Check::Times() {
  const Doc& invocation = At(envelope_, "invocation");
  const int64_t start = IntAt(invocation, "start_us", -1);
  const int64_t end = IntAt(invocation, "end_us", -1);
  if (start >= 0 && end >= 0 && end < start) {
    Add("E-TIME", "/invocation/end_us", "the run ended before it started");
  }
  const int64_t now = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const int64_t ahead = std::max(start, end) - now;
  if (ahead > kDayUs) {
    Add("E-TIME", "/invocation/end_us", "the run lies in the future");
  } else if (ahead > kClockSkewUs) {
    Add("W-TIME", "/invocation/end_us",
        "the run lies " + Text(static_cast<double>(ahead) / 1e6) + " s in the future");
  }
}

void Check::Blobs() {
  std::set<std::string> names;
  for (const Doc& blob : At(envelope_, "blobs")) names.insert(TextAt(blob, "name"));
  for (const char* key : {"samples_blob", "log", "report"}) {
    const std::string name = TextAt(body_, key);
    if (name.empty() || names.contains(name)) continue;
    Add(std::string_view(key) == "samples_blob" ? "E-SAMPLES" : "E-EV-REF",
        std::string("/body/") + key, "no blob is named " + name);
  }
}

void Check::Compile() {
  if (TextAt(body_, "outcome") == "rejected" && At(body_, "diagnostics").empty()) {
    Add("E-RULE", "/body/diagnostics", "a rejection without what the compiler said");
  }
  if (TextAt(body_, "expected") == "rejected" && !At(body_, "control").is_object()) {
    Add("E-RULE", "/body/control", "an expected rejection needs a control that shows the toolkit");
  }
}

void Check::Resource() {
  const Doc& kernels = At(body_, "kernels");
  if (kernels.empty()) Add("E-RES-MISSING", "/body/kernels", "no kernel is reported");
  for (const Doc& wanted : At(At(envelope_, "subject"), "kernels")) {
    const std::string symbol = TextAt(wanted, "symbol");
    if (std::none_of(kernels.begin(), kernels.end(), [&](const Doc& kernel) {
          return SymbolMatches(TextAt(kernel, "symbol"), symbol);
        })) {
      Add("E-RES-MISSING", "/body/kernels", "the subject's kernel " + symbol + " is not reported");
    }
  }
}

void Check::Parity() {
  const Doc& cases = At(body_, "cases");
  if (cases.empty()) Add("E-PARITY-EMPTY", "/body/cases", "nothing was compared");
  const bool bitwise = TextAt(body_, "mode") == "bitwise";
  const bool itself = TextAt(body_, "reference") == TextAt(envelope_, "vid");
  if (!bitwise && !At(body_, "bound_e9").is_number_integer()) {
    Add("E-RULE", "/body/bound_e9", "a tolerance needs its bound");
  }
  bool differs = false;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Doc& one = cases[i];
    const std::string pointer = "/body/cases/" + std::to_string(i);
    const int64_t mismatches = IntAt(one, "mismatches");
    if (IntAt(one, "elements") < 1) {
      Add("E-PARITY-EMPTY", pointer + "/elements", "a case without elements");
    }
    if (mismatches > IntAt(one, "elements")) {
      Add("E-RULE", pointer + "/mismatches", "more mismatches than elements");
    }
    // A NaN equals a NaN of the same bits alone, so equal outputs hold equally many.
    if (bitwise && mismatches == 0 && IntAt(one, "nan_actual") != IntAt(one, "nan_expected")) {
      Add("E-RULE", pointer + "/nan_actual", "equal bits with unequal counts of NaN");
    }
    differs = differs || !WhyCaseDiffers(body_, one).empty();
  }
  const Doc& repeat = At(body_, "repeat_exact");
  if (repeat.is_object() && IntAt(repeat, "launches") < 1) {
    Add("E-PARITY-EMPTY", "/body/repeat_exact/launches", "nothing was repeated");
  }
  if (itself && (differs || IntAt(repeat, "distinct_digests") > 1)) {
    Add("E-REF-UNSTABLE", "/body/reference", "the reference differs from itself");
  }
  if (TextAt(body_, "expected") == "mismatch" && !cases.empty() && !differs) {
    Add("E-RULE", "/body/expected", "a mismatch was expected, and nothing differs");
  }
}

void Check::Sanitizer() {
  const Doc& kernels = At(body_, "kernels");
  const Doc& wanted = At(At(envelope_, "subject"), "kernels");
  if (wanted.empty()) Add("E-SAN-EMPTY", "/subject/kernels", "no kernel is named that it watched");
  for (const Doc& kernel : wanted) {
    const std::string symbol = TextAt(kernel, "symbol");
    if (std::none_of(kernels.begin(), kernels.end(), [&](const Doc& seen) {
          return IntAt(seen, "launches") > 0 && SymbolMatches(TextAt(seen, "symbol"), symbol);
        })) {
      Add("E-SAN-EMPTY", "/body/kernels", "it saw no launch of " + symbol);
    }
  }
  auto is_set = [](const Doc& value) {
    return value.is_boolean()          ? value.get<bool>()
           : value.is_number_integer() ? value.get<int64_t>() > 0
                                       : value.is_string() && !value.get<std::string>().empty();
  };
  const Doc& control = At(body_, "control");
  if (!is_set(At(control, "planted")) || !is_set(At(control, "found"))) {
    Add("E-SAN-CONTROL", "/body/control", "the planted fault was not found in the same setting");
  }
}

void Check::Processes() {
  const Doc& processes = At(body_, "process_ids");
  const int64_t wanted = IntAt(body_, "processes");
  if (static_cast<int64_t>(processes.size()) != wanted) {
    Add("E-PROCESS", "/body/process_ids",
        std::to_string(processes.size()) + " processes are named, " + std::to_string(wanted) +
            " are claimed");
  }
  std::set<std::tuple<std::string, int64_t, int64_t>> seen;
  const Doc& invocation = At(envelope_, "invocation");
  for (size_t i = 0; i < processes.size(); ++i) {
    const std::string pointer = "/body/process_ids/" + std::to_string(i);
    const Doc& process = processes[i];
    const int64_t start = IntAt(process, "start_us", -1);
    if (!process.is_object() || IntAt(process, "pid", -1) < 0 || start < 0) {
      Add("E-PROCESS", pointer, "no {boot_id_sha256, pid, start_us}");
      continue;
    }
    if (!seen.emplace(TextAt(process, "boot_id_sha256"), IntAt(process, "pid"), start).second) {
      Add("E-PROCESS", pointer, "the same process twice");
    }
    const bool early = start < IntAt(invocation, "start_us");
    if (early || start > IntAt(invocation, "end_us", std::numeric_limits<int64_t>::max())) {
      Add("E-TIME", pointer + "/start_us", "the process did not start within the run");
    }
  }
}

void Check::Audit(const Doc& audit, const std::string& pointer, double tolerance, int64_t samples) {
  const Doc& same = At(audit, "same_input_ratio_e9");
  const Doc& seed = At(audit, "seed_ratio_e9");
  const Doc& poison = At(audit, "poison_left");
  const Doc& wall = At(audit, "wall_ns");
  const Doc& event = At(audit, "event_ns");
  for (const Doc* number : {&same, &seed, &poison, &wall, &event}) {
    if (!number->is_number_integer()) {
      Add("E-EV-FORM", pointer, "an audit of a timing is missing or no number");
      return;
    }
  }
  // Time with rotating inputs over time with one input again and again: above one, that one is
  // faster.
  const double same_ratio = static_cast<double>(same.get<int64_t>()) / 1e9;
  if (same_ratio > kReplayRatio) {
    Add("E-AUDIT-REPLAY", pointer + "/same_input_ratio_e9",
        "an input that was seen before is " + Text(same_ratio) + " times faster");
  } else if (same_ratio > 1 + tolerance) {
    Add("E-AUDIT-INPUT", pointer + "/same_input_ratio_e9",
        "one repeated input is faster by " + Text((same_ratio - 1) * 1e6) + " ppm");
  }
  const double seed_ratio = static_cast<double>(seed.get<int64_t>()) / 1e9;
  if (seed_ratio > 1 + tolerance || seed_ratio < 1 / (1 + tolerance)) {
    Add("E-AUDIT-SEED", pointer + "/seed_ratio_e9",
        "another seed changes the time by " + Text((seed_ratio - 1) * 1e6) + " ppm");
  }
  if (IntAt(audit, "outputs_audited", 1) < 1) {
    Add("E-AUDIT-OUTPUT", pointer + "/outputs_audited", "no output of a timed call was looked at");
  }
  if (!BoolAt(audit, "output_digests_ok")) {
    Add("E-AUDIT-OUTPUT", pointer + "/output_digests_ok",
        "outputs of timed calls are not those of the checked arm");
  }
  if (!BoolAt(audit, "inputs_unchanged")) {
    Add("E-AUDIT-MUTATED", pointer + "/inputs_unchanged", "timed calls wrote their inputs");
  }
  if (poison.get<int64_t>() != 0) {
    Add("E-AUDIT-POISON", pointer + "/poison_left",
        poison.dump() + " elements of the output were left as they were");
  }
  const int64_t wall_ns = wall.get<int64_t>();
  const int64_t event_ns = event.get<int64_t>();
  if (event_ns <= 0 || wall_ns < event_ns) {
    Add("E-AUDIT-STREAM", pointer + "/event_ns",
        "the timer counts " + event.dump() + " ns in " + wall.dump() + " ns on the wall");
  } else if (static_cast<double>(wall_ns - kWallSlackNs - samples * kWallSampleNs) >
             kWallShare * static_cast<double>(event_ns)) {
    Add("E-AUDIT-STREAM", pointer + "/wall_ns",
        "the device worked on after the timed window: " + wall.dump() + " ns on the wall, " +
            event.dump() + " ns timed");
  }
}

void Check::Speed(const Doc& policy) {
  const Doc& statistics = At(body_, "statistics");
  const double floor = FloorPicoseconds(envelope_, policy);
  for (const char* key : {"baseline_p50_ps", "candidate_p50_ps"}) {
    const auto time = static_cast<double>(IntAt(statistics, key));
    if (time > 0 && time < floor) {
      Add("E-IMPOSSIBLE", std::string("/body/statistics/") + key,
          Text(time) + " ps, and bytes and operations take " + Text(floor) + " ps at peak rates");
    }
  }
  const int64_t copy = IntAt(body_, "copy_bytes_per_s");
  const int64_t bytes = IntAt(body_, "bytes");
  const auto baseline = static_cast<double>(IntAt(statistics, "baseline_p50_ps"));
  if (copy <= 0 || bytes <= 0) return;
  const double most = baseline * static_cast<double>(copy) / (static_cast<double>(bytes) * 1e12);
  const double ratio = static_cast<double>(IntAt(statistics, "ratio_e9")) / 1e9;
  if (ratio > most * kExcess && ratio > 1) {
    Add("W-EXCESS", "/body/statistics/ratio_e9",
        "a gain of " + Text(ratio * 1e3) +
            " thousandths; moving the bytes at the copy rate of the " + "same run would give " +
            Text(most * 1e3));
  }
}

void Check::Pair(const Doc& policy) {
  const Doc& subject = At(envelope_, "subject");
  const Doc& statistics = At(body_, "statistics");
  auto mismatch = [&](const char* pointer, const std::string& message) {
    Add("E-PAIR-MISMATCH", pointer, message);
  };
  if (!At(subject, "baseline").is_object()) {
    mismatch("/subject/baseline", "a pair without the subject of its baseline");
  }
  if (TextAt(body_, "baseline") == TextAt(body_, "candidate")) {
    mismatch("/body/baseline", "both arms are " + TextAt(body_, "baseline"));
  }
  if (TextAt(envelope_, "vid") != TextAt(body_, "candidate")) {
    mismatch("/body/candidate", "the candidate is not the variant of this evidence");
  }
  if (TextAt(body_, "mode") == "single" && IntAt(body_, "batch", 1) != 1) {
    mismatch("/body/batch", "single launches in batches of " + At(body_, "batch").dump());
  }
  const Doc& workload = At(envelope_, "workload");
  if (!workload.is_object() || At(workload, "input_sha256").empty()) {
    mismatch("/workload/input_sha256", "nothing shows that both arms had the same inputs");
  } else if (IntAt(workload, "calls", 1) != IntAt(body_, "calls", 1)) {
    mismatch("/body/calls", "another number of calls than the workload has");
  }
  if (IntAt(statistics, "samples_baseline") != IntAt(statistics, "samples_candidate")) {
    mismatch("/body/statistics/samples_candidate", "the arms have unequal numbers of samples");
  }
  if (IntAt(statistics, "processes") != IntAt(body_, "processes")) {
    Add("E-SAMPLES", "/body/processes",
        "the statistics have " + std::to_string(IntAt(statistics, "processes")) +
            " processes, the body " + std::to_string(IntAt(body_, "processes")));
  }
  const Doc& facts = At(envelope_, "environment");
  if (At(At(facts, "class"), "device").is_null() && TextAt(envelope_, "target") != "host") {
    mismatch("/environment/class/device", "a timing of an unnamed device");
  }
  Processes();
  Speed(policy);
  const double least = static_cast<double>(IntAt(statistics, "mde_e9")) / 1e9;
  const double tolerance = std::max(kAuditTolerance, least);
  // One audit a process, or one for all.
  const Doc& audits = At(body_, "audits");
  const int64_t samples = IntAt(statistics, "samples_baseline") +
                          IntAt(statistics, "samples_candidate") +
                          4 * IntAt(statistics, "aa_quads");
  if (!audits.is_array()) return Audit(audits, "/body/audits", tolerance, samples);
  if (audits.empty()) Add("E-EV-FORM", "/body/audits", "a timing without audits");
  for (size_t i = 0; i < audits.size(); ++i) {
    Audit(audits[i], "/body/audits/" + std::to_string(i), tolerance,
          samples / static_cast<int64_t>(audits.size()));
  }
}

// Quads of a process, as its samples have them.
struct Counted {
  int64_t arms[2] = {0, 0};
  std::map<std::pair<int, int>, std::set<int>> slots = {};  // by role and quad
};

// The samples of a pair against what its body says of them.
void CheckSamples(const std::vector<Sample>& samples, const Doc& body, Check& check) {
  std::map<int, Counted> processes;
  for (const Sample& sample : samples) {
    Counted& counted = processes[sample.process];
    if (sample.role == 0) ++counted.arms[sample.arm];
    if (!counted.slots[{sample.role, sample.quad}].insert(sample.slot).second) {
      return check.Add("E-SAMPLES", "/body/samples_blob", "a slot of a quad was taken twice");
    }
    if (sample.role == 1 && sample.arm != 0) {
      return check.Add("E-SAMPLES", "/body/samples_blob", "an A/A control ran the candidate");
    }
  }
  if (static_cast<int64_t>(processes.size()) != IntAt(body, "processes")) {
    check.Add("E-SAMPLES", "/body/samples_blob",
              "samples of " + std::to_string(processes.size()) + " processes, the body says " +
                  std::to_string(IntAt(body, "processes")));
  }
  for (const auto& [number, counted] : processes) {
    const std::string name = "process " + std::to_string(number);
    if (counted.arms[0] != counted.arms[1]) {
      check.Add("E-PAIR-MISMATCH", "/body/samples_blob",
                name + " has " + std::to_string(counted.arms[0]) + " samples of the baseline and " +
                    std::to_string(counted.arms[1]) + " of the candidate");
    }
    const auto whole = std::count_if(counted.slots.begin(), counted.slots.end(),
                                     [](const auto& quad) { return quad.second.size() == 4; });
    const auto quads = std::count_if(counted.slots.begin(), counted.slots.end(),
                                     [](const auto& quad) { return quad.first.first == 0; });
    if (whole != static_cast<int64_t>(counted.slots.size()) || quads != IntAt(body, "quads")) {
      check.Add("E-SAMPLES", "/body/samples_blob",
                name + " has " + std::to_string(whole) + " whole quads of " +
                    std::to_string(counted.slots.size()) + ", " + std::to_string(quads) +
                    " of the pair; the body says " + std::to_string(IntAt(body, "quads")));
    }
  }
}

}  // namespace

bool SymbolMatches(std::string_view seen, std::string_view wanted) {
  if (wanted.empty()) return false;
  if (!seen.starts_with("_Z")) return seen.find(wanted) != std::string_view::npos;
  if (wanted.starts_with("_Z")) return seen == wanted;
  // Mangled: every part of the name with its length in front of it, in their order.
  size_t at = 0;
  while (!wanted.empty()) {
    const size_t end = std::min(wanted.find("::"), wanted.size());
    const std::string part = std::to_string(end) + std::string(wanted.substr(0, end));
    wanted.remove_prefix(std::min(end + 2, wanted.size()));
    at = seen.find(part, at);
    if (at == std::string_view::npos) return false;
    at += part.size();
  }
  return true;
}

std::string WhyCaseDiffers(const Doc& body, const Doc& parity_case) {
  const int64_t mismatches = IntAt(parity_case, "mismatches");
  const int64_t elements = IntAt(parity_case, "elements");
  if (elements < 1) return "nothing was compared";
  if (IntAt(parity_case, "unwritten") > 0) {
    return std::to_string(IntAt(parity_case, "unwritten")) + " elements were not written";
  }
  if (IntAt(parity_case, "guard_faults") > 0) return "it wrote outside its output";
  if (!BoolAt(parity_case, "inputs_unchanged")) return "it wrote its inputs";
  if (TextAt(body, "mode") == "bitwise") {
    if (mismatches == 0) return {};
    return std::to_string(mismatches) + " of " + std::to_string(elements) + " elements differ, " +
           "the first at " + At(parity_case, "first_index").dump();
  }
  if (IntAt(parity_case, "nan_actual") != IntAt(parity_case, "nan_expected")) {
    return std::to_string(IntAt(parity_case, "nan_actual")) + " NaN where " +
           std::to_string(IntAt(parity_case, "nan_expected")) + " were expected";
  }
  const Doc& error = At(parity_case, "rel_l2_e9");
  const int64_t bound = IntAt(body, "bound_e9");
  if (error.is_number_integer() && error.get<int64_t>() <= bound) return {};
  return "relative error " + error.dump() + "e-9, the bound is " + std::to_string(bound) + "e-9";
}

double FloorPicoseconds(const Doc& envelope, const Doc& policy) {
  const Doc& body = At(envelope, "body");
  const Doc& machine = At(At(policy, "architectures"), TextAt(envelope, "target"));
  double floor = 0;
  for (const auto& [amount, peak] :
       {std::pair("bytes", "peak_bytes_per_s"), std::pair("operations", "peak_ops_per_s")}) {
    // The policy's rate: what a run says of its own peak proves nothing.
    const int64_t rate = IntAt(machine, peak, IntAt(body, peak));
    if (rate <= 0) continue;
    floor = std::max(floor,
                     static_cast<double>(IntAt(body, amount)) / static_cast<double>(rate) * 1e12);
  }
  return floor;
}

std::vector<Sample> ReadSamples(const Store& store, const Evidence& evidence, Findings& findings) {
  const std::string name = TextAt(At(evidence.json, "body"), "samples_blob");
  const std::optional<std::string> packed = ReadBlob(store, evidence, name, findings);
  if (!packed) return {};
  std::string reason;
  std::vector<Sample> samples = UnpackSamples(*packed, reason);
  if (!reason.empty()) Check(evidence, findings).Add("E-SAMPLES", "/body/samples_blob", reason);
  return samples;
}

void CheckEnvelope(const Evidence& evidence, const Doc& policy, Findings& findings) {
  Check check(evidence, findings);
  const std::string kind = TextAt(evidence.json, "kind");
  check.Origin();
  check.Times();
  check.Blobs();
  if (kind == "compile") check.Compile();
  if (kind == "resource") check.Resource();
  if (kind == "parity") check.Parity();
  if (kind == "sanitizer") check.Sanitizer();
  if (kind == "timing_pair") check.Pair(policy);
}

void ValidateEvidence(const Store& store, const Evidence& evidence, const Doc& policy,
                      Findings& findings) {
  CheckEnvelope(evidence, policy, findings);
  const Doc& body = At(evidence.json, "body");
  const std::string kind = TextAt(evidence.json, "kind");
  Check check(evidence, findings);
  for (const Doc& blob : At(evidence.json, "blobs")) {
    // Samples are read below; of the others their bytes are compared.
    if (TextAt(blob, "name") == TextAt(body, "samples_blob")) continue;
    ReadBlob(store, evidence, TextAt(blob, "name"), findings);
  }
  if (kind == "timing_single") ReadSamples(store, evidence, findings);
  if (kind != "timing_pair") return;
  const std::vector<Sample> samples = ReadSamples(store, evidence, findings);
  if (samples.empty()) return;
  CheckSamples(samples, body, check);
  const double floor = FloorPicoseconds(evidence.json, policy);
  for (const Sample& sample : samples) {
    if (static_cast<double>(sample.picoseconds) >= floor) continue;
    return check.Add("E-IMPOSSIBLE", "/body/samples_blob",
                     "a sample of " + std::to_string(sample.picoseconds) +
                         " ps, and bytes and operations take " + Text(floor) + " ps at peak rates");
  }
}

}  // namespace h3rt::lab
