#include "h3rt/num/fp8_scaled.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "h3rt/num/e4m3.h"
#include "h3rt/num/row_scales.h"

namespace h3rt {

absl::Status DequantizeFp8Scaled(Fp8Kind kind, std::span<const uint8_t> codes, int64_t rows,
                                 int64_t cols, std::span<const float> scales,
                                 std::span<float> out) {
  H3RT_RETURN_IF_ERROR(CheckScaledMatrix(rows, cols, codes.size(), scales, out.size()));
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* from = codes.data() + row * cols;
    float* to = out.data() + row * cols;
    if (kind == Fp8Kind::kE4m3) {
      WidenE4m3(from, to, cols);
    } else {
      WidenE5m2(from, to, cols);
    }
    const float scale = RowScale(scales, row);
    for (int64_t k = 0; k < cols; ++k) {
      if (!std::isfinite(to[k])) {
        return DataLoss({.what = "FP8 code",
                         .got = std::to_string(to[k]),
                         .wanted = "a finite number",
                         .where = "row " + std::to_string(row) + ", column " + std::to_string(k)});
      }
      to[k] *= scale;
    }
  }
  return absl::OkStatus();
}

}  // namespace h3rt
