#include "h3rt/kernels/attention/attention_check.h"

#include <algorithm>
#include <cmath>

#include "h3rt/cpu/expect.h"

namespace h3rt {

absl::Status CheckAttention(const AttentionParams& params) {
  ArgumentCheck check("attention");
  check.Rank("q", params.q, 3);
  check.Rank("k", params.k, 3);
  if (!check.ok()) return check.status();
  const int64_t hq = params.q.dim(1);
  const int64_t hk = params.k.dim(1);
  const int64_t d = params.q.dim(2);
  check.Float32("q", params.q);
  check.Float32("k", params.k);
  check.Float32("v", params.v);
  check.Float32("o", params.o);
  check.That(d > 0, "q", "shape " + params.q.shape().ToString(), "a head dimension over 0");
  check.Dims("k", params.k, {params.k.dim(0), hk, d});
  check.Dims("v", params.v, {params.k.dim(0), hk, d});
  check.Dims("o", params.o, {params.q.dim(0), hq, d});
  check.That(hq == 0 || (hk > 0 && hq % hk == 0), "query heads", std::to_string(hq),
             "a multiple of the key heads, " + std::to_string(hk));
  check.UnitStride("q", params.q);
  check.UnitStride("k", params.k);
  check.UnitStride("v", params.v);
  check.UnitStride("o", params.o);
  check.NoSelfOverlap("o", params.o);
  check.Apart("o", params.o, "q", params.q);
  check.Apart("o", params.o, "k", params.k);
  check.Apart("o", params.o, "v", params.v);
  check.That(std::isfinite(params.scale), "scale", std::to_string(params.scale), "a finite number");
  return check.status();
}

float AttentionScale(const AttentionParams& params) {
  if (params.scale != 0.0f) return params.scale;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(params.q.dim(2))));
}

int64_t KeysSeen(const AttentionParams& params, int64_t query) {
  const int64_t sk = params.k.dim(0);
  if (!params.causal) return sk;
  return std::clamp<int64_t>(query + 1 + (sk - params.q.dim(0)), 0, sk);
}

}  // namespace h3rt
