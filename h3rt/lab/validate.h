// The whole check of a store.
#pragma once

#include <map>
#include <string>

#include "h3rt/lab/freshness.h"
#include "h3rt/ledger/finding.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

struct ValidateOptions {
  bool filesystem = true;  // --no-fs: neither artifacts nor evidence nor sources are opened
  std::string group = {};  // only findings of records of this group
  std::string now = {};    // for time checks; empty: the clock
  Toolchain toolchain = {};
};
// Form, null rules, references, relations, artifacts, evidence, permitted statuses, manifest,
// claims of the README, log coverage, staleness. Reads only.
void Validate(const Store& store, const ValidateOptions& options, Findings& findings);

// Parts, also used by import and by commands that write.
void ValidateRecord(const Doc& record, const Doc& policy, std::string_view file, int64_t line,
                    Findings& findings);
// Envelope and body against their tables; false when something was found.
bool CheckEvidenceForm(const Evidence& evidence, Findings& findings);
// The rules of one piece of evidence that has its form, with its blobs.
void ValidateEvidence(const Store& store, const Evidence& evidence, const Doc& policy,
                      Findings& findings);
// What evidence does not share with the plan it names, as the log has it (`planned`, written at
// `planned_at`): experiment, gate, sizes, thresholds, and that the run came after. Empty: nothing.
std::string WhyNotPlanned(const Doc& envelope, const Doc& planned, const std::string& planned_at);
// Statistics against samples: E-EV-RECOMPUTE with field, stored and recomputed value.
void RecomputeEvidence(const Store& store, const Evidence& evidence, Findings& findings);
void ValidatePolicy(const Doc& policy, Findings& findings);
// Records among each other and with what they name: ids, relations, baselines, artifacts (only with
// `filesystem`) and evidence (null: not loaded, so not checked).
void ValidateLinks(const Store& store, const Registry& registry, const Doc& policy,
                   const std::map<std::string, Evidence>* evidence, bool filesystem,
                   Findings& findings);
// The evidence that a reference of 8 to 64 hex digits names; null when none or several.
const Evidence* ResolveEvidence(const std::map<std::string, Evidence>& evidence,
                                std::string_view reference);

// Freshness of every piece of evidence by digest; equal subjects are looked at once.
std::map<std::string, Freshness> FreshnessOfAll(const Store& store,
                                                const std::map<std::string, Evidence>& evidence,
                                                const Doc& policy, const Toolchain& toolchain = {});

}  // namespace h3rt::lab
