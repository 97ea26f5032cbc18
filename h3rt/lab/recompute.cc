// Derived numbers against what they were derived from: with no tolerance.
#include "h3rt/lab/evidence_rules.h"
#include "h3rt/lab/stats.h"
#include "h3rt/lab/tool_logs.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

class Comparison {
 public:
  Comparison(const Evidence& evidence, Findings& findings)
      : evidence_(evidence), findings_(findings) {}

  void Add(const std::string& pointer, const std::string& message) {
    findings_.Add({.code = "E-EV-RECOMPUTE",
                   .file = evidence_.file,
                   .line = 1,
                   .pointer = pointer,
                   .message = message});
  }
  void Expect(const std::string& pointer, const Doc& stored, const Doc& again) {
    if (stored != again) Add(pointer, "stored " + stored.dump() + ", recomputed " + again.dump());
  }
  // Every field of either.
  void ExpectObject(const std::string& pointer, const Doc& stored, const Doc& again) {
    if (!stored.is_object()) return Add(pointer, "there are no statistics");
    for (const auto& [key, value] : again.items()) {
      Expect(pointer + "/" + PointerToken(key), At(stored, key), value);
    }
    for (const auto& [key, value] : stored.items()) {
      if (!again.contains(key)) Add(pointer + "/" + PointerToken(key), "nothing gives this number");
    }
  }

 private:
  const Evidence& evidence_;
  Findings& findings_;
};

void RecomputeSanitizer(const Store& store, const Evidence& evidence, Findings& findings) {
  const Doc& body = At(evidence.json, "body");
  Comparison compare(evidence, findings);
  const std::string name = TextAt(body, "log");
  if (name.empty()) return compare.Add("/body/log", "the counts have no log");
  const std::optional<std::string> text = ReadBlob(store, evidence, name, findings);
  if (!text) return;
  const std::optional<SanitizerLog> log = ParseSanitizerLog(*text, evidence.file, findings);
  if (!log) return;
  auto known = [](int64_t count) { return count < 0 ? Doc(nullptr) : Doc(count); };
  if (!log->tool.empty()) compare.Expect("/body/tool", At(body, "tool"), log->tool);
  compare.Expect("/body/errors", At(body, "errors"), log->errors);
  compare.Expect("/body/hazards_displayed", At(body, "hazards_displayed"),
                 known(log->hazards_displayed));
  compare.Expect("/body/hazards_total", At(body, "hazards_total"), known(log->hazards_total));
}

void RecomputeResource(const Store& store, const Evidence& evidence, Findings& findings) {
  const Doc& kernels = At(At(evidence.json, "body"), "kernels");
  const std::string target = TextAt(evidence.json, "target");
  Comparison compare(evidence, findings);
  std::vector<PtxasKernel> reported;
  bool found = false;
  for (const Doc& blob : At(evidence.json, "blobs")) {
    const std::string name = TextAt(blob, "name");
    if (!name.ends_with(".log")) continue;
    const std::optional<std::string> text = ReadBlob(store, evidence, name, findings);
    if (!text) return;
    found = true;
    // One log may hold several targets; each is a report of its own.
    for (PtxasKernel& kernel : ParsePtxasLog(*text, evidence.file, findings)) {
      if (kernel.target == target) reported.push_back(std::move(kernel));
    }
  }
  if (!found) return compare.Add("/body/kernels", "no log of ptxas gives these numbers");
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string pointer = "/body/kernels/" + std::to_string(i);
    const std::string symbol = TextAt(kernels[i], "symbol");
    const PtxasKernel* kernel = nullptr;
    for (const PtxasKernel& one : reported) {
      if (one.symbol == symbol) kernel = &one;
    }
    if (kernel == nullptr) {
      compare.Add(pointer + "/symbol", "the log has no " + symbol + " for " + target);
      continue;
    }
    const std::pair<const char*, int64_t> fields[] = {
        {"registers", kernel->registers},
        {"stack_bytes", kernel->stack_bytes},
        {"spill_store_bytes", kernel->spill_store_bytes},
        {"spill_load_bytes", kernel->spill_load_bytes},
        {"static_shared_bytes", kernel->static_shared_bytes},
        {"barriers", kernel->barriers}};
    for (const auto& [key, value] : fields) {
      compare.Expect(pointer + "/" + key, At(kernels[i], key), value);
    }
  }
}

}  // namespace

void RecomputeEvidence(const Store& store, const Evidence& evidence, Findings& findings) {
  const std::string kind = TextAt(evidence.json, "kind");
  if (TextAt(evidence.json, "origin") == "imported") return;
  if (kind == "sanitizer") return RecomputeSanitizer(store, evidence, findings);
  if (kind == "resource") return RecomputeResource(store, evidence, findings);
  if (kind != "timing_pair" && kind != "timing_single") return;
  const Doc& statistics = At(At(evidence.json, "body"), "statistics");
  const std::vector<Sample> samples = ReadSamples(store, evidence, findings);
  if (samples.empty()) return;
  const Doc again = kind == "timing_single"
                        ? SingleStatisticsDoc(samples)
                        : PairStatisticsDoc(AnalysePair(
                              samples, static_cast<uint64_t>(IntAt(statistics, "bootstrap_seed"))));
  Comparison(evidence, findings).ExpectObject("/body/statistics", statistics, again);
}

}  // namespace h3rt::lab
