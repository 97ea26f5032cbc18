// The inside of the harness, for its own files and tests.
#pragma once

#include <string>
#include <vector>

#include "h3rt/base/process.h"
#include "h3rt/harness/harness.h"

namespace h3rt::lab {

// The programs of a run. Tests put others in their place.
struct HarnessPrograms {
  std::vector<std::string> child;  // a request file is appended
  std::string sanitizer;           // compute-sanitizer; empty: not found
  std::string profiler;            // ncu; empty: not found
  int64_t timeout_ms = 900000;     // of one child
};
HarnessPrograms ThisProgram();

// The measured gates of an experiment, for the device that `environment` names.
absl::StatusOr<std::vector<NewEvidence>> RunMeasured(const HarnessPrograms& programs,
                                                     const Store& store,
                                                     const Experiment& experiment,
                                                     const RunRequest& request,
                                                     const CancelToken& cancel);

// A child writes <request>.answer: {"ok": true, "result", "environment", "target", "pid",
// "start_us"} or {"ok": false, "code", "message"}, and a timing <request>.samples.
inline constexpr char kAnswerSuffix[] = ".answer";
inline constexpr char kSamplesSuffix[] = ".samples";

}  // namespace h3rt::lab
