#include "h3rt/kernels/norm/norm_check.h"

#include <cmath>

#include "h3rt/cpu/expect.h"

namespace h3rt {
namespace {

void CheckEps(ArgumentCheck& check, double eps) {
  check.That(std::isfinite(eps) && eps >= 0.0, "eps", std::to_string(eps),
             "a finite number of 0 or more");
}

void CheckVector(ArgumentCheck& check, const char* name, const ConstTensorView& view, int64_t c,
                 const TensorView& y) {
  check.Weight(name, view);
  check.Dims(name, view, {c});
  check.Contiguous(name, view);
  check.Apart("y", y, name, view);
}

void CheckRows(ArgumentCheck& check, const ConstTensorView& x, const TensorView& y) {
  check.Float32("x", x);
  check.Float32("y", y);
  check.SameShape("y", y, x);
  check.UnitStride("x", x);
  check.UnitStride("y", y);
  check.NoSelfOverlap("y", y);
  check.SameOrApart("y", y, "x", x);
}

}  // namespace

absl::Status CheckRmsNorm(const RmsNormParams& params) {
  ArgumentCheck check("rms_norm");
  check.That(params.x.rank() == 2 || params.x.rank() == 3, "x",
             "shape " + params.x.shape().ToString(), "rank 2 or 3");
  if (!check.ok()) return check.status();
  CheckRows(check, params.x, params.y);
  if (!params.weight.is_null()) {
    CheckVector(check, "weight", params.weight, params.x.dim(params.x.rank() - 1), params.y);
  }
  CheckEps(check, params.eps);
  return check.status();
}

absl::Status CheckLayerNorm(const LayerNormParams& params) {
  ArgumentCheck check("layer_norm");
  check.Rank("x", params.x, 2);
  if (!check.ok()) return check.status();
  CheckRows(check, params.x, params.y);
  CheckVector(check, "weight", params.weight, params.x.dim(1), params.y);
  CheckVector(check, "bias", params.bias, params.x.dim(1), params.y);
  CheckEps(check, params.eps);
  return check.status();
}

absl::Status CheckGroupNorm(const GroupNormParams& params) {
  ArgumentCheck check("group_norm");
  check.Rank("x", params.x, 4);
  if (!check.ok()) return check.status();
  CheckRows(check, params.x, params.y);
  check.Contiguous("x", params.x);
  check.Contiguous("y", params.y);
  const int64_t c = params.x.dim(0);
  check.That(params.groups >= 1 && c % params.groups == 0, "groups", std::to_string(params.groups),
             "a divisor of the channels, " + std::to_string(c));
  CheckVector(check, "weight", params.weight, c, params.y);
  CheckVector(check, "bias", params.bias, c, params.y);
  CheckEps(check, params.eps);
  return check.status();
}

}  // namespace h3rt
