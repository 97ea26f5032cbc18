// What a piece of evidence must hold beyond its form. The limits of the audits are told in
// README.md.
#include "h3rt/lab/evidence_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "h3rt/base/utc.h"
#include "h3rt/lab/scan.h"
#include "h3rt/lab/tool_logs.h"
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
constexpr char kSamplesBlob[] = "/body/samples_blob";

int64_t Whole(double value) { return std::llround(value); }
double Number(const Doc& object, const char* key) {
  return static_cast<double>(IntAt(object, key));
}

class Check {
 public:
  Check(const Evidence& evidence, Findings& findings)
      : evidence_(evidence),
        envelope_(evidence.json),
        body_(At(evidence.json, "body")),
        findings_(findings) {}

  template <typename... Parts>
  void Add(const char* code, const std::string& pointer, const Parts&... parts) {
    findings_.Add({.code = code,
                   .file = evidence_.file,
                   .line = 1,
                   .pointer = pointer,
                   .message = Message(parts...)});
  }
  template <typename... Parts>
  void AddIf(bool broken, const char* code, const std::string& pointer, const Parts&... parts) {
    if (broken) Add(code, pointer, parts...);
  }

  void Origin();
  void Times();
  void Blobs();
  void Compile();
  void Resource();
  void Parity();
  void Sanitizer();
  void Pair(const Doc& policy);
  void Samples(const std::vector<Sample>& samples);
  // Derived numbers against what they were derived from, with no tolerance.
  void Recompute(const std::string& pointer, const Doc& stored, const Doc& again);
  void RecomputeSanitizer(const Store& store);
  void RecomputeResource(const Store& store);
  void RecomputeStatistics(const Store& store, bool pair);

 private:
  // The body lists the kernel, with so many launches at least.
  bool Lists(const Doc& kernel, int64_t launches) const;
  void Audit(const Doc& audit, const std::string& pointer, double tolerance, int64_t samples);
  void Speed(const Doc& policy);
  void Processes();

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
    AddIf(word == "executed", "E-ORIGIN", "/word", origin, " evidence was executed nowhere here");
    AddIf(At(envelope_, "plan").is_object(), "E-ORIGIN", "/plan", origin,
          " evidence cannot follow a plan: it serves no gate");
    // What a foreign source did not tell stays unknown.
    AddIf(origin == "imported" && !At(At(envelope_, "invocation"), "start_us").is_null(),
          "E-ORIGIN", "/invocation/start_us", "imported evidence has no invocation of ours");
    return;
  }
  const bool compiled = kind == "compile" || kind == "resource";
  const bool inspected = kind == "inspection" || kind == "fixture";
  const bool fits = origin == "measured" || (inspected && origin == "inspected") ||
                    ((compiled || kind == "failure") && origin == "compiled");
  AddIf(!fits, "E-ORIGIN", "/origin", kind, " evidence cannot be ", origin);
  const bool timed =
      kind == "timing_single" || kind == "timing_pair" || kind == "profile" || kind == "sanitizer";
  AddIf(timed && word != "executed" && word != "emulated", "E-ORIGIN", "/word", kind,
        " evidence comes from a run");
}

void Check::Times() {
  const Doc& invocation = At(envelope_, "invocation");
  const int64_t start = IntAt(invocation, "start_us", -1);
  const int64_t end = IntAt(invocation, "end_us", -1);
  const char* const pointer = "/invocation/end_us";
  AddIf(end >= 0 && end < start, "E-TIME", pointer, "the run ended before it started");
  const int64_t ahead = std::max(start, end) - NowNs() / 1000;
  if (ahead > kDayUs) {
    Add("E-TIME", pointer, "the run lies in the future");
  } else if (ahead > kClockSkewUs) {
    Add("W-TIME", pointer, "the run lies ", Whole(static_cast<double>(ahead) / 1e6),
        " s in the future");
  }
}

void Check::Blobs() {
  std::set<std::string> names;
  for (const Doc& blob : At(envelope_, "blobs")) names.insert(TextAt(blob, "name"));
  for (const std::string key : {"samples_blob", "log", "report"}) {
    const std::string name = TextAt(body_, key);
    AddIf(!name.empty() && !names.contains(name), key == "samples_blob" ? "E-SAMPLES" : "E-EV-REF",
          "/body/" + key, "no blob is named ", name);
  }
}

void Check::Compile() {
  AddIf(TextAt(body_, "outcome") == "rejected" && At(body_, "diagnostics").empty(), "E-RULE",
        "/body/diagnostics", "a rejection without what the compiler said");
  AddIf(TextAt(body_, "expected") == "rejected" && !At(body_, "control").is_object(), "E-RULE",
        "/body/control", "an expected rejection needs a control that shows the toolkit");
}

bool Check::Lists(const Doc& kernel, int64_t launches) const {
  const Doc& listed = At(body_, "kernels");
  return std::any_of(listed.begin(), listed.end(), [&](const Doc& one) {
    return IntAt(one, "launches") >= launches &&
           SymbolMatches(TextAt(one, "symbol"), TextAt(kernel, "symbol"));
  });
}

void Check::Resource() {
  AddIf(At(body_, "kernels").empty(), "E-RES-MISSING", "/body/kernels", "no kernel is reported");
  for (const Doc& wanted : At(At(envelope_, "subject"), "kernels")) {
    AddIf(!Lists(wanted, 0), "E-RES-MISSING", "/body/kernels", "the subject's kernel ",
          TextAt(wanted, "symbol"), " is not reported");
  }
}

void Check::Parity() {
  const Doc& cases = At(body_, "cases");
  const bool bitwise = TextAt(body_, "mode") == "bitwise";
  const bool itself = TextAt(body_, "reference") == TextAt(envelope_, "vid");
  AddIf(cases.empty(), "E-PARITY-EMPTY", "/body/cases", "nothing was compared");
  AddIf(!bitwise && !At(body_, "bound_e9").is_number_integer(), "E-RULE", "/body/bound_e9",
        "a tolerance needs its bound");
  bool differs = false;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Doc& one = cases[i];
    const std::string pointer = "/body/cases/" + std::to_string(i);
    const int64_t mismatches = IntAt(one, "mismatches");
    AddIf(IntAt(one, "elements") < 1, "E-PARITY-EMPTY", pointer + "/elements",
          "a case without elements");
    AddIf(mismatches > IntAt(one, "elements"), "E-RULE", pointer + "/mismatches",
          "more mismatches than elements");
    // A NaN equals a NaN of the same bits alone, so equal outputs hold equally many.
    AddIf(bitwise && mismatches == 0 && IntAt(one, "nan_actual") != IntAt(one, "nan_expected"),
          "E-RULE", pointer + "/nan_actual", "equal bits with unequal counts of NaN");
    differs = differs || !WhyCaseDiffers(body_, one).empty();
  }
  const Doc& repeat = At(body_, "repeat_exact");
  AddIf(repeat.is_object() && IntAt(repeat, "launches") < 1, "E-PARITY-EMPTY",
        "/body/repeat_exact/launches", "nothing was repeated");
  AddIf(itself && (differs || IntAt(repeat, "distinct_digests") > 1), "E-REF-UNSTABLE",
        "/body/reference", "the reference differs from itself");
  AddIf(TextAt(body_, "expected") == "mismatch" && !cases.empty() && !differs, "E-RULE",
        "/body/expected", "a mismatch was expected, and nothing differs");
}

void Check::Sanitizer() {
  const Doc& wanted = At(At(envelope_, "subject"), "kernels");
  AddIf(wanted.empty(), "E-SAN-EMPTY", "/subject/kernels", "no kernel is named that it watched");
  for (const Doc& kernel : wanted) {
    AddIf(!Lists(kernel, 1), "E-SAN-EMPTY", "/body/kernels", "it saw no launch of ",
          TextAt(kernel, "symbol"));
  }
  const auto is_set = [](const Doc& value) {
    return value.is_boolean()          ? value.get<bool>()
           : value.is_number_integer() ? value.get<int64_t>() > 0
                                       : value.is_string() && !value.get<std::string>().empty();
  };
  const Doc& control = At(body_, "control");
  AddIf(!is_set(At(control, "planted")) || !is_set(At(control, "found")), "E-SAN-CONTROL",
        "/body/control", "the planted fault was not found in the same setting");
}

void Check::Processes() {
  const Doc& processes = At(body_, "process_ids");
  const Doc& invocation = At(envelope_, "invocation");
  const int64_t wanted = IntAt(body_, "processes");
  AddIf(static_cast<int64_t>(processes.size()) != wanted, "E-PROCESS", "/body/process_ids",
        processes.size(), " processes are named, ", wanted, " are claimed");
  std::set<std::tuple<std::string, int64_t, int64_t>> seen;
  for (size_t i = 0; i < processes.size(); ++i) {
    const std::string pointer = "/body/process_ids/" + std::to_string(i);
    const Doc& process = processes[i];
    const int64_t pid = IntAt(process, "pid", -1);
    const int64_t start = IntAt(process, "start_us", -1);
    if (!process.is_object() || pid < 0 || start < 0) {
      Add("E-PROCESS", pointer, "no {boot_id_sha256, pid, start_us}");
      continue;
    }
    AddIf(!seen.emplace(TextAt(process, "boot_id_sha256"), pid, start).second, "E-PROCESS", pointer,
          "the same process twice");
    AddIf(start < IntAt(invocation, "start_us") ||
              start > IntAt(invocation, "end_us", std::numeric_limits<int64_t>::max()),
          "E-TIME", pointer + "/start_us", "the process did not start within the run");
  }
}

void Check::Audit(const Doc& audit, const std::string& pointer, double tolerance, int64_t samples) {
  for (const char* key :
       {"same_input_ratio_e9", "seed_ratio_e9", "poison_left", "wall_ns", "event_ns"}) {
    if (At(audit, key).is_number_integer()) continue;
    return Add("E-EV-FORM", pointer, "an audit of a timing is missing or no number");
  }
  // Time with rotating inputs over time with one input again and again: above one, that one is
  // faster.
  const double same_ratio = Number(audit, "same_input_ratio_e9") / 1e9;
  if (same_ratio > kReplayRatio) {
    Add("E-AUDIT-REPLAY", pointer + "/same_input_ratio_e9", "an input that was seen before is ",
        Whole(same_ratio), " times faster");
  } else if (same_ratio > 1 + tolerance) {
    Add("E-AUDIT-INPUT", pointer + "/same_input_ratio_e9", "one repeated input is faster by ",
        Whole((same_ratio - 1) * 1e6), " ppm");
  }
  const double seed_ratio = Number(audit, "seed_ratio_e9") / 1e9;
  AddIf(seed_ratio > 1 + tolerance || seed_ratio < 1 / (1 + tolerance), "E-AUDIT-SEED",
        pointer + "/seed_ratio_e9", "another seed changes the time by ",
        Whole((seed_ratio - 1) * 1e6), " ppm");
  AddIf(IntAt(audit, "outputs_audited", 1) < 1, "E-AUDIT-OUTPUT", pointer + "/outputs_audited",
        "no output of a timed call was looked at");
  AddIf(!BoolAt(audit, "output_digests_ok"), "E-AUDIT-OUTPUT", pointer + "/output_digests_ok",
        "outputs of timed calls are not those of the checked arm");
  AddIf(!BoolAt(audit, "inputs_unchanged"), "E-AUDIT-MUTATED", pointer + "/inputs_unchanged",
        "timed calls wrote their inputs");
  const int64_t poison = IntAt(audit, "poison_left");
  AddIf(poison != 0, "E-AUDIT-POISON", pointer + "/poison_left", poison,
        " elements of the output were left as they were");
  const int64_t wall_ns = IntAt(audit, "wall_ns");
  const int64_t event_ns = IntAt(audit, "event_ns");
  if (event_ns <= 0 || wall_ns < event_ns) {
    Add("E-AUDIT-STREAM", pointer + "/event_ns", "the timer counts ", event_ns, " ns in ", wall_ns,
        " ns on the wall");
  } else if (static_cast<double>(wall_ns - kWallSlackNs - samples * kWallSampleNs) >
             kWallShare * static_cast<double>(event_ns)) {
    Add("E-AUDIT-STREAM", pointer + "/wall_ns",
        "the device worked on after the timed window: ", wall_ns, " ns on the wall, ", event_ns,
        " ns timed");
  }
}

void Check::Speed(const Doc& policy) {
  const Doc& statistics = At(body_, "statistics");
  const double floor = FloorPicoseconds(envelope_, policy);
  for (const char* key : {"baseline_p50_ps", "candidate_p50_ps"}) {
    const double time = Number(statistics, key);
    AddIf(time > 0 && time < floor, "E-IMPOSSIBLE", std::string("/body/statistics/") + key,
          Whole(time), " ps, and bytes and operations take ", Whole(floor), " ps at peak rates");
  }
  const double copy = Number(body_, "copy_bytes_per_s");
  const double bytes = Number(body_, "bytes");
  if (copy <= 0 || bytes <= 0) return;
  const double most = Number(statistics, "baseline_p50_ps") * copy / (bytes * 1e12);
  const double ratio = Number(statistics, "ratio_e9") / 1e9;
  AddIf(ratio > most * kExcess && ratio > 1, "W-EXCESS", "/body/statistics/ratio_e9", "a gain of ",
        Whole(ratio * 1e3),
        " thousandths; moving the bytes at the copy rate of the same run would give ",
        Whole(most * 1e3));
}

void Check::Pair(const Doc& policy) {
  const Doc& statistics = At(body_, "statistics");
  const Doc& workload = At(envelope_, "workload");
  const bool same_inputs = workload.is_object() && !At(workload, "input_sha256").empty();
  const Doc& device = At(At(At(envelope_, "environment"), "class"), "device");
  const int64_t samples_baseline = IntAt(statistics, "samples_baseline");
  const int64_t samples_candidate = IntAt(statistics, "samples_candidate");
  const int64_t processes = IntAt(statistics, "processes");
  const auto mismatch = [&](bool broken, const char* pointer, const std::string& message) {
    AddIf(broken, "E-PAIR-MISMATCH", pointer, message);
  };
  mismatch(!At(At(envelope_, "subject"), "baseline").is_object(), "/subject/baseline",
           "a pair without the subject of its baseline");
  mismatch(TextAt(body_, "baseline") == TextAt(body_, "candidate"), "/body/baseline",
           "both arms are " + TextAt(body_, "baseline"));
  mismatch(TextAt(envelope_, "vid") != TextAt(body_, "candidate"), "/body/candidate",
           "the candidate is not the variant of this evidence");
  mismatch(TextAt(body_, "mode") == "single" && IntAt(body_, "batch", 1) != 1, "/body/batch",
           "single launches in batches of " + At(body_, "batch").dump());
  mismatch(!same_inputs, "/workload/input_sha256",
           "nothing shows that both arms had the same inputs");
  mismatch(same_inputs && IntAt(workload, "calls", 1) != IntAt(body_, "calls", 1), "/body/calls",
           "another number of calls than the workload has");
  mismatch(samples_baseline != samples_candidate, "/body/statistics/samples_candidate",
           "the arms have unequal numbers of samples");
  mismatch(device.is_null() && TextAt(envelope_, "target") != "host", "/environment/class/device",
           "a timing of an unnamed device");
  AddIf(processes != IntAt(body_, "processes"), "E-SAMPLES", "/body/processes",
        "the statistics have ", processes, " processes, the body ", IntAt(body_, "processes"));
  Processes();
  Speed(policy);
  const double tolerance = std::max(kAuditTolerance, Number(statistics, "mde_e9") / 1e9);
  // One audit a process, or one for all.
  const Doc& audits = At(body_, "audits");
  const int64_t samples = samples_baseline + samples_candidate + 4 * IntAt(statistics, "aa_quads");
  if (!audits.is_array()) return Audit(audits, "/body/audits", tolerance, samples);
  AddIf(audits.empty(), "E-EV-FORM", "/body/audits", "a timing without audits");
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
void Check::Samples(const std::vector<Sample>& samples) {
  std::map<int, Counted> processes;
  for (const Sample& sample : samples) {
    Counted& counted = processes[sample.process];
    if (sample.role == 0) ++counted.arms[sample.arm];
    if (!counted.slots[{sample.role, sample.quad}].insert(sample.slot).second) {
      return Add("E-SAMPLES", kSamplesBlob, "a slot of a quad was taken twice");
    }
    if (sample.role == 1 && sample.arm != 0) {
      return Add("E-SAMPLES", kSamplesBlob, "an A/A control ran the candidate");
    }
  }
  const int64_t wanted = IntAt(body_, "processes");
  AddIf(static_cast<int64_t>(processes.size()) != wanted, "E-SAMPLES", kSamplesBlob, "samples of ",
        processes.size(), " processes, the body says ", wanted);
  for (const auto& [number, counted] : processes) {
    const auto& [baseline, candidate] = counted.arms;
    AddIf(baseline != candidate, "E-PAIR-MISMATCH", kSamplesBlob, "process ", number, " has ",
          baseline, " samples of the baseline and ", candidate, " of the candidate");
    int64_t whole = 0, quads = 0;
    for (const auto& [quad, slots] : counted.slots) {
      whole += slots.size() == 4;
      quads += quad.first == 0;
    }
    AddIf(whole != static_cast<int64_t>(counted.slots.size()) || quads != IntAt(body_, "quads"),
          "E-SAMPLES", kSamplesBlob, "process ", number, " has ", whole, " whole quads of ",
          counted.slots.size(), ", ", quads, " of the pair; the body says ", IntAt(body_, "quads"));
  }
}

void Check::Recompute(const std::string& pointer, const Doc& stored, const Doc& again) {
  AddIf(stored != again, "E-EV-RECOMPUTE", pointer, "stored ", stored.dump(), ", recomputed ",
        again.dump());
}

void Check::RecomputeSanitizer(const Store& store) {
  const std::string name = TextAt(body_, "log");
  if (name.empty()) return Add("E-EV-RECOMPUTE", "/body/log", "the counts have no log");
  const std::optional<std::string> text = ReadBlob(store, evidence_, name, findings_);
  if (!text) return;
  const std::optional<SanitizerLog> log = ParseSanitizerLog(*text, evidence_.file, findings_);
  if (!log) return;
  if (!log->tool.empty()) Recompute("/body/tool", At(body_, "tool"), log->tool);
  Recompute("/body/errors", At(body_, "errors"), log->errors);
  for (const auto& [key, count] : {std::pair("hazards_displayed", log->hazards_displayed),
                                   std::pair("hazards_total", log->hazards_total)}) {
    Recompute(std::string("/body/") + key, At(body_, key), count < 0 ? Doc(nullptr) : Doc(count));
  }
}

void Check::RecomputeResource(const Store& store) {
  const Doc& kernels = At(body_, "kernels");
  const std::string target = TextAt(envelope_, "target");
  std::map<std::string, PtxasKernel> reported;  // by symbol; the last report counts
  bool found = false;
  for (const Doc& blob : At(envelope_, "blobs")) {
    const std::string name = TextAt(blob, "name");
    if (!name.ends_with(".log")) continue;
    const std::optional<std::string> text = ReadBlob(store, evidence_, name, findings_);
    if (!text) return;
    found = true;
    // One log may hold several targets; each is a report of its own.
    for (const PtxasKernel& kernel : ParsePtxasLog(*text, evidence_.file, findings_)) {
      if (kernel.target == target) reported[kernel.symbol] = kernel;
    }
  }
  if (!found) return Add("E-EV-RECOMPUTE", "/body/kernels", "no log of ptxas gives these numbers");
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string pointer = "/body/kernels/" + std::to_string(i);
    const std::string symbol = TextAt(kernels[i], "symbol");
    const auto kernel = reported.find(symbol);
    if (kernel == reported.end()) {
      Add("E-EV-RECOMPUTE", pointer + "/symbol", "the log has no ", symbol, " for ", target);
      continue;
    }
    const PtxasKernel& again = kernel->second;
    for (const auto& [key, value] :
         {std::pair("registers", again.registers), std::pair("stack_bytes", again.stack_bytes),
          std::pair("spill_store_bytes", again.spill_store_bytes),
          std::pair("spill_load_bytes", again.spill_load_bytes),
          std::pair("static_shared_bytes", again.static_shared_bytes),
          std::pair("barriers", again.barriers)}) {
      Recompute(pointer + "/" + key, At(kernels[i], key), value);
    }
  }
}

void Check::RecomputeStatistics(const Store& store, bool pair) {
  const Doc& stored = At(body_, "statistics");
  const std::vector<Sample> samples = ReadSamples(store, evidence_, findings_);
  if (samples.empty()) return;
  const auto seed = static_cast<uint64_t>(IntAt(stored, "bootstrap_seed"));
  const Doc again =
      pair ? PairStatisticsDoc(AnalysePair(samples, seed)) : SingleStatisticsDoc(samples);
  const std::string pointer = "/body/statistics";
  if (!stored.is_object()) return Add("E-EV-RECOMPUTE", pointer, "there are no statistics");
  // Every field of either.
  for (const auto& [key, value] : again.items()) {
    Recompute(pointer + "/" + PointerToken(key), At(stored, key), value);
  }
  for (const auto& [key, value] : stored.items()) {
    AddIf(!again.contains(key), "E-EV-RECOMPUTE", pointer + "/" + PointerToken(key),
          "nothing gives this number");
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
  const int64_t unwritten = IntAt(parity_case, "unwritten");
  const int64_t nan_actual = IntAt(parity_case, "nan_actual");
  const int64_t nan_expected = IntAt(parity_case, "nan_expected");
  if (elements < 1) return "nothing was compared";
  if (unwritten > 0) return Message(unwritten, " elements were not written");
  if (IntAt(parity_case, "guard_faults") > 0) return "it wrote outside its output";
  if (!BoolAt(parity_case, "inputs_unchanged")) return "it wrote its inputs";
  if (TextAt(body, "mode") == "bitwise") {
    if (mismatches == 0) return {};
    return Message(mismatches, " of ", elements, " elements differ, the first at ",
                   At(parity_case, "first_index").dump());
  }
  if (nan_actual != nan_expected) {
    return Message(nan_actual, " NaN where ", nan_expected, " were expected");
  }
  const Doc& error = At(parity_case, "rel_l2_e9");
  const int64_t bound = IntAt(body, "bound_e9");
  if (error.is_number_integer() && error.get<int64_t>() <= bound) return {};
  return Message("relative error ", error.dump(), "e-9, the bound is ", bound, "e-9");
}

double FloorPicoseconds(const Doc& envelope, const Doc& policy) {
  const Doc& body = At(envelope, "body");
  const Doc& machine = At(At(policy, "architectures"), TextAt(envelope, "target"));
  double floor = 0;
  for (const auto& [amount, peak] :
       {std::pair("bytes", "peak_bytes_per_s"), std::pair("operations", "peak_ops_per_s")}) {
    // The policy's rate: what a run says of its own peak proves nothing.
    const auto rate = static_cast<double>(IntAt(machine, peak, IntAt(body, peak)));
    if (rate > 0) floor = std::max(floor, Number(body, amount) / rate * 1e12);
  }
  return floor;
}

std::vector<Sample> ReadSamples(const Store& store, const Evidence& evidence, Findings& findings) {
  const std::string name = TextAt(At(evidence.json, "body"), "samples_blob");
  const std::optional<std::string> packed = ReadBlob(store, evidence, name, findings);
  if (!packed) return {};
  std::string reason;
  std::vector<Sample> samples = UnpackSamples(*packed, reason);
  Check(evidence, findings).AddIf(!reason.empty(), "E-SAMPLES", kSamplesBlob, reason);
  return samples;
}

void CheckEnvelope(const Evidence& evidence, const Doc& policy, Findings& findings) {
  Check check(evidence, findings);
  const std::string kind = TextAt(evidence.json, "kind");
  check.Origin();
  if (TextAt(evidence.json, "origin") == "measured" && kind != "failure")
    CheckDeclared(evidence, findings);
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
  const std::string kind = TextAt(evidence.json, "kind");
  const std::string samples_blob = TextAt(At(evidence.json, "body"), "samples_blob");
  for (const Doc& blob : At(evidence.json, "blobs")) {
    // Samples are read below; of the others their bytes are compared.
    const std::string name = TextAt(blob, "name");
    if (name != samples_blob) ReadBlob(store, evidence, name, findings);
  }
  if (kind != "timing_pair" && kind != "timing_single") return;
  const std::vector<Sample> samples = ReadSamples(store, evidence, findings);
  if (samples.empty() || kind == "timing_single") return;
  Check check(evidence, findings);
  check.Samples(samples);
  const double floor = FloorPicoseconds(evidence.json, policy);
  for (const Sample& sample : samples) {
    if (static_cast<double>(sample.picoseconds) >= floor) continue;
    return check.Add("E-IMPOSSIBLE", kSamplesBlob, "a sample of ", sample.picoseconds,
                     " ps, and bytes and operations take ", Whole(floor), " ps at peak rates");
  }
}

void RecomputeEvidence(const Store& store, const Evidence& evidence, Findings& findings) {
  const std::string kind = TextAt(evidence.json, "kind");
  if (TextAt(evidence.json, "origin") == "imported") return;
  Check check(evidence, findings);
  if (kind == "sanitizer") check.RecomputeSanitizer(store);
  if (kind == "resource") check.RecomputeResource(store);
  if (kind == "timing_pair" || kind == "timing_single") {
    check.RecomputeStatistics(store, kind == "timing_pair");
  }
}

}  // namespace h3rt::lab
