// Which files of the project stand behind a source, and what they are: shared by the laboratory and
// by the stamp program, which knows neither stores nor experiments.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt::lab {

struct SourceFacts {
  std::string sha256;
  std::string code_sha256;            // of NormalisedSource()
  std::vector<std::string> includes;  // of the project, sorted, each once
};

// The project's own files that a text includes. Conservative: also under #if 0 and inside comments.
// An include by macro cannot be followed and is kInvalidArgument.
absl::StatusOr<std::vector<std::string>> ScanIncludes(std::string_view text,
                                                      std::string_view where);
// The text without comments and without space that separates nothing; literals stay as they are.
std::string NormalisedSource(std::string_view text);
absl::StatusOr<SourceFacts> FactsOfText(std::string_view text, std::string_view where);

// A path that names a file inside the project: relative, plain parts, no "..".
bool IsPlainPath(std::string_view path);

// Facts of files under `root`. Each file is read once a process, and again when it has changed.
absl::StatusOr<const SourceFacts*> FactsOfFile(const std::string& root, const std::string& path);

// Where closures take their facts from: files, or the table of a stamp.
using FactsLookup = std::function<absl::StatusOr<const SourceFacts*>(const std::string& path)>;
// The closure of a set of roots: path -> facts.
using Closure = std::map<std::string, const SourceFacts*>;
absl::StatusOr<Closure> CloseOver(const std::vector<std::string>& roots, const FactsLookup& lookup);
// SHA-256 over "<sha256>  <path>\n", sorted; of the normalised texts when `code` is set.
std::string DigestOfClosure(const Closure& closure, bool code = false);

// The sources that launch and time arms: a change makes timings stale. The statistics are not among
// them, since every number recomputes from the stored samples.
inline constexpr const char* kHarnessSources[] = {
    "h3rt/harness/gpu_device.cu",
    "h3rt/harness/gpu_problem.cc",
    "h3rt/harness/gpu_timing.cc",
};
// The same for arms that run on the host.
inline constexpr const char* kHostHarnessSources[] = {
    "h3rt/harness/host_problem.h",
    "h3rt/harness/host_timing.cc",
};
// Over the normalised texts of those and of the .cuh files they include, so that a comment or the
// formatter makes nothing stale.
absl::StatusOr<std::string> DigestOfHarness(const FactsLookup& lookup, bool host = false);

}  // namespace h3rt::lab
