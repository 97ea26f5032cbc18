#include "h3rt/kernels/linear/ref/linear_ref.h"

#include <algorithm>

#include "h3rt/cpu/convert.h"

namespace h3rt {
namespace {

constexpr int64_t kColumnsPerTask = 64;

// Elements from the first one to row j of the weight (or entry j of the bias).
int64_t RowOffset(const ConstTensorView& view, bool grouped, int64_t j) {
  if (!grouped) return j * view.stride(0);
  return j / view.dim(1) * view.stride(0) + j % view.dim(1) * view.stride(1);
}

double LoadRounded(const ConstTensorView& view, int64_t offset, bool round_bf16) {
  return RoundedIf(round_bf16, LoadElement(view, offset));
}

}  // namespace

absl::Status LinearRef(const LinearParams& params, const ExecContext& context) {
  const int64_t m = params.x.dim(0);
  const int64_t k = params.x.dim(1);
  const int64_t n = params.y.dim(1);
  const int64_t tasks_a_row = (n + kColumnsPerTask - 1) / kColumnsPerTask;
  return context.ParallelFor(m * tasks_a_row, [&](int64_t task) {
    const int64_t i = task / tasks_a_row;
    const int64_t begin = task % tasks_a_row * kColumnsPerTask;
    const float* x = params.x.as<float>() + i * params.x.stride(0);
    float* y = params.y.as<float>() + i * params.y.stride(0);
    for (int64_t j = begin; j < std::min(begin + kColumnsPerTask, n); ++j) {
      const int64_t row = RowOffset(params.weight, params.weight.rank() == 3, j);
      double sum = 0.0;
      for (int64_t c = 0; c < k; ++c) {
        sum += static_cast<double>(x[c]) *
               LoadRounded(params.weight, row + c, params.round_weight_bf16);
      }
      if (!params.bias.is_null()) {
        sum += LoadRounded(params.bias, RowOffset(params.bias, params.bias.rank() == 2, j),
                           params.round_weight_bf16);
      }
      const auto value = static_cast<float>(sum);
      y[j] = params.round_bf16 ? RoundToBf16(value) : value;
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
