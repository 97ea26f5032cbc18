#include "h3rt/kernels/add_norm/add_norm_check.h"

#include <cmath>
#include <string>

#include "h3rt/cpu/expect.h"
#include "h3rt/device/tile/row_plan.h"

namespace h3rt {
namespace {

void CheckBf16(ArgumentCheck& check, const char* name, const ConstTensorView& view) {
  check.That(!view.is_null() || view.elements() == 0, name, "no data", "a tensor");
  check.That(view.dtype() == DType::kBF16, name, "dtype " + std::string(NameOf(view.dtype())),
             "BF16");
  check.Contiguous(name, view);
}

}  // namespace

absl::Status CheckAddNorm(const AddNormParams& params) {
  ArgumentCheck check("add_norm");
  check.Rank("x", params.x, 2);
  if (!check.ok()) return check.status();
  const int64_t c = params.x.dim(1);
  check.That(c >= 1 && c <= device::RowPlan::kMaxHidden, "x",
             "rows of " + std::to_string(c) + " elements",
             "1 to " + std::to_string(device::RowPlan::kMaxHidden));
  CheckBf16(check, "x", params.x);
  CheckBf16(check, "r", params.r);
  CheckBf16(check, "w", params.w);
  CheckBf16(check, "h", params.h);
  CheckBf16(check, "y", params.y);
  check.SameShape("r", params.r, params.x);
  check.SameShape("h", params.h, params.x);
  check.SameShape("y", params.y, params.x);
  check.Dims("w", params.w, {c});
  for (const auto& [name, view] : {std::pair{"x", params.x}, {"r", params.r}, {"w", params.w}}) {
    check.Apart("h", params.h, name, view);
    check.Apart("y", params.y, name, view);
  }
  check.Apart("y", params.y, "h", params.h);
  check.That(std::isfinite(params.eps) && params.eps >= 0.0, "eps", std::to_string(params.eps),
             "a finite number of 0 or more");
  return check.status();
}

}  // namespace h3rt
