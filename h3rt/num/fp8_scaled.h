// FP8 scaled matrices: W[n, k] = q[n, k] * s, with one float32 scale for all or one a row.
// Source: specification 10.1.
#pragma once

#include <cstdint>
#include <span>

#include "h3rt/base/status.h"

namespace h3rt {

enum class Fp8Kind : uint8_t { kE4m3, kE5m2 };

// Dequantises `rows` rows of `cols` codes into `out` of the same size. `scales` has one element or
// one a row. kInvalidArgument for sizes that do not fit and scales that are not finite; kDataLoss
// for a code that is not finite.
absl::Status DequantizeFp8Scaled(Fp8Kind kind, std::span<const uint8_t> codes, int64_t rows,
                                 int64_t cols, std::span<const float> scales, std::span<float> out);

}  // namespace h3rt
