#include "tests/fuzz/lab_entries.h"

#include <string_view>

#include "h3rt/base/check.h"
#include "h3rt/lab/cubin.h"
#include "h3rt/lab/harness.h"
#include "h3rt/lab/import.h"

namespace h3rt {
namespace {

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Findings can be printed, and their JSON is text of its own.
bool Accepted(const lab::Findings& findings) {
  for (const lab::Finding& finding : findings.Sorted()) {
    H3RT_CHECK(!lab::Findings::ToText(finding).empty());
  }
  H3RT_CHECK(!findings.ToJson().dump().empty());
  return findings.errors() == 0;
}

}  // namespace

bool FuzzPtxasLog(std::span<const std::byte> bytes) {
  lab::Findings findings;
  const auto kernels = lab::ParsePtxasLog(TextOf(bytes), "fuzz", findings);
  const bool accepted = Accepted(findings);
  H3RT_CHECK(!accepted || !kernels.empty());
  for (const lab::PtxasKernel& kernel : kernels) {
    if (!accepted) break;
    H3RT_CHECK(!kernel.symbol.empty() && !kernel.target.empty());
    H3RT_CHECK(kernel.registers >= 0 && kernel.stack_bytes >= 0);
    H3RT_CHECK(kernel.spill_store_bytes >= 0 && kernel.spill_load_bytes >= 0);
  }
  return accepted;
}

bool FuzzSanitizerLog(std::span<const std::byte> bytes) {
  lab::Findings findings;
  const auto log = lab::ParseSanitizerLog(TextOf(bytes), "fuzz", findings);
  const bool accepted = Accepted(findings);
  H3RT_CHECK(accepted == log.has_value());
  if (!log) return false;
  H3RT_CHECK(log->errors >= 0 && log->hazards_total >= log->hazards_displayed);
  H3RT_CHECK((log->tool == "racecheck") == (log->hazards_displayed >= 0));
  return true;
}

bool FuzzNcuCsv(std::span<const std::byte> bytes) {
  lab::Findings findings;
  const auto launches = lab::ParseNcuCsv(TextOf(bytes), "fuzz", findings);
  const bool accepted = Accepted(findings);
  H3RT_CHECK(!accepted || !launches.empty());
  for (const lab::Doc& launch : launches) {
    lab::Findings again;
    H3RT_CHECK(lab::ParseDocument(lab::CanonicalText(launch), "fuzz", 1, again).has_value());
  }
  return accepted;
}

bool FuzzBundle(std::span<const std::byte> bytes) {
  lab::Findings findings;
  const auto evidence = lab::ParseBundle(TextOf(bytes), "fuzz", findings);
  const bool accepted = Accepted(findings);
  H3RT_CHECK(accepted == evidence.has_value());
  if (!evidence) return false;
  // What was accepted packs to the same entries again.
  const absl::StatusOr<std::string> packed = lab::PackBundle(*evidence);
  H3RT_CHECK(packed.ok());
  const auto again = lab::ParseBundle(*packed, "fuzz", findings);
  H3RT_CHECK(again.has_value() && again->size() == evidence->size());
  for (size_t i = 0; i < evidence->size(); ++i) {
    H3RT_CHECK((*again)[i].envelope == (*evidence)[i].envelope);
    H3RT_CHECK((*again)[i].blobs == (*evidence)[i].blobs);
  }
  return true;
}

bool FuzzCubin(std::span<const std::byte> bytes) {
  const absl::StatusOr<lab::Cubin> cubin = lab::ParseCubin(TextOf(bytes), "fuzz");
  if (!cubin.ok()) {
    H3RT_CHECK(cubin.status().code() == absl::StatusCode::kDataLoss);
    return false;
  }
  for (const lab::CubinKernel& kernel : cubin->kernels) {
    H3RT_CHECK(lab::IsDigest(kernel.code_sha256));
    H3RT_CHECK(kernel.code_bytes >= 0 && static_cast<size_t>(kernel.code_bytes) <= bytes.size());
    H3RT_CHECK(kernel.max_threads > 0 && kernel.max_threads <= 1024);
    H3RT_CHECK(kernel.symbol.empty() || !lab::KernelName(kernel.symbol).empty());
  }
  return true;
}

}  // namespace h3rt
