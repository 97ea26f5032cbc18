#include "h3rt/lab/freshness.h"

#include "h3rt/base/hash.h"
#include "h3rt/lab/closure.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {
namespace {

FactsLookup LookupIn(const Store& store) {
  return [&store](const std::string& path) { return FactsOfFile(store.root, path); };
}

Cell CellOf(const absl::StatusOr<std::string>& now, const std::string& recorded) {
  if (recorded.empty()) return Cell::kUnknown;
  return now.ok() && *now == recorded ? Cell::kSame : Cell::kChanged;
}

// Source of one subject (the candidate's or the baseline's).
Cell SourceCell(const Store& store, const Doc& subject, std::string& why) {
  std::vector<std::string> roots;
  const Doc& paths = At(subject, "source_paths");
  for (size_t i = 0; paths.is_array() && i < paths.size(); ++i) {
    if (paths[i].is_string()) roots.push_back(paths[i].get<std::string>());
  }
  const std::string recorded = TextAt(subject, "source_digest");
  if (roots.empty() || recorded.empty()) return Cell::kUnknown;
  const absl::StatusOr<std::string> now = ClosureDigest(store, roots);
  if (!now.ok()) why = MessageOf(now.status());
  return CellOf(now, recorded);
}

// The document of an inspection is its source.
Cell DocumentCell(const Store& store, const Doc& body) {
  const std::string path = TextAt(body, "document");
  const std::string recorded = TextAt(body, "document_sha256");
  if (path.empty() || recorded.empty()) return Cell::kUnknown;
  if (!IsPlainPath(path)) return Cell::kChanged;
  return CellOf(Sha256OfFile(store.PathOf(path)), recorded);
}

// Whether the kernels' machine code, compiled now, is what it was. Unknown where that was not kept
// or cannot be compiled.
Cell BinaryCell(const Doc& envelope, const Doc& subject, const Recompile& recompile) {
  const Doc& kernels = At(subject, "kernels");
  if (!recompile || !kernels.is_array() || kernels.empty()) return Cell::kUnknown;
  for (const Doc& kernel : kernels) {
    if (TextAt(kernel, "code_sha256").empty()) return Cell::kUnknown;
  }
  Doc asked = envelope;
  asked["subject"] = subject;
  const auto code = recompile(asked);
  if (!code.ok()) return Cell::kUnknown;
  for (const Doc& kernel : kernels) {
    const auto found = code->find(TextAt(kernel, "symbol"));
    if (found == code->end() || found->second != TextAt(kernel, "code_sha256")) {
      return Cell::kChanged;
    }
  }
  return Cell::kSame;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ClosureOf(const Store& store,
                                                   const std::vector<std::string>& roots) {
  H3RT_ASSIGN_OR_RETURN(const Closure closure, CloseOver(roots, LookupIn(store)));
  std::vector<std::string> paths;
  for (const auto& [path, facts] : closure) paths.push_back(path);
  return paths;
}

absl::StatusOr<std::string> ClosureDigest(const Store& store,
                                          const std::vector<std::string>& roots) {
  H3RT_ASSIGN_OR_RETURN(const Closure closure, CloseOver(roots, LookupIn(store)));
  return DigestOfClosure(closure);
}

absl::StatusOr<std::string> HarnessDigest(const Store& store) {
  return DigestOfHarness(LookupIn(store));
}

Freshness FreshnessOf(const Store& store, const Evidence& evidence, const Doc& policy,
                      const Toolchain& toolchain) {
  const Doc& envelope = evidence.json;
  const Doc& subject = At(envelope, "subject");
  const Doc& baseline = At(subject, "baseline");
  const Doc& harness = At(envelope, "harness");
  const std::string kind = TextAt(envelope, "kind");
  const bool timing = kind.starts_with("timing_");
  const bool of_code = kind != "inspection" && kind != "failure";
  Freshness fresh;
  for (const char* name :
       {"source", "build", "binary", "inputs", "harness", "environment", "policy", "baseline"}) {
    fresh.cells[name] = Cell::kUnknown;
  }
  if (TextAt(envelope, "origin") == "imported") {
    fresh.reason = "imported: nothing of it can be compared with this tree";
    return fresh;
  }
  std::string missing;
  auto& cells = fresh.cells;
  cells["source"] = kind == "inspection" ? DocumentCell(store, At(envelope, "body"))
                                         : SourceCell(store, subject, missing);
  if (toolchain.build_digest) {
    cells["build"] = CellOf(toolchain.build_digest(TextAt(subject, "source_digest")),
                            TextAt(subject, "build_digest"));
  }
  const std::string generator = TextAt(At(envelope, "workload"), "generator");
  if (!generator.empty()) {
    const bool known = generator == kInputGenerator || generator == kGoldenGenerator;
    cells["inputs"] = known ? Cell::kSame : Cell::kChanged;
  }
  if (timing) {
    cells["harness"] =
        CellOf(DigestOfHarness(LookupIn(store), TextAt(envelope, "target") == "host"),
               TextAt(harness, "source_digest"));
  }
  cells["policy"] = CellOf(DigestOf(policy), TextAt(harness, "policy_digest"));
  if (baseline.is_object()) cells["baseline"] = SourceCell(store, baseline, missing);

  // Machine code decides where sources or flags moved, and is compiled only then. What ran also ran
  // the host's part of those sources (grids, pointers, choices), which no kernel's code shows, so
  // only what the compiler alone made is rescued.
  const Recompile recompile =
      (kind == "compile" || kind == "resource") && missing.empty() ? toolchain.recompile : nullptr;
  std::vector<std::string> rescued;
  if (cells["source"] == Cell::kChanged || cells["build"] == Cell::kChanged) {
    cells["binary"] = BinaryCell(envelope, subject, recompile);
    if (cells["binary"] == Cell::kSame) rescued.push_back("candidate");
  }
  const bool same_code = cells["binary"] == Cell::kSame;
  bool baseline_stale = cells["baseline"] == Cell::kChanged;
  if (baseline_stale && BinaryCell(envelope, baseline, recompile) == Cell::kSame) {
    baseline_stale = false;
    rescued.push_back("baseline");
  }
  const auto stale = [&](const std::string& reason) {
    fresh.reason = reason;
    return fresh;
  };
  if (cells["source"] == Cell::kChanged && !same_code) {
    return stale(missing.empty() ? "source: changed since" : "source: " + missing);
  }
  // Timings and resources are of one compiler and its flags; other evidence holds for the code.
  if (cells["build"] == Cell::kChanged && (timing || kind == "resource" || !same_code) && of_code) {
    return stale("build: compiler or flags differ");
  }
  if (cells["inputs"] == Cell::kChanged) return stale("inputs: another generator");
  if (cells["harness"] == Cell::kChanged) return stale("harness: what times has changed");
  if (timing && cells["harness"] == Cell::kUnknown) return stale("harness: not recorded");
  if (baseline_stale) return stale("baseline: its source changed since");
  if (cells["source"] == Cell::kUnknown && !subject.is_null() && of_code && kind != "fixture") {
    return stale("source: not recorded");
  }
  fresh.stale = false;
  for (const std::string& arm : rescued) {
    fresh.reason +=
        (fresh.reason.empty() ? "" : "; ") + arm + ": sources changed, machine code is the same";
  }
  return fresh;
}

}  // namespace h3rt::lab
