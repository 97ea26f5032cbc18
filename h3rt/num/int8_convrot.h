// INT8 matrices with one scale a row whose columns were rotated by a regular Hadamard matrix, group
// by group: W = (q * s) * R. Source: specification 10.3.
//
// R_1 = [1]; R_4 has the rows [1 1 1 -1], [1 1 -1 1], [1 -1 1 1], [-1 1 1 1]; R_4G = R_G (x) R_4;
// all divided by sqrt(G). R is symmetric and orthogonal, so R is its own inverse. Every row of the
// unscaled R sums to sqrt(G): it is not the Sylvester matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

// The largest group for which dequantisation sums exactly in float32 (127 * 65536 < 2^24).
inline constexpr int64_t kConvRotMaxGroup = 65536;

// kInvalidArgument unless `group` is a power of 4 from 1 (no rotation) to 65536 and divides `cols`.
absl::Status ValidateConvRotGroup(int64_t cols, int64_t group);

// Multiplies every group of every row by R, in place, in float32: turns weights or activations into
// rotated ones, and back. `values` is row-major with rows of `cols` elements.
absl::Status RotateConvRot(std::span<float> values, int64_t cols, int64_t group);

struct ConvRotTensor {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t group = 0;
  std::vector<int8_t> codes;
  std::vector<float> scales;  // one a row
};

// Rotates, then quantises each row: s = amax / 127 (at least 1e-30, so that a row of zeros is
// zeros), q = round half even of w / s, within +-127. kInvalidArgument for values that are not
// finite.
absl::StatusOr<ConvRotTensor> QuantizeConvRot(std::span<const float> weights, int64_t rows,
                                              int64_t cols, int64_t group);

// Dequantises `rows` rows into `out`; `scales` has one element or one a row. Group 1 is plain INT8.
// The integers are summed exactly, then multiplied once by s / sqrt(group): one rounding in all
// where the scale is not subnormal.
absl::Status DequantizeConvRot(std::span<const int8_t> codes, int64_t rows, int64_t cols,
                               int64_t group, std::span<const float> scales, std::span<float> out);

}  // namespace h3rt
