// Which implementations of which ops can be asked for by name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"

namespace h3rt {

struct OpImplementations {
  const char* op;
  std::vector<const char*> names;  // in order of preference; the last is the reference
};
std::span<const OpImplementations> OpTable();

// Entries "OP=NAME". kInvalidArgument for an entry of another form, an op named twice, and an op or
// implementation that does not exist (those that do are listed).
absl::StatusOr<ImplChoice> ParseImplChoice(const std::vector<std::string>& entries);

}  // namespace h3rt
