#include "h3rt/num/int8_convrot.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>

#include "h3rt/num/row_scales.h"

namespace h3rt {
namespace {

constexpr float kMinScale = 1e-30f;

// Multiplies one group by the unscaled R. The Kronecker power is one pass per base-4 digit of the
// index; a pass multiplies the four elements that differ in that digit only by R_4.
void ApplyUnscaled(float* __restrict x, int64_t group) {
  for (int64_t step = 1; step < group; step *= 4) {
    for (int64_t base = 0; base < group; base += 4 * step) {
      for (int64_t i = base; i < base + step; ++i) {
        const float a = x[i];
        const float b = x[i + step];
        const float c = x[i + 2 * step];
        const float d = x[i + 3 * step];
        x[i] = (a + b) + (c - d);
        x[i + step] = (a + b) - (c - d);
        x[i + 2 * step] = (a - b) + (c + d);
        x[i + 3 * step] = (b - a) + (c + d);
      }
    }
  }
}

// 1 / sqrt(group): a power of two, so multiplying by it is exact.
float InverseRoot(int64_t group) {
  return std::ldexp(1.0f, -(std::countr_zero(static_cast<uint64_t>(group)) / 2));
}

}  // namespace

absl::Status ValidateConvRotGroup(int64_t cols, int64_t group) {
  const bool power_of_4 = group > 0 && group <= kConvRotMaxGroup &&
                          std::has_single_bit(static_cast<uint64_t>(group)) &&
                          std::countr_zero(static_cast<uint64_t>(group)) % 2 == 0;
  if (!power_of_4) {
    return InvalidArgument({.what = "ConvRot group size",
                            .got = std::to_string(group),
                            .wanted = "a power of 4 from 1 to 65536"});
  }
  if (cols <= 0 || cols % group != 0) {
    return InvalidArgument({.what = "columns of a ConvRot matrix",
                            .got = std::to_string(cols),
                            .wanted = "a multiple of the group size " + std::to_string(group)});
  }
  return absl::OkStatus();
}

absl::Status RotateConvRot(std::span<float> values, int64_t cols, int64_t group) {
  H3RT_RETURN_IF_ERROR(ValidateConvRotGroup(cols, group));
  const auto n = static_cast<int64_t>(values.size());
  if (n % cols != 0) {
    return InvalidArgument({.what = "elements to rotate",
                            .got = std::to_string(n),
                            .wanted = "whole rows of " + std::to_string(cols)});
  }
  const float inverse_root = InverseRoot(group);
  for (int64_t begin = 0; begin < n; begin += group) {
    float* x = values.data() + begin;
    ApplyUnscaled(x, group);
    for (int64_t i = 0; i < group; ++i) x[i] *= inverse_root;
  }
  return absl::OkStatus();
}

absl::StatusOr<ConvRotTensor> QuantizeConvRot(std::span<const float> weights, int64_t rows,
                                              int64_t cols, int64_t group) {
  H3RT_RETURN_IF_ERROR(ValidateConvRotGroup(cols, group));
  const float one = 1.0f;
  H3RT_RETURN_IF_ERROR(
      CheckScaledMatrix(rows, cols, weights.size(), std::span(&one, 1), weights.size()));
  std::vector<float> rotated(weights.begin(), weights.end());
  H3RT_RETURN_IF_ERROR(RotateConvRot(rotated, cols, group));
  ConvRotTensor tensor;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.group = group;
  tensor.codes.resize(rotated.size());
  tensor.scales.resize(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = rotated.data() + row * cols;
    int8_t* to = tensor.codes.data() + row * cols;
    float amax = 0.0f;
    bool finite = true;
    for (int64_t k = 0; k < cols; ++k) {
      finite = finite && std::isfinite(from[k]);
      amax = std::max(amax, std::fabs(from[k]));
    }
    if (!finite) {
      return InvalidArgument({.what = "rotated weights",
                              .got = "a value that is not finite",
                              .where = "row " + std::to_string(row)});
    }
    const float scale = std::max(amax / 127.0f, kMinScale);
    tensor.scales[static_cast<size_t>(row)] = scale;
    for (int64_t k = 0; k < cols; ++k) {
      const float rounded = std::nearbyint(from[k] / scale);
      to[k] = static_cast<int8_t>(std::clamp(rounded, -127.0f, 127.0f));
    }
  }
  return tensor;
}

absl::Status DequantizeConvRot(std::span<const int8_t> codes, int64_t rows, int64_t cols,
                               int64_t group, std::span<const float> scales, std::span<float> out) {
  H3RT_RETURN_IF_ERROR(ValidateConvRotGroup(cols, group));
  H3RT_RETURN_IF_ERROR(CheckScaledMatrix(rows, cols, codes.size(), scales, out.size()));
  const float inverse_root = InverseRoot(group);
  for (int64_t row = 0; row < rows; ++row) {
    const int8_t* from = codes.data() + row * cols;
    float* to = out.data() + row * cols;
    for (int64_t k = 0; k < cols; ++k) to[k] = from[k];
    for (int64_t begin = 0; begin < cols; begin += group) ApplyUnscaled(to + begin, group);
    const float factor = RowScale(scales, row) * inverse_root;
    for (int64_t k = 0; k < cols; ++k) to[k] *= factor;
  }
  return absl::OkStatus();
}

}  // namespace h3rt
