// An op's ordered list of implementations. The list says what *can* run, in order of preference;
// the last candidate is the reference. Every "no" carries its reason.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"

namespace h3rt {

template <typename Params>
struct Candidate {
  const char* name;
  // Empty: supports the problem. Otherwise the reason why not.
  std::string (*why_not)(const Params& params);
  absl::Status (*run)(const Params& params, const ExecContext& context);
};

// Runs the implementation that `context` asks for, or the first that supports the problem. An
// unknown name is kInvalidArgument with the names there are; no candidate is kUnimplemented with
// every reason.
template <typename Params>
absl::Status RunCandidate(std::string_view op, std::span<const Candidate<Params>> candidates,
                          const Params& params, const ExecContext& context) {
  const std::string_view asked = context.Impl(op);
  std::string reasons;
  std::string names;
  for (const Candidate<Params>& candidate : candidates) {
    names += (names.empty() ? "" : ", ") + std::string(candidate.name);
    if (!asked.empty() && asked != candidate.name) continue;
    const std::string reason = candidate.why_not(params);
    if (reason.empty()) return candidate.run(params, context);
    reasons += (reasons.empty() ? "" : "; ") + std::string(candidate.name) + ": " + reason;
  }
  if (reasons.empty()) {
    return InvalidArgument({.what = "implementation of " + std::string(op),
                            .got = std::string(asked),
                            .wanted = "one of " + names});
  }
  return Unimplemented(
      {.what = "no implementation of " + std::string(op) + " takes this problem", .got = reasons});
}

}  // namespace h3rt
