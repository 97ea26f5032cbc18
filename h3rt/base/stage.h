// Errors of work that belongs to a stage of the program.
#pragma once

#include <string_view>

#include "h3rt/base/status.h"

namespace h3rt {

// The same status with the stage it happened in. A cancel names the stage alone: which op of it saw
// the token first is chance.
[[nodiscard]] inline absl::Status InStage(const absl::Status& status, std::string_view stage) {
  if (status.code() == absl::StatusCode::kCancelled) return Cancelled(stage);
  return WithContext(status, stage);
}

}  // namespace h3rt
