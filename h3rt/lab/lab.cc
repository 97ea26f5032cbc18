#include "h3rt/lab/lab.h"

#include "h3rt/lab/validate.h"
#include "h3rt/ledger/commit.h"

namespace h3rt::lab {

Case Lab::CaseOf(const Doc& record) const {
  return {.record = record,
          .evidence = evidence,
          .freshness = freshness,
          .policy = policy,
          .manifest = manifest,
          .store = store};
}

absl::Status StatusOfFindings(const Findings& findings) {
  if (findings.errors() == 0) return absl::OkStatus();
  const ErrorText text = {.what = std::to_string(findings.errors()) +
                                  " finding(s), first: " + GravestOf(findings)};
  switch (findings.exit_code()) {
    case ExitCode::kDataLoss:
      return DataLoss(text);
    case ExitCode::kNotFoundOrIo:
      return NotFound(text);
    default:
      return InvalidArgument(text);
  }
}

absl::StatusOr<Lab> OpenLab(const Store& store, const Toolchain& toolchain) {
  H3RT_RETURN_IF_ERROR(Recover(store).status());
  Lab lab{.store = store};
  Findings findings;
  std::optional<Doc> policy = LoadPolicy(store, findings);
  std::optional<Registry> registry = LoadRegistry(store, findings);
  std::optional<Log> log = LoadLog(store, findings);
  lab.evidence = LoadEvidence(store, findings);
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  if (!policy || !registry || !log) {
    return Internal(
        {.what = "a store loaded with neither content nor finding", .where = store.root});
  }
  lab.policy = *std::move(policy);
  lab.registry = *std::move(registry);
  lab.log = *std::move(log);
  if (const absl::StatusOr<std::string> text = ReadFile(store.PathOf(kManifestFile)); text.ok()) {
    lab.manifest = ParseDocument(*text, kManifestFile, 1, findings).value_or(Doc());
    H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  }
  lab.freshness = FreshnessOfAll(store, lab.evidence, lab.policy, toolchain);
  return lab;
}

absl::StatusOr<const Record*> RecordOf(const Registry& registry, std::string_view id) {
  if (const Record* record = registry.Find(id)) return record;
  const size_t dash = id.find('-');
  std::string near;
  for (const Record& record : registry.records) {
    const std::string other = record.id();
    const bool related = dash != std::string_view::npos && other.starts_with(id.substr(0, dash));
    if (!related && other.find(id) == std::string::npos) continue;
    near += (near.empty() ? "" : ", ") + other;
  }
  return NotFound({.what = "no such record",
                   .got = std::string(id),
                   .wanted = near.empty() ? "an id of the registry" : "one of " + near,
                   .where = kRegistryFile});
}

}  // namespace h3rt::lab
