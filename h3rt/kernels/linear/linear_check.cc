#include "h3rt/kernels/linear/linear_check.h"

#include "h3rt/cpu/expect.h"

namespace h3rt {

absl::Status CheckLinear(const LinearParams& params) {
  ArgumentCheck check("linear");
  const ConstTensorView& w = params.weight;
  check.Rank("x", params.x, 2);
  check.That(w.rank() == 2 || w.rank() == 3, "weight", "shape " + w.shape().ToString(),
             "rank 2 or 3");
  if (!check.ok()) return check.status();
  const int64_t k = params.x.dim(1);
  const int64_t n = w.rank() == 2 ? w.dim(0) : w.dim(0) * w.dim(1);
  check.That(w.dim(w.rank() - 1) == k, "weight", "shape " + w.shape().ToString(),
             std::to_string(k) + " columns, as x has");
  check.Float32("x", params.x);
  check.Weight("weight", w);
  check.Float32("y", params.y);
  check.Dims("y", params.y, {params.x.dim(0), n});
  check.UnitStride("x", params.x);
  check.UnitStride("weight", w);
  check.UnitStride("y", params.y);
  check.NoSelfOverlap("y", params.y);
  check.Apart("y", params.y, "x", params.x);
  check.Apart("y", params.y, "weight", w);
  if (!params.bias.is_null()) {
    check.Weight("bias", params.bias);
    check.That(params.bias.rank() == 1 || params.bias.rank() == 2, "bias",
               "shape " + params.bias.shape().ToString(), "rank 1 or 2");
    if (check.ok() && params.bias.rank() == 2) {
      check.That(w.rank() == 3, "bias", "rank 2", "rank 1, as the weight has two dimensions");
      if (check.ok()) check.Dims("bias", params.bias, {w.dim(0), w.dim(1)});
    } else if (check.ok()) {
      check.Dims("bias", params.bias, {n});
    }
    check.Apart("y", params.y, "bias", params.bias);
  }
  return check.status();
}

}  // namespace h3rt
