#include "h3rt/harness/closed.h"

#include <algorithm>

#include "h3rt/base/process.h"
#include "h3rt/harness/harness.h"
#include "h3rt/lab/closure.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {
namespace {

// The compiler that would be used here.
std::string ToolkitHere() {
  const std::optional<std::string> nvcc = FindCudaProgram("nvcc");
  return nvcc ? NvccVersion(*nvcc).value_or(Stamp().toolkit) : Stamp().toolkit;
}

std::vector<std::string> SourcesOf(const Record& record, std::string_view vid) {
  std::vector<std::string> sources;
  if (const Experiment* experiment = FindExperiment(record.id())) {
    const size_t candidate = std::min<size_t>(experiment->arms.size(), 2);
    for (size_t i = 0; i < experiment->arms.size(); ++i) {
      const ExperimentArm& arm = experiment->arms[i];
      if (vid.empty() ? i + 1 == candidate : vid == arm.vid) {
        sources.insert(sources.end(), arm.sources.begin(), arm.sources.end());
      }
    }
    for (const CompileProbe& probe : experiment->probes) {
      if (vid.empty() || vid == probe.vid) sources.push_back(probe.source);
    }
  }
  if (sources.empty()) {
    for (const Doc& path : At(At(record.json, "source"), "paths")) {
      if (path.is_string()) sources.push_back(path.get<std::string>());
    }
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

// Valid evidence of a record that a compiler made or failed at.
std::vector<const Evidence*> CompilesOf(const Lab& lab, const Record& record) {
  std::vector<const Evidence*> found;
  for (const Doc& cited : At(record.json, "evidence")) {
    const auto at = lab.evidence.find(TextAt(cited, "sha256"));
    if (at == lab.evidence.end() || !BoolAt(cited, "valid")) continue;
    const std::string kind = TextAt(at->second.json, "kind");
    if (kind == "compile" || kind == "failure") found.push_back(&at->second);
  }
  return found;
}

std::string ToolkitOf(const Evidence& evidence) {
  return TextAt(At(At(evidence.json, "environment"), "class"), "toolkit");
}

absl::Status Refuse(const Record& closed, const std::string& why) {
  return RefusedClosedWork({.what = "closed work",
                            .got = why,
                            .wanted = TextAt(At(closed.json, "closed"), "rule"),
                            .where = closed.id()});
}

bool Says(const Doc& entry, const std::string& text) {
  for (const char* key : {"title", "hypothesis", "decision"}) {
    if (TextAt(entry, key).find(text) != std::string::npos) return true;
  }
  for (const char* key : {"actions", "authorizes"}) {
    for (const Doc& line : At(entry, key)) {
      if (line.is_string() && line.get<std::string>().find(text) != std::string::npos) return true;
    }
  }
  return false;
}

// Empty when the claim opens the record: its condition, in a reopen entry that names both.
std::string WhyClaimFails(const Lab& lab, const Record& closed, const ReopenClaim& claim) {
  if (claim.id != closed.id()) return "no --reopen names it";
  const Doc& conditions = At(At(At(closed.json, "closed"), "reopen"), "conditions");
  const bool listed = std::any_of(conditions.begin(), conditions.end(), [&](const Doc& condition) {
    return condition.is_string() && condition.get<std::string>() == claim.because;
  });
  if (!listed) {
    return "\"" + claim.because + "\" is none of its conditions";
  }
  for (const LogEntry& entry : lab.log.entries) {
    if (entry.seq() != claim.log_seq) continue;
    const Doc& records = At(entry.json, "records");
    const bool names =
        std::any_of(records.begin(), records.end(),
                    [&](const Doc& named) { return TextAt(named, "id") == closed.id(); }) ||
        Says(entry.json, closed.id());
    if (TextAt(entry.json, "kind") != "reopen" || !names || !Says(entry.json, claim.because)) break;
    return "";
  }
  return "log entry " + std::to_string(claim.log_seq) +
         " is no reopen entry that names the record and the condition";
}

// A new toolchain opens it; so does what was never compiled by this one.
bool ToolchainOpens(const Lab& lab, const Record& closed, const Candidate& candidate) {
  if (candidate.toolkit.empty()) return false;
  for (const Evidence* evidence : CompilesOf(lab, closed)) {
    if (ToolkitOf(*evidence) == candidate.toolkit &&
        TextAt(At(evidence->json, "subject"), "source_digest") == candidate.source_digest) {
      return false;
    }
  }
  return true;
}

}  // namespace

Candidate CandidateOf(const Lab& lab, const Record& record, std::string_view vid) {
  Candidate candidate;
  candidate.toolkit = ToolkitHere();
  const std::vector<std::string> sources = SourcesOf(record, vid);
  if (sources.empty()) return candidate;
  const absl::StatusOr<Closure> closure = CloseOver(
      sources, [&](const std::string& path) { return FactsOfFile(lab.store.root, path); });
  if (closure.ok()) {
    candidate.source_digest = DigestOfClosure(*closure);
    candidate.normalised_digest = DigestOfClosure(*closure, /*code=*/true);
  } else {
    candidate.source_digest = StampedClosure(sources).value_or("");
  }
  return candidate;
}

absl::Status WhyRefused(const Lab& lab, const Record& record, const Candidate& candidate,
                        const ReopenClaim& claim) {
  for (const Record& other : lab.registry.records) {
    const Doc& closed = At(other.json, "closed");
    if (closed.is_null()) continue;
    const Doc& reopen = At(closed, "reopen");
    const std::string digest = TextAt(closed, "candidate_digest");
    const bool unchanged = !digest.empty() && (digest == candidate.source_digest ||
                                               digest == candidate.normalised_digest);
    const bool same = other.id() == record.id();
    if (!unchanged && !same) continue;
    if (TextAt(reopen, "auto") == "toolchain" && ToolchainOpens(lab, other, candidate)) continue;
    if (TextAt(reopen, "mode") == "unchanged_forbidden") {
      if (unchanged) return Refuse(other, "the candidate is the one that was closed");
      if (digest.empty()) {
        return Refuse(other,
                      "its candidate is not recorded, so a change cannot be told: give the "
                      "work a new id with derived_from");
      }
      continue;
    }
    const std::string why = WhyClaimFails(lab, other, claim);
    if (!why.empty()) return Refuse(other, why);
  }
  return absl::OkStatus();
}

absl::Status CheckClosedWork(const Lab& lab, const Record& record, std::string_view vid,
                             const std::string& reopen, const std::string& because,
                             int64_t log_seq) {
  return WhyRefused(lab, record, CandidateOf(lab, record, vid), {reopen, because, log_seq});
}

std::vector<std::string> RetryDue(const Lab& lab, const std::string& toolkit) {
  std::vector<std::string> due;
  if (toolkit.empty()) return due;
  for (const Record& record : lab.registry.records) {
    const bool automatic = TextAt(At(At(record.json, "closed"), "reopen"), "auto") == "toolchain";
    if (TextAt(record.json, "status") != "temporarily_blocked" && !automatic) continue;
    std::string last;
    bool tried = false;
    for (const Evidence* evidence : CompilesOf(lab, record)) {
      const std::string was = ToolkitOf(*evidence);
      tried |= was == toolkit;
      if (!was.empty()) last = was;
    }
    if (tried || (last.empty() && !automatic)) continue;
    due.push_back(record.id() + ": " +
                  (last.empty() ? "never compiled here" : "blocked with " + last) + ", now " +
                  toolkit);
  }
  return due;
}

std::vector<std::string> RetryDue(const Lab& lab) { return RetryDue(lab, ToolkitHere()); }

}  // namespace h3rt::lab
