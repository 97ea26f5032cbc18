#include "h3rt/kernels/conv/conv_check.h"

#include "h3rt/cpu/expect.h"

namespace h3rt {
namespace {

constexpr const char* kAxis[3] = {"time", "height", "width"};

void CheckBias(ArgumentCheck& check, const ConstTensorView& bias, int64_t channels,
               const TensorView& y) {
  if (bias.is_null()) return;
  check.Weight("bias", bias);
  check.Dims("bias", bias, {channels});
  check.Contiguous("bias", bias);
  check.Apart("y", y, "bias", bias);
}

// The output extent of one axis, or -1 with a fault reported. Sums are checked for overflow:
// strides, dilations and pads may come from a file.
int64_t OutputExtent(ArgumentCheck& check, const Conv3dParams& params, int axis) {
  const auto a = static_cast<size_t>(axis);
  const int64_t stride = params.stride[a];
  const int64_t dilation = params.dilation[a];
  const int64_t kernel = params.weight.dim(2 + axis);
  const std::string where = std::string(" in ") + kAxis[axis];
  check.That(stride >= 1, "stride" + where, std::to_string(stride), "1 or more");
  check.That(dilation >= 1, "dilation" + where, std::to_string(dilation), "1 or more");
  check.That(kernel >= 1, "kernel" + where, std::to_string(kernel), "1 or more");
  check.That(params.pad_begin[a] >= 0 && params.pad_end[a] >= 0, "padding" + where,
             std::to_string(params.pad_begin[a]) + " and " + std::to_string(params.pad_end[a]),
             "0 or more");
  if (!check.ok()) return -1;
  int64_t padded = params.x.dim(1 + axis);
  int64_t reach = 0;
  const bool fits = !__builtin_add_overflow(padded, params.pad_begin[a], &padded) &&
                    !__builtin_add_overflow(padded, params.pad_end[a], &padded) &&
                    !__builtin_mul_overflow(dilation, kernel - 1, &reach);
  check.That(fits && reach < padded, "kernel reach" + where, std::to_string(reach),
             "less than the padded extent, " + std::to_string(padded));
  if (!check.ok()) return -1;
  return (padded - reach - 1) / stride + 1;
}

}  // namespace

absl::Status CheckConv3d(const Conv3dParams& params) {
  ArgumentCheck check("conv3d");
  check.Rank("x", params.x, 4);
  check.Rank("weight", params.weight, 5);
  if (!check.ok()) return check.status();
  check.Float32("x", params.x);
  check.Weight("weight", params.weight);
  check.Float32("y", params.y);
  check.That(params.weight.dim(1) == params.x.dim(0), "weight",
             "shape " + params.weight.shape().ToString(),
             std::to_string(params.x.dim(0)) + " input channels, as x has");
  int64_t out[3] = {};
  for (int axis = 0; axis < 3; ++axis) out[axis] = OutputExtent(check, params, axis);
  if (!check.ok()) return check.status();
  check.Dims("y", params.y, {params.weight.dim(0), out[0], out[1], out[2]});
  check.Contiguous("x", params.x);
  check.Contiguous("weight", params.weight);
  check.Contiguous("y", params.y);
  check.Apart("y", params.y, "x", params.x);
  check.Apart("y", params.y, "weight", params.weight);
  CheckBias(check, params.bias, params.weight.dim(0), params.y);
  return check.status();
}

absl::Status CheckConvTranspose1d(const ConvTranspose1dParams& params) {
  ArgumentCheck check("conv_transpose1d");
  check.Rank("x", params.x, 2);
  check.Rank("weight", params.weight, 3);
  if (!check.ok()) return check.status();
  const int64_t n = params.x.dim(1);
  const int64_t kernel = params.weight.dim(2);
  check.Float32("x", params.x);
  check.Weight("weight", params.weight);
  check.Float32("y", params.y);
  check.That(params.weight.dim(0) == params.x.dim(0), "weight",
             "shape " + params.weight.shape().ToString(),
             std::to_string(params.x.dim(0)) + " input channels, as x has");
  check.That(params.stride >= 1, "stride", std::to_string(params.stride), "1 or more");
  check.That(kernel >= 1, "kernel", std::to_string(kernel), "1 or more");
  check.That(n >= 1, "x", "shape " + params.x.shape().ToString(), "at least one sample");
  check.That(params.pad >= 0 && params.pad < kernel, "padding", std::to_string(params.pad),
             "from 0 to below the kernel, " + std::to_string(kernel));
  if (!check.ok()) return check.status();
  int64_t length = 0;
  const bool fits = !__builtin_mul_overflow(n - 1, params.stride, &length) &&
                    !__builtin_add_overflow(length, kernel - 2 * params.pad, &length);
  check.That(fits && length >= 1, "output length", std::to_string(length), "1 or more");
  if (!check.ok()) return check.status();
  check.Dims("y", params.y, {params.weight.dim(1), length});
  check.Contiguous("x", params.x);
  check.Contiguous("weight", params.weight);
  check.Contiguous("y", params.y);
  check.Apart("y", params.y, "x", params.x);
  check.Apart("y", params.y, "weight", params.weight);
  CheckBias(check, params.bias, params.weight.dim(1), params.y);
  return check.status();
}

}  // namespace h3rt
