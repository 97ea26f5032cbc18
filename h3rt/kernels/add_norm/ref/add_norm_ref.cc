#include "h3rt/kernels/add_norm/ref/add_norm_ref.h"

#include "h3rt/kernels/add_norm/ref/float64_rows.h"
#include "h3rt/kernels/add_norm/ref/strict_rows.h"

namespace h3rt {
namespace {

const uint16_t* Bits(const ConstTensorView& view) { return view.as<uint16_t>(); }

}  // namespace

absl::Status AddNormStrict(const AddNormParams& params, const ExecContext& context) {
  const int64_t c = params.x.dim(1);
  return context.ParallelFor(params.x.dim(0), [&](int64_t row) {
    AddNormStrictRows(Bits(params.x) + row * c, Bits(params.r) + row * c, Bits(params.w), 1, c,
                      static_cast<float>(params.eps), params.h.as<uint16_t>() + row * c,
                      params.y.as<uint16_t>() + row * c);
    return absl::OkStatus();
  });
}

absl::Status AddNormRef(const AddNormParams& params, const ExecContext& context) {
  const int64_t c = params.x.dim(1);
  return context.ParallelFor(params.x.dim(0), [&](int64_t row) {
    AddNormFloat64Rows(Bits(params.x) + row * c, Bits(params.r) + row * c, Bits(params.w), 1, c,
                       params.eps, params.h.as<uint16_t>() + row * c,
                       params.y.as<uint16_t>() + row * c);
    return absl::OkStatus();
  });
}

}  // namespace h3rt
