// One table of exit codes for the whole program.
#pragma once

#include "h3rt/base/status.h"

namespace h3rt {

enum class ExitCode : int {
  kDone = 0,
  kAnswerIsNo = 1,  // it ran: findings, mismatch, gate failed
  kInvalidArgument = 2,
  kNotFoundOrIo = 3,
  kFailedPrecondition = 4,  // no device, driver or tool
  kUnimplemented = 5,
  kResourceExhausted = 6,
  kDataLoss = 7,  // corrupt file, failed hash
  kCancelled = 8,
  kInconclusive = 9,
  kNothingCompared = 10,  // nothing was compared or measured
  kLocked = 11,
  kRefusedClosedWork = 12,
  kInternal = 70,
};

// The exit code of a status code. Statuses made elsewhere (kAborted: locked; kOutOfRange: invalid)
// have a place too; what has none is our own fault and exits 70.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace h3rt
