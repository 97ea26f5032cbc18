#include "h3rt/base/exit_code.h"

namespace h3rt {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kInvalidArgument;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAlreadyExists:
      return ExitCode::kNotFoundOrIo;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kFailedPrecondition;
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kUnimplemented;
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kResourceExhausted;
    case absl::StatusCode::kDataLoss:
      return ExitCode::kDataLoss;
    case absl::StatusCode::kCancelled:
      return ExitCode::kCancelled;
    case absl::StatusCode::kAborted:
      return ExitCode::kLocked;
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kRefusedClosedWork;
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace h3rt
