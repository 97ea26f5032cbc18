#include "h3rt/kernels/activation/activation_check.h"

#include "h3rt/cpu/expect.h"

namespace h3rt {
namespace {

void CheckVector(ArgumentCheck& check, const char* name, const ConstTensorView& view, int64_t n,
                 const TensorView& y) {
  check.Float32(name, view);
  check.Dims(name, view, {n});
  check.Contiguous(name, view);
  check.Apart("y", y, name, view);
}

void CheckPair(ArgumentCheck& check, const ConstTensorView& x, const TensorView& y) {
  check.Float32("x", x);
  check.Float32("y", y);
  check.SameShape("y", y, x);
  check.Contiguous("x", x);
  check.Contiguous("y", y);
}

}  // namespace

absl::Status CheckSwiGlu(const SwiGluParams& params) {
  ArgumentCheck check("swiglu");
  check.Rank("gate", params.gate, 2);
  if (!check.ok()) return check.status();
  check.Float32("gate", params.gate);
  check.Float32("value", params.value);
  check.Float32("y", params.y);
  check.SameShape("value", params.value, params.gate);
  check.SameShape("y", params.y, params.gate);
  check.UnitStride("gate", params.gate);
  check.UnitStride("value", params.value);
  check.UnitStride("y", params.y);
  check.NoSelfOverlap("y", params.y);
  check.SameOrApart("y", params.y, "gate", params.gate);
  check.SameOrApart("y", params.y, "value", params.value);
  return check.status();
}

absl::Status CheckActivate(const ConstTensorView& x, const TensorView& y) {
  ArgumentCheck check("activate");
  CheckPair(check, x, y);
  check.SameOrApart("y", y, "x", x);
  return check.status();
}

absl::Status CheckSnake(const SnakeParams& params) {
  ArgumentCheck check("snake");
  check.Rank("x", params.x, 2);
  if (!check.ok()) return check.status();
  CheckPair(check, params.x, params.y);
  check.SameOrApart("y", params.y, "x", params.x);
  CheckVector(check, "alpha", params.alpha, params.x.dim(0), params.y);
  return check.status();
}

absl::Status CheckAntiAliasedSnake(const AntiAliasedSnakeParams& params) {
  ArgumentCheck check("anti_aliased_snake");
  check.Rank("x", params.x, 2);
  if (!check.ok()) return check.status();
  CheckPair(check, params.x, params.y);
  check.Apart("y", params.y, "x", params.x);
  CheckVector(check, "alpha", params.alpha, params.x.dim(0), params.y);
  CheckVector(check, "beta", params.beta, params.x.dim(0), params.y);
  CheckVector(check, "up_filter", params.up_filter, kSnakeTaps, params.y);
  CheckVector(check, "down_filter", params.down_filter, kSnakeTaps, params.y);
  return check.status();
}

}  // namespace h3rt
