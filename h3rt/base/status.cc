#include "h3rt/base/status.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace h3rt {
namespace {

absl::Status Make(absl::StatusCode code, const ErrorText& text) {
  return absl::Status(code, FormatError(text));
}

}  // namespace

std::string FormatError(const ErrorText& text) {
  std::string out = text.what;
  if (!text.got.empty()) out += ": got " + text.got;
  if (!text.wanted.empty()) out += (text.got.empty() ? ": wanted " : ", wanted ") + text.wanted;
  if (!text.where.empty()) out += " [" + text.where + "]";
  return out;
}

absl::Status InvalidArgument(const ErrorText& text) {
  return Make(absl::StatusCode::kInvalidArgument, text);
}
absl::Status NotFound(const ErrorText& text) { return Make(absl::StatusCode::kNotFound, text); }
absl::Status IoError(const ErrorText& text) { return Make(absl::StatusCode::kUnavailable, text); }
absl::Status FailedPrecondition(const ErrorText& text) {
  return Make(absl::StatusCode::kFailedPrecondition, text);
}
absl::Status Unimplemented(const ErrorText& text) {
  return Make(absl::StatusCode::kUnimplemented, text);
}
absl::Status ResourceExhausted(const ErrorText& text) {
  return Make(absl::StatusCode::kResourceExhausted, text);
}
absl::Status DataLoss(const ErrorText& text) { return Make(absl::StatusCode::kDataLoss, text); }
absl::Status Cancelled(std::string_view where) {
  return Make(absl::StatusCode::kCancelled, {.what = "cancelled", .where = std::string(where)});
}
absl::Status RefusedClosedWork(const ErrorText& text) {
  return Make(absl::StatusCode::kPermissionDenied, text);
}
absl::Status Internal(const ErrorText& text) { return Make(absl::StatusCode::kInternal, text); }

absl::Status ErrnoStatus(int error_number, std::string_view action, std::string_view path) {
  const ErrorText text{.what = "cannot " + std::string(action),
                       .got = std::strerror(error_number),
                       .where = std::string(path)};
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EFBIG:
      return ResourceExhausted(text);
    case ENOENT:
    case ENOTDIR:
      return NotFound(text);
    default:
      return IoError(text);
  }
}

absl::Status WithContext(const absl::Status& status, std::string_view where) {
  if (status.ok()) return status;
  return absl::Status(status.code(), MessageOf(status) + " [" + std::string(where) + "]");
}

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

}  // namespace h3rt
