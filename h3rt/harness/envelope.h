// The envelope of measured evidence, the same for every command that measures.
#pragma once

#include <string>
#include <vector>

#include "h3rt/base/experiment.h"
#include "h3rt/ledger/document.h"

namespace h3rt::lab {

// The program that runs, empty where the system does not tell.
std::string PathOfThisProgram();

// What a run was, as far as the envelope speaks of it.
struct MeasuredRun {
  const char* kind = "";
  std::string experiment;
  const ExperimentArm* arm = nullptr;
  std::string target;  // "sm_90a" or "host"
  Doc environment;     // no object: that of the host alone
  std::vector<std::string> argv;
  int64_t start_us = 0, end_us = 0;
  int exit_code = 0;
  int signal = 0;  // 0: it ended by itself
  int64_t peak_rss_bytes = 0;
  std::string policy_digest;
};

// `subject` of an arm without a baseline: sources, build, program and the machine code of its
// kernels for `target`.
Doc SubjectOf(const ExperimentArm& arm, const std::string& target);
// Without workload, plan and body.
Doc EnvelopeOf(const MeasuredRun& run);

}  // namespace h3rt::lab
