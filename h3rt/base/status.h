// Errors. Every function that can fail returns absl::Status or absl::StatusOr; nothing throws.
// A message says what was wrong, what it got, what it wanted, and where.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace h3rt {

// The parts of an error message: "<what>: got <got>, wanted <wanted> [<where>]".
// `where` is a file, a tensor key, a flag or a stage; empty parts are left out.
struct ErrorText {
  std::string what = {};
  std::string got = {};
  std::string wanted = {};
  std::string where = {};
};

std::string FormatError(const ErrorText& text);

// One maker a code, so that a caller cannot pick a code by number. The exit code of the program
// follows from the status code (exit_code.h).
[[nodiscard]] absl::Status InvalidArgument(const ErrorText& text);  // exit 2: a value is refused
[[nodiscard]] absl::Status NotFound(const ErrorText& text);         // exit 3: no such file or key
[[nodiscard]] absl::Status IoError(const ErrorText& text);          // exit 3: read or write failed
[[nodiscard]] absl::Status FailedPrecondition(const ErrorText& text);  // exit 4: no device, tool...
[[nodiscard]] absl::Status Unimplemented(const ErrorText& text);       // exit 5
[[nodiscard]] absl::Status ResourceExhausted(const ErrorText& text);   // exit 6: memory or disk
[[nodiscard]] absl::Status DataLoss(const ErrorText& text);            // exit 7: corrupt file
[[nodiscard]] absl::Status Cancelled(std::string_view where);          // exit 8
[[nodiscard]] absl::Status RefusedClosedWork(const ErrorText& text);   // exit 12
[[nodiscard]] absl::Status Internal(const ErrorText& text);            // exit 70: our own fault

// Turns errno into a status: ENOENT and the like to exit 3, ENOSPC, EDQUOT and ENOMEM to exit 6.
[[nodiscard]] absl::Status ErrnoStatus(int error_number, std::string_view action,
                                       std::string_view path);

// The same status with " [where]" added to its message; OK stays OK.
[[nodiscard]] absl::Status WithContext(const absl::Status& status, std::string_view where);

std::string MessageOf(const absl::Status& status);

}  // namespace h3rt

#define H3RT_CONCAT_INNER(a, b) a##b
#define H3RT_CONCAT(a, b) H3RT_CONCAT_INNER(a, b)

#define H3RT_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                 \
    if (::absl::Status h3rt_status_ = (expr); !h3rt_status_.ok()) return h3rt_status_; \
  } while (false)

#define H3RT_ASSIGN_OR_RETURN(lhs, expr) \
  H3RT_ASSIGN_OR_RETURN_IMPL(H3RT_CONCAT(h3rt_or_, __LINE__), lhs, expr)
#define H3RT_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return tmp.status();              \
  lhs = std::move(tmp).value()
