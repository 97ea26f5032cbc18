// What the formats with a scale a row (FP8 scaled, INT8) check and read alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "h3rt/base/status.h"

namespace h3rt {

// kInvalidArgument unless rows and cols are positive, `codes` and `out` count rows * cols elements,
// and `scales` holds one finite number, or one a row.
absl::Status CheckScaledMatrix(int64_t rows, int64_t cols, size_t codes,
                               std::span<const float> scales, size_t out);

inline float RowScale(std::span<const float> scales, int64_t row) {
  return scales.size() == 1 ? scales[0] : scales[static_cast<size_t>(row)];
}

}  // namespace h3rt
