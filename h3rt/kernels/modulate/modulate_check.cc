#include "h3rt/kernels/modulate/modulate_check.h"

#include "h3rt/cpu/expect.h"

namespace h3rt {
namespace {

void CheckRowIndex(ArgumentCheck& check, std::span<const int32_t> row, int64_t s, int64_t rows) {
  check.That(static_cast<int64_t>(row.size()) == s, "row index",
             std::to_string(row.size()) + " entries", std::to_string(s) + ", one a row of x");
  if (!check.ok()) return;
  for (const int32_t r : row) {
    if (r < 0 || r >= rows) {
      check.That(false, "row index", std::to_string(r), "from 0 to below " + std::to_string(rows));
      return;
    }
  }
}

}  // namespace

absl::Status CheckModulate(const ModulateParams& params) {
  ArgumentCheck check("modulate");
  check.Rank("x", params.x, 2);
  check.Rank("shift", params.shift, 2);
  if (!check.ok()) return check.status();
  const int64_t c = params.x.dim(1);
  check.Float32("x", params.x);
  check.Float32("shift", params.shift);
  check.Float32("scale", params.scale);
  check.Float32("y", params.y);
  check.Dims("shift", params.shift, {params.shift.dim(0), c});
  check.SameShape("scale", params.scale, params.shift);
  check.SameShape("y", params.y, params.x);
  check.UnitStride("x", params.x);
  check.UnitStride("shift", params.shift);
  check.UnitStride("scale", params.scale);
  check.UnitStride("y", params.y);
  check.NoSelfOverlap("y", params.y);
  check.SameOrApart("y", params.y, "x", params.x);
  check.Apart("y", params.y, "shift", params.shift);
  check.Apart("y", params.y, "scale", params.scale);
  if (check.ok()) CheckRowIndex(check, params.row, params.x.dim(0), params.shift.dim(0));
  return check.status();
}

absl::Status CheckGatedResidual(const GatedResidualParams& params) {
  ArgumentCheck check("gated_residual");
  check.Rank("x", params.x, 2);
  if (!check.ok()) return check.status();
  check.Float32("x", params.x);
  check.Float32("y", params.y);
  check.SameShape("y", params.y, params.x);
  check.UnitStride("x", params.x);
  check.UnitStride("y", params.y);
  check.NoSelfOverlap("x", params.x);
  check.Apart("x", params.x, "y", params.y);
  if (!params.gate.is_null()) {
    check.Rank("gate", params.gate, 2);
    if (!check.ok()) return check.status();
    check.Float32("gate", params.gate);
    check.Dims("gate", params.gate, {params.gate.dim(0), params.x.dim(1)});
    check.UnitStride("gate", params.gate);
    check.Apart("x", params.x, "gate", params.gate);
    if (check.ok()) CheckRowIndex(check, params.row, params.x.dim(0), params.gate.dim(0));
  }
  return check.status();
}

}  // namespace h3rt
