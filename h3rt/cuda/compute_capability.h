// The version number of a GPU's architecture, as the driver reports it: 9.0 is Hopper.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "h3rt/base/status.h"

namespace h3rt {

struct ComputeCapability {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

// "9.0".
std::string NameOf(const ComputeCapability& capability);

// Reads "<major>.<minor>": one to three digits, a dot, one digit, nothing else. Anything else is
// kInvalidArgument with `where` in the message.
absl::StatusOr<ComputeCapability> ParseComputeCapability(std::string_view text,
                                                         std::string_view where);

}  // namespace h3rt
