// Attention in float64, for error bounds.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "h3rt/base/thread_pool.h"
#include "h3rt/kernels/attention/exact/type16.h"
#include "h3rt/kernels/attention/oracle/oracle.h"

namespace h3rt {
namespace {

// Sums of kRows queries by kWide keys or channels stay in registers.
constexpr int64_t kRows = 4;
constexpr int64_t kWide = 4;
constexpr int64_t kKeys = kWide;    // keys of one transposed tile of K
constexpr int64_t kKeyBlock = 128;  // keys whose V stays in a near cache

void Widen(const ExactProblem& p, const ExactInput& in, int64_t b, int64_t row, int64_t h,
           int64_t step, double* to) {
  const char* const from = static_cast<const char*>(in.data) +
                           (b * in.batch_stride + row * in.row_stride + h * in.head_stride) * 2;
  for (int64_t c = 0; c < p.head_dim; ++c) {
    uint16_t bits = 0;
    std::memcpy(&bits, from + c * 2, 2);
    to[c * step] = WidenExact(p.type, bits);
  }
}

// K and V of one (batch, head): K in tiles of kKeys keys, transposed, so that loops over keys run
// through memory; keys that fill the last tile are zeros and not looked at.
struct Keys {
  std::vector<double> k;  // [tiles, head_dim, kKeys]
  std::vector<double> v;  // [k_len, padded head_dim]
};

Keys LoadKeys(const ExactProblem& p, int64_t b, int64_t h) {
  Keys keys;
  const int64_t tiles = exact::CeilDiv(p.k_len, kKeys);
  keys.k.assign(static_cast<size_t>(tiles * p.head_dim * kKeys), 0.0);
  keys.v.assign(static_cast<size_t>(p.k_len * p.padded_dim()), 0.0);
  for (int64_t key = 0; key < p.k_len; ++key) {
    double* const tile = keys.k.data() + key / kKeys * p.head_dim * kKeys;
    Widen(p, p.k, b, key, h, kKeys, tile + key % kKeys);
    Widen(p, p.v, b, key, h, 1, keys.v.data() + key * p.padded_dim());
  }
  return keys;
}

// sums[r][j] += left[r * row_step + i] * right[i * width + j], for i in ascending order.
void AddProducts(const double* left, int64_t row_step, const double* right, int64_t width,
                 int64_t n, double (&sums)[kRows][kWide]) {
  double local[kRows][kWide];
  std::copy(&sums[0][0], &sums[0][0] + kRows * kWide, &local[0][0]);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t r = 0; r < kRows; ++r) {
      const double factor = left[r * row_step + i];
      for (int64_t j = 0; j < kWide; ++j) local[r][j] += factor * right[i * width + j];
    }
  }
  std::copy(&local[0][0], &local[0][0] + kRows * kWide, &sums[0][0]);
}

// scores[r][key] of kRows rows, for keys below `seen` and those that fill its last tile.
void Scores(const ExactProblem& p, const Keys& keys, const double* q, int64_t seen, int64_t width,
            double* scores) {
  for (int64_t tile = 0; tile * kKeys < seen; ++tile) {
    double sums[kRows][kWide] = {};
    AddProducts(q, p.head_dim, keys.k.data() + tile * p.head_dim * kKeys, kKeys, p.head_dim, sums);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t j = 0; j < kKeys; ++j) {
        scores[r * width + tile * kKeys + j] = sums[r][j] * static_cast<double>(p.sm_scale);
      }
    }
  }
}

// out[r][channel] += weights[r][key] * v[key][channel], of kRows rows; dim is a multiple of kWide.
void AddValues(const Keys& keys, const double* weights, int64_t width, int64_t seen, int64_t dim,
               double* out) {
  for (int64_t key = 0; key < seen; key += kKeyBlock) {
    const int64_t n = std::min(kKeyBlock, seen - key);
    for (int64_t c = 0; c < dim; c += kWide) {
      double sums[kRows][kWide];
      for (int64_t r = 0; r < kRows; ++r) std::copy_n(out + r * dim + c, kWide, sums[r]);
      AddProducts(weights + key, width, keys.v.data() + key * dim + c, dim, n, sums);
      for (int64_t r = 0; r < kRows; ++r) std::copy_n(sums[r], kWide, out + r * dim + c);
    }
  }
}

// Queries [begin, end), at most kRows, of one head.
void Attend(const ExactProblem& p, const Keys& keys, int64_t b, int64_t h, int64_t begin,
            int64_t end, double* o, double* lse) {
  const int64_t rows = end - begin;
  const int64_t dim = p.head_dim;
  const int64_t seen = p.causal ? std::min(p.k_len, end) : p.k_len;
  const int64_t width = exact::RoundUp(seen, kKeys);
  std::vector<double> q(static_cast<size_t>(kRows * dim));  // rows beyond `rows`: zeros
  for (int64_t r = 0; r < rows; ++r) Widen(p, p.q, b, begin + r, h, 1, q.data() + r * dim);
  std::vector<double> scores(static_cast<size_t>(kRows * width));
  Scores(p, keys, q.data(), seen, width, scores.data());

  std::vector<double> total(static_cast<size_t>(rows), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    double* const s = scores.data() + r * width;
    const int64_t mine = p.causal ? std::min(seen, begin + r + 1) : seen;
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < mine; ++j) most = std::max(most, s[j]);
    double& sum = total[static_cast<size_t>(r)];
    for (int64_t j = 0; j < mine; ++j) sum += s[j] = std::exp(s[j] - most);
    std::fill(s + mine, s + width, 0.0);
    if (lse != nullptr) {
      lse[(b * p.q_heads + h) * p.q_len + begin + r] = most + std::log(sum);
    }
  }
  if (o == nullptr) return;
  const int64_t padded = p.padded_dim();
  std::vector<double> out(static_cast<size_t>(kRows * padded), 0.0);
  AddValues(keys, scores.data(), width, seen, padded, out.data());
  for (int64_t r = 0; r < rows; ++r) {
    double* const to = o + ((b * p.q_len + begin + r) * p.q_heads + h) * dim;
    const double sum = total[static_cast<size_t>(r)];
    for (int64_t c = 0; c < dim; ++c) {
      to[c] = p.k_len == 0 ? 0.0 : out[static_cast<size_t>(r * padded + c)] / sum;
    }
  }
}

}  // namespace

absl::Status Float64Attention(const ExactProblem& p, int64_t q_begin, int64_t q_end, double* o,
                              double* lse) {
  if (q_begin < 0 || q_begin > q_end || q_end > p.q_len) {
    return InvalidArgument({.what = "Float64Attention: query rows",
                            .got = std::to_string(q_begin) + " to " + std::to_string(q_end),
                            .wanted = "within 0 to " + std::to_string(p.q_len)});
  }
  const bool heads = p.k_heads > 0 && p.q_heads % p.k_heads == 0;
  if (p.padded_dim() == 0 || p.batch < 0 || p.k_len < 0 || (p.q_heads != 0 && !heads)) {
    return InvalidArgument({.what = "Float64Attention: extents",
                            .got = "head_dim " + std::to_string(p.head_dim) + ", heads " +
                                   std::to_string(p.q_heads) + " of " + std::to_string(p.k_heads),
                            .wanted = "what CheckExactProblem takes"});
  }
  const bool empty = p.batch == 0 || p.q_heads == 0 || q_begin == q_end;
  if (!empty &&
      (p.q.data == nullptr || (p.k_len > 0 && (p.k.data == nullptr || p.v.data == nullptr)))) {
    return InvalidArgument(
        {.what = "Float64Attention: q, k or v", .got = "null", .wanted = "memory"});
  }
  if (empty) return absl::OkStatus();
  ThreadPool pool(ThreadPool::HardwareThreads());
  const int64_t group = p.q_heads / p.k_heads;
  const int64_t blocks = exact::CeilDiv(q_end - q_begin, kRows);
  for (int64_t bk = 0; bk < p.batch * p.k_heads; ++bk) {
    const int64_t b = bk / p.k_heads;
    const int64_t k_head = bk % p.k_heads;
    const Keys keys = LoadKeys(p, b, k_head);
    H3RT_RETURN_IF_ERROR(pool.ParallelFor(blocks * group, nullptr, [&](int64_t i) {
      const int64_t begin = q_begin + i % blocks * kRows;
      Attend(p, keys, b, k_head * group + i / blocks, begin, std::min(begin + kRows, q_end), o,
             lse);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

}  // namespace h3rt
