// Closed work is not repeated unchanged, and opens again only by its rule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "h3rt/lab/lab.h"

namespace h3rt::lab {

// Digests of what would run, and of the toolchain here.
struct Candidate {
  std::string source_digest;      // of the closure; empty when its sources are not there
  std::string normalised_digest;  // without comments and space
  std::string toolkit;            // of nvcc, or of the build; empty without
};
// `closed.candidate_digest` of a record may be either digest.
Candidate CandidateOf(const Lab& lab, const Record& record, std::string_view vid);

// What a caller says when closed work is to be opened again.
struct ReopenClaim {
  std::string id;        // the closed record
  std::string because;   // one of its conditions
  int64_t log_seq = -1;  // a `reopen` entry that names the record and the condition
};
// Why `candidate`, run as `record`, is refused: RefusedClosedWork (exit 12) with the closed id and
// its rule. OK when nothing closed forbids it.
absl::Status WhyRefused(const Lab& lab, const Record& record, const Candidate& candidate,
                        const ReopenClaim& claim);
// The same for the command line.
absl::Status CheckClosedWork(const Lab& lab, const Record& record, std::string_view vid,
                             const std::string& reopen, const std::string& because,
                             int64_t log_seq);

// Blocked records, and closed ones that a new toolchain reopens, whose compiler is not the one of
// their evidence: "<id>: ...", sorted. Empty where no toolchain can be asked.
std::vector<std::string> RetryDue(const Lab& lab);
std::vector<std::string> RetryDue(const Lab& lab, const std::string& toolkit);

}  // namespace h3rt::lab
