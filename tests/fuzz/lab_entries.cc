#include "tests/fuzz/lab_entries.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "h3rt/base/check.h"
#include "h3rt/harness/cubin.h"
#include "h3rt/imports/import.h"
#include "h3rt/lab/tool_logs.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/log.h"
#include "h3rt/ledger/schema.h"

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

constexpr char kNow[] = "2026-12-01T00:00:00.000000000Z";

// What was read is what stands there, and its own HEAD goes with it.
bool CheckLog(std::string_view text) {
  lab::Findings ignored;
  const lab::Log log = lab::ParseLog(text, std::nullopt, kNow, ignored);
  std::string again;
  for (const lab::LogEntry& entry : log.entries) {
    again += lab::CanonicalText(entry.json) + "\n";
    H3RT_CHECK(entry.end == static_cast<int64_t>(again.size()));
  }
  H3RT_CHECK(text.substr(0, static_cast<size_t>(log.bytes)) == again);
  if (log.entries.empty()) return false;
  const lab::Doc head = {
      {"bytes", log.bytes}, {"hash", log.head_hash}, {"seq", log.entries.size()}};
  const std::string line = lab::CanonicalText(head) + "\n";
  H3RT_CHECK(lab::ParseHead(line) == head);
  lab::Findings findings;
  const lab::Log with_head = lab::ParseLog(text, line, kNow, findings);
  H3RT_CHECK(with_head.entries.size() == log.entries.size());
  lab::VerifyAgainst(with_head, head, "fuzz", ignored);
  return Accepted(findings);
}

// The same lines with seq, prev and hash as they have to be.
std::string MadeRight(std::string_view text) {
  std::string out;
  std::string prev(64, '0');
  int64_t seq = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lab::Findings ignored;
    std::optional<lab::Doc> entry = lab::ParseDocument(text.substr(0, end), "fuzz", 1, ignored);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!entry || !entry->is_object()) continue;
    (*entry)["seq"] = ++seq;
    (*entry)["prev"] = prev;
    prev = lab::LogHash(*entry);
    (*entry)["hash"] = prev;
    out += lab::CanonicalText(*entry) + "\n";
  }
  return out;
}

// What a rule of a record, a registry or evidence says of any document.
void CheckRules(const lab::Doc& document) {
  lab::Findings findings;
  lab::ValidateRecord(document, document, "fuzz", 1, findings);
  lab::UnexplainedNulls(document);
  lab::ValidatePolicy(document, findings);
  const lab::Store nowhere{.root = "/nonexistent"};
  const lab::Evidence evidence{
      .digest = lab::DigestOf(document), .file = "a/b/c.json", .json = document};
  if (lab::CheckEvidenceForm(evidence, findings)) {
    lab::ValidateEvidence(nowhere, evidence, document, findings);
    lab::RecomputeEvidence(nowhere, evidence, findings);
  }
  lab::Registry registry;
  registry.header = document;
  registry.records.push_back({.json = document, .line = 2});
  const std::map<std::string, lab::Evidence> all = {{evidence.digest, evidence}};
  lab::ValidateLinks(nowhere, registry, document, &all, true, findings);
  Accepted(findings);
}

}  // namespace

bool FuzzLabJson(std::span<const std::byte> bytes) {
  lab::Findings findings;
  const auto document = lab::ParseDocument(TextOf(bytes), "fuzz", 1, findings);
  const bool accepted = Accepted(findings);
  H3RT_CHECK(accepted == document.has_value());
  if (!document) return false;
  const std::string text = lab::CanonicalText(*document);
  lab::Findings again;
  H3RT_CHECK(lab::ParseDocument(text, "fuzz", 1, again) == document);
  CheckRules(*document);
  return true;
}

bool FuzzLog(std::span<const std::byte> bytes) {
  CheckLog(MadeRight(TextOf(bytes)));
  return CheckLog(TextOf(bytes));
}

bool FuzzSeedPage(std::span<const std::byte> bytes) {
  lab::Findings findings;
  const lab::SeedPage page = lab::ParseSeedPage(TextOf(bytes), "fuzz", findings);
  const bool accepted = Accepted(findings);
  int64_t rows = 0;
  for (const auto& [status, count] : page.counted) rows += count;
  H3RT_CHECK(rows == static_cast<int64_t>(page.rows.size()));
  H3RT_CHECK(!accepted || page.printed_total == rows);
  for (const lab::SeedRow& row : page.rows) {
    H3RT_CHECK(lab::IsId(row.id) && row.line > 0 && !row.evidence.empty());
  }
  return accepted;
}

bool FuzzSeedLog(std::span<const std::byte> bytes) {
  lab::Findings findings;
  const auto entries = lab::ParseSeedLog(TextOf(bytes), "fuzz", findings);
  const bool accepted = Accepted(findings);
  H3RT_CHECK(lab::WhyNotPrefix(entries, entries).empty());
  H3RT_CHECK(lab::WhyNotPrefix({}, entries).empty());
  H3RT_CHECK(!accepted || !entries.empty());
  return accepted;
}

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
