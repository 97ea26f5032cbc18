// The whole check of a store.
#pragma once

#include <string>

#include "h3rt/lab/finding.h"
#include "h3rt/lab/store.h"

namespace h3rt::lab {

struct ValidateOptions {
  bool filesystem = true;  // --no-fs: neither artifacts nor evidence nor sources are opened
  std::string group = {};  // only findings of records of this group
  std::string now = {};    // for time checks; empty: the clock
};
// Form, null rules, references, relations, artifacts, evidence, permitted statuses, manifest,
// claims of the README, log coverage, staleness. Reads only.
void Validate(const Store& store, const ValidateOptions& options, Findings& findings);

// Parts, also used by import and by commands that write.
void ValidateRecord(const Doc& record, const Doc& policy, std::string_view file, int64_t line,
                    Findings& findings);
void ValidateEvidence(const Store& store, const Evidence& evidence, const Doc& policy,
                      Findings& findings);
// Statistics against samples: E-EV-RECOMPUTE with field, stored and recomputed value.
void RecomputeEvidence(const Store& store, const Evidence& evidence, Findings& findings);
void ValidatePolicy(const Doc& policy, Findings& findings);

// JSON Schema of all documents, from the tables that the validator uses.
Doc SchemaOf();

}  // namespace h3rt::lab
