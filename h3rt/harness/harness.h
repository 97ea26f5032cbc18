// Runs experiments where they stand and packs what came out. Host and compile kinds anywhere, the
// rest on a machine with a GPU, in a binary that was built with device code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/experiment.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// What the build knows of itself; made by h3rt_stamp when it was built, so that a machine without a
// repository can say what ran. `source_digests`: arm source root -> closure digest.
struct BuildStamp {
  std::string commit;        // 40 hex, empty outside a repository
  std::string dirty_digest;  // of the difference to it; empty: clean
  std::string harness_digest;
  std::string host_harness_digest;  // of what times arms on the host
  std::string toolkit;              // nvcc's build, empty without
  std::string host_compiler;
  std::string flags;  // of device code
};
const BuildStamp& Stamp();
// The closure digest of a set of roots as it was when this binary was built.
std::optional<std::string> StampedClosure(const std::vector<std::string>& roots);
// `build_digest` of a subject: the sources, how they were compiled and with what.
std::string BuildDigest(std::string_view source_digest, std::string_view flags,
                        std::string_view toolkit, std::string_view host_compiler);

struct RunRequest {
  std::string id;
  std::string vid;     // empty: the candidate
  std::string gate;    // "build", "correct", "isolated"; empty: all three that can run here
  std::string kind;    // one evidence kind only; empty: all of the gate
  std::string target;  // "sm_121a"; empty: the experiment's
  Doc plan;            // the pre-registration for timings, or null
  std::string policy_digest;
  int64_t processes = 6;
  int64_t quads = 60;
  int64_t repeat_launches = 1000;
};
// Progress goes to the log. What could not run is a status; what ran and failed is evidence.
absl::StatusOr<std::vector<NewEvidence>> RunExperiment(const Store& store,
                                                       const RunRequest& request,
                                                       const CancelToken& cancel);

// The hidden child of a run: `h3rt lab child FILE` does what the request file says, in a process of
// its own, and writes its answer beside it.
// `experiment`: that of the request, where it is in no list (tests).
absl::Status RunChild(const std::string& request_file, const Experiment* experiment = nullptr);

}  // namespace h3rt::lab
