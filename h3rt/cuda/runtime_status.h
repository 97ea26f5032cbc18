// The CUDA runtime's errors as our statuses. Like every header here it needs no CUDA header, so
// that host code and its tools read it without the toolkit.
#pragma once

#include <string_view>

#include "h3rt/base/status.h"

namespace h3rt {

// OK for 0. Out of memory is kResourceExhausted; no device, no driver, a driver that is too old and
// no code for the device are kFailedPrecondition; anything else is kInternal. `action` says what
// was tried: "allocating 3 GiB".
absl::Status CudaStatus(int error, std::string_view action);

}  // namespace h3rt
