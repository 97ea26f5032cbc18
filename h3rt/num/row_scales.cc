#include "h3rt/num/row_scales.h"

#include <cmath>
#include <string>

namespace h3rt {

absl::Status CheckScaledMatrix(int64_t rows, int64_t cols, size_t codes,
                               std::span<const float> scales, size_t out) {
  int64_t elements = 0;
  if (rows <= 0 || cols <= 0 || __builtin_mul_overflow(rows, cols, &elements)) {
    return InvalidArgument({.what = "extents of a quantised matrix",
                            .got = std::to_string(rows) + " x " + std::to_string(cols),
                            .wanted = "positive, and a product below 2^63"});
  }
  const auto wanted = static_cast<size_t>(elements);
  if (codes != wanted || out != wanted) {
    return InvalidArgument(
        {.what = "elements of a quantised matrix",
         .got = std::to_string(codes) + " codes and " + std::to_string(out) + " outputs",
         .wanted = std::to_string(wanted)});
  }
  if (scales.size() != 1 && scales.size() != static_cast<size_t>(rows)) {
    return InvalidArgument({.what = "number of scales",
                            .got = std::to_string(scales.size()),
                            .wanted = "1 or " + std::to_string(rows)});
  }
  for (size_t i = 0; i < scales.size(); ++i) {
    if (std::isfinite(scales[i])) continue;
    return InvalidArgument({.what = "scale",
                            .got = std::to_string(scales[i]),
                            .wanted = "a finite number",
                            .where = "row " + std::to_string(i)});
  }
  return absl::OkStatus();
}

}  // namespace h3rt
