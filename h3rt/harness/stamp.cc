#include <map>

#include "h3rt/harness/harness.h"
#include "h3rt/harness/stamp_data.h"
#include "h3rt/lab/closure.h"

namespace h3rt::lab {
namespace {

std::map<std::string, SourceFacts> StampedSources() {
  std::map<std::string, SourceFacts> sources;
  for (size_t i = 0; i < kStampData.source_count; ++i) {
    const StampedSource& entry = kStampData.sources[i];
    SourceFacts facts{entry.sha256, entry.code_sha256, {}};
    const std::string_view includes = entry.includes;
    for (size_t at = 0; at < includes.size();) {
      const size_t end = includes.find('\n', at);
      facts.includes.emplace_back(includes.substr(at, end - at));
      at = end + 1;
    }
    sources.emplace(entry.path, std::move(facts));
  }
  return sources;
}

}  // namespace

const BuildStamp& Stamp() {
  static const BuildStamp* const stamp =
      new BuildStamp{kStampData.commit,         kStampData.dirty_digest,
                     kStampData.harness_digest, kStampData.host_harness_digest,
                     kStampData.toolkit,        kStampData.host_compiler,
                     kStampData.flags};
  return *stamp;
}

std::optional<std::string> StampedClosure(const std::vector<std::string>& roots) {
  static const auto* const sources = new std::map<std::string, SourceFacts>(StampedSources());
  const absl::StatusOr<Closure> closure =
      CloseOver(roots, [](const std::string& path) -> absl::StatusOr<const SourceFacts*> {
        const auto found = sources->find(path);
        if (found == sources->end()) return NotFound({.what = "not stamped", .got = path});
        return &found->second;
      });
  if (!closure.ok()) return std::nullopt;
  return DigestOfClosure(*closure);
}

std::string BuildDigest(std::string_view source_digest, std::string_view flags,
                        std::string_view toolkit, std::string_view host_compiler) {
  return DigestOf(Doc{{"flags", flags},
                      {"host_compiler", host_compiler},
                      {"source_digest", source_digest},
                      {"toolkit", toolkit}});
}

}  // namespace h3rt::lab
