#include "h3rt/kernels/rope/cpu/rope_cpu.h"

#include <algorithm>

#include "h3rt/cpu/multiversion.h"
#include "h3rt/cpu/tasks.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

H3RT_MULTIVERSION void RotateHead(float* __restrict a, float* __restrict b,
                                  const float* __restrict cos, const float* __restrict sin,
                                  int64_t r) {
  for (int64_t j = 0; j < r; ++j) {
    const float x = a[j] * cos[j] - b[j] * sin[j];
    b[j] = b[j] * cos[j] + a[j] * sin[j];
    a[j] = x;
  }
}

H3RT_MULTIVERSION void RotateHeadRounded(float* __restrict a, float* __restrict b,
                                         const float* __restrict cos, const float* __restrict sin,
                                         int64_t r) {
  for (int64_t j = 0; j < r; ++j) {
    const float c = RoundToBf16(cos[j]);
    const float s = RoundToBf16(sin[j]);
    const float x = RoundToBf16(RoundToBf16(a[j] * c) - RoundToBf16(b[j] * s));
    b[j] = RoundToBf16(RoundToBf16(b[j] * c) + RoundToBf16(a[j] * s));
    a[j] = x;
  }
}

}  // namespace

absl::Status RopeCpu(const RopeParams& params, const ExecContext& context) {
  const auto& x = params.x;
  const int64_t r = params.cos.dim(1);
  const int64_t rows = RowsPerTask(x.dim(1) * x.dim(2));
  return context.ParallelFor((x.dim(0) + rows - 1) / rows, [&](int64_t task) {
    for (int64_t i = task * rows; i < std::min((task + 1) * rows, x.dim(0)); ++i) {
      const float* cos = params.cos.as<float>() + i * params.cos.stride(0);
      const float* sin = params.sin.as<float>() + i * params.sin.stride(0);
      for (int64_t h = 0; h < x.dim(1); ++h) {
        float* head = x.as<float>() + i * x.stride(0) + h * x.stride(1);
        params.round_bf16 ? RotateHeadRounded(head, head + r, cos, sin, r)
                          : RotateHead(head, head + r, cos, sin, r);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
