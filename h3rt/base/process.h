// Another program, run with limits and without a shell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/status.h"

namespace h3rt {

struct ProgramOptions {
  int64_t timeout_ms = 300000;
  uint64_t address_space_bytes = 0;           // of each process it starts; 0: no limit
  uint64_t output_bytes = uint64_t{8} << 20;  // kept of each stream; the rest is read and dropped
  std::string folder = {};                    // to run in; empty: here
  std::vector<std::pair<std::string, std::string>> variables = {};  // added to our own
  const CancelToken* cancel = nullptr;
};

struct ProgramResult {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
  bool cut = false;                  // a stream was longer than output_bytes
  int64_t start_ns = 0, end_ns = 0;  // UTC since 1970
  int64_t wall_ns = 0;               // steady clock
  int64_t peak_rss_bytes = 0;        // the largest of the processes it waited for
  bool ok() const { return exit_code == 0 && signal == 0 && !timed_out; }
};

// Runs argv[0] (a path, or a name looked up in PATH) in a process group of its own with an empty
// stdin, and ends the whole group when the time is up, when it is cancelled (kCancelled), and when
// the program itself has ended. A program that cannot be started is kNotFound or kUnavailable; one
// that failed is a result.
absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& argv,
                                         const ProgramOptions& options = {});

// The path of a program: in PATH, then in `folders`.
std::optional<std::string> FindProgram(const std::string& name,
                                       const std::vector<std::string>& folders = {});
// nvcc, ncu, compute-sanitizer: also where the toolkit installs itself.
std::optional<std::string> FindCudaProgram(const std::string& name);
// The toolkit's version and build, as evidence keeps it: "13.0.88
// cuda_13.0.r13.0/compiler.36424714_0".
absl::StatusOr<std::string> NvccVersion(const std::string& nvcc);

}  // namespace h3rt
