#include "h3rt/kernels/rope/rope_check.h"

#include "h3rt/cpu/expect.h"

namespace h3rt {

absl::Status CheckRope(const RopeParams& params) {
  ArgumentCheck check("rope");
  check.Rank("x", params.x, 3);
  check.Rank("cos", params.cos, 2);
  if (!check.ok()) return check.status();
  const int64_t r = params.cos.dim(1);
  check.Float32("x", params.x);
  check.Float32("cos", params.cos);
  check.Float32("sin", params.sin);
  check.Dims("cos", params.cos, {params.x.dim(0), r});
  check.Dims("sin", params.sin, {params.x.dim(0), r});
  check.That(r <= params.x.dim(2) / 2, "cos", std::to_string(r) + " angles a row",
             "at most half of the head dimension, " + std::to_string(params.x.dim(2)));
  check.UnitStride("x", params.x);
  check.UnitStride("cos", params.cos);
  check.UnitStride("sin", params.sin);
  check.NoSelfOverlap("x", params.x);
  check.Apart("x", params.x, "cos", params.cos);
  check.Apart("x", params.x, "sin", params.sin);
  return check.status();
}

}  // namespace h3rt
