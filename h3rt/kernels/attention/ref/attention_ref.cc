#include "h3rt/kernels/attention/ref/attention_ref.h"

#include <cmath>
#include <limits>
#include <vector>

#include "h3rt/cpu/convert.h"
#include "h3rt/kernels/attention/attention_check.h"

namespace h3rt {
namespace {

// Scores of one query against its keys become unnormalised probabilities; returns their sum. A NaN
// score makes the sum NaN: exp(NaN - max) is NaN whatever the maximum.
double Probabilities(const AttentionParams& params, const float* q, const float* k, int64_t keys,
                     std::vector<double>& p) {
  const auto scale = static_cast<double>(AttentionScale(params));
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < keys; ++j) {
    const float* key = k + j * params.k.stride(0);
    double dot = 0.0;
    for (int64_t c = 0; c < params.q.dim(2); ++c) {
      dot += static_cast<double>(q[c]) * static_cast<double>(key[c]);
    }
    p[static_cast<size_t>(j)] = dot * scale;
    if (dot * scale > max) max = dot * scale;
  }
  double sum = 0.0;
  for (int64_t j = 0; j < keys; ++j) {
    double& e = p[static_cast<size_t>(j)];
    e = std::exp(e - max);
    sum += e;
    if (params.round_bf16) e = static_cast<double>(RoundToBf16(static_cast<float>(e)));
  }
  return sum;
}

}  // namespace

absl::Status AttentionRef(const AttentionParams& params, const ExecContext& context) {
  const int64_t heads = params.q.dim(1);
  const int64_t d = params.q.dim(2);
  if (heads == 0) return absl::OkStatus();
  const int64_t group = heads / params.k.dim(1);
  return context.ParallelFor(params.q.dim(0) * heads, [&](int64_t task) {
    const int64_t i = task / heads;
    const int64_t h = task % heads;
    const float* q = params.q.as<float>() + i * params.q.stride(0) + h * params.q.stride(1);
    const float* k = params.k.as<float>() + h / group * params.k.stride(1);
    const float* v = params.v.as<float>() + h / group * params.v.stride(1);
    float* o = params.o.as<float>() + i * params.o.stride(0) + h * params.o.stride(1);
    const int64_t keys = KeysSeen(params, i);
    std::vector<double> p(static_cast<size_t>(keys));
    const double sum = Probabilities(params, q, k, keys, p);
    for (int64_t c = 0; c < d; ++c) {
      double acc = 0.0;
      for (int64_t j = 0; j < keys; ++j) {
        acc += p[static_cast<size_t>(j)] * static_cast<double>(v[j * params.v.stride(0) + c]);
      }
      const auto value = static_cast<float>(keys == 0 ? 0.0 : acc / sum);
      o[c] = params.round_bf16 ? RoundToBf16(value) : value;
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
