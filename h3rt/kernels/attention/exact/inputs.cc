#include "h3rt/kernels/attention/exact/inputs.h"

#include <algorithm>

#include "h3rt/base/check.h"
#include "h3rt/base/thread_pool.h"
#include "h3rt/kernels/attention/exact/type16.h"

namespace h3rt {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;
constexpr uint64_t kStream = 0xd1b54a32d192ed03ull;

enum Stream : uint64_t { kQ = 0, kK = 1, kV = 2, kBias = 3 };

// Exact in float32: an integer of 19 bits over 2^15.
float Draw(uint64_t seed, uint64_t stream, uint64_t index) {
  uint64_t z = seed * kGolden + stream * kStream + index * kGolden;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  const uint64_t sum = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);
  return static_cast<float>(static_cast<int32_t>(sum) - 131070) * 0x1p-15f;
}

// body(begin, end) over [0, n), in pieces that depend on n alone.
template <typename Body>
void InPieces(ThreadPool& pool, int64_t n, const Body& body) {
  const int64_t pieces = std::min<int64_t>(n, 256);
  const absl::Status status = pool.ParallelFor(pieces, nullptr, [&](int64_t i) {
    body(n / pieces * i + std::min(n % pieces, i),
         n / pieces * (i + 1) + std::min(n % pieces, i + 1));
    return absl::OkStatus();
  });
  H3RT_CHECK(status.ok());
}

}  // namespace

ExactInputs MakeExactInputs(const ExactInputSpec& spec, int threads) {
  const int64_t q_width = spec.q_heads * spec.head_dim;
  const int64_t k_width = spec.k_heads * spec.head_dim;
  const int64_t q_rows = spec.batch * spec.q_len;
  const int64_t k_rows = spec.batch * spec.k_len;

  // bias * x3 of [batch, 1, k_heads, head_dim], rounded to float32 as the products and sums of the
  // reference are.
  std::vector<float> bias(static_cast<size_t>(spec.batch * k_width));
  for (size_t i = 0; i < bias.size(); ++i) {
    bias[i] = static_cast<float>(spec.bias) * Draw(spec.seed, kBias, i);
  }
  const float q_factor = spec.flat ? 0.0625f : 1.0f;

  ThreadPool pool(threads);
  ExactInputs out;
  out.q.resize(static_cast<size_t>(q_rows * q_width));
  out.k.resize(static_cast<size_t>(k_rows * k_width));
  out.v.resize(static_cast<size_t>(k_rows * k_width));
  InPieces(pool, q_rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * q_width; i < end * q_width; ++i) {
      const float value = Draw(spec.seed, kQ, static_cast<uint64_t>(i)) * q_factor;
      out.q[static_cast<size_t>(i)] = NarrowExact(spec.type, value);
    }
  });
  InPieces(pool, k_rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* const row_bias = bias.data() + row / spec.k_len * k_width;
      for (int64_t c = 0; c < k_width; ++c) {
        const int64_t i = row * k_width + c;
        const float k = Draw(spec.seed, kK, static_cast<uint64_t>(i)) + row_bias[c];
        out.k[static_cast<size_t>(i)] = NarrowExact(spec.type, k);
        const float v = Draw(spec.seed, kV, static_cast<uint64_t>(i));
        out.v[static_cast<size_t>(i)] = NarrowExact(spec.type, v);
      }
    }
  });
  return out;
}

ExactProblem DenseProblem(const ExactInputSpec& spec, ExactPath path,
                          ExactGranularity granularity) {
  ExactProblem p;
  p.path = path;
  p.granularity = granularity;
  p.type = spec.type;
  p.batch = spec.batch;
  p.q_heads = spec.q_heads;
  p.k_heads = spec.k_heads;
  p.q_len = spec.q_len;
  p.k_len = spec.k_len;
  p.head_dim = spec.head_dim;
  p.sm_scale = DefaultSmScale(spec.head_dim);
  const int64_t q_row = spec.q_heads * spec.head_dim;
  const int64_t k_row = spec.k_heads * spec.head_dim;
  p.q = {nullptr, spec.q_len * q_row, q_row, spec.head_dim};
  p.k = {nullptr, spec.k_len * k_row, k_row, spec.head_dim};
  p.v = p.k;
  p.o = {nullptr, spec.q_len * q_row, q_row, spec.head_dim};
  return p;
}

}  // namespace h3rt
