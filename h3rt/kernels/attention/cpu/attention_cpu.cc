#include "h3rt/kernels/attention/cpu/attention_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "h3rt/cpu/convert.h"
#include "h3rt/cpu/math.h"
#include "h3rt/cpu/scratch.h"
#include "h3rt/cpu/sgemm.h"
#include "h3rt/kernels/attention/attention_check.h"

namespace h3rt {
namespace {

// Fixed block sizes: the result is a function of them, and never of the number of threads. Scores
// of one block pair are 256 KiB, which stays in the second cache.
constexpr int64_t kQueryBlock = 128;
constexpr int64_t kKeyBlock = 512;
constexpr int kLanes = 16;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// NaN is left out here and comes back through the exponential.
H3RT_MULTIVERSION float MaxOfRow(const float* s, int64_t n) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = kMinusInfinity;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = s[j + l] > lanes[l] ? s[j + l] : lanes[l];
  }
  for (; j < n; ++j) lanes[0] = s[j] > lanes[0] ? s[j] : lanes[0];
  float max = kMinusInfinity;
  for (const float lane : lanes) max = lane > max ? lane : max;
  return max;
}

// s[j] = exp(s[j] - max), rounded to bfloat16 where asked for; returns the sum before rounding.
template <bool kRound>
H3RT_ALWAYS_INLINE double ExponentialsOfRow(float* s, int64_t n, float max) {
  float lanes[kLanes] = {};
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float e = ExpF(s[j + l] - max);
      lanes[l] += e;
      s[j + l] = kRound ? RoundToBf16(e) : e;
    }
  }
  double sum = 0.0;
  for (; j < n; ++j) {
    const float e = ExpF(s[j] - max);
    sum += static_cast<double>(e);
    s[j] = kRound ? RoundToBf16(e) : e;
  }
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

H3RT_MULTIVERSION double Exponentials(float* s, int64_t n, float max) {
  return ExponentialsOfRow<false>(s, n, max);
}
H3RT_MULTIVERSION double ExponentialsRounded(float* s, int64_t n, float max) {
  return ExponentialsOfRow<true>(s, n, max);
}

H3RT_MULTIVERSION void MultiplyRow(float* x, int64_t n, float factor) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}
H3RT_MULTIVERSION void DivideRow(const float* x, int64_t n, float divisor, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / divisor;
}
H3RT_MULTIVERSION void AddProduct(const float* x, int64_t n, float factor, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// Rows of one head, packed without gaps: oneDNN is a third faster on them than on rows of a fused
// buffer, and its summation order can depend on the distance between rows.
void PackRows(const ConstTensorView& view, int64_t head, int64_t begin, int64_t rows, float* to) {
  const int64_t d = view.dim(2);
  const float* from = view.as<float>() + begin * view.stride(0) + head * view.stride(1);
  for (int64_t i = 0; i < rows; ++i) {
    std::copy(from + i * view.stride(0), from + i * view.stride(0) + d, to + i * d);
  }
}

// One block of queries of one head against all keys.
class QueryBlock {
 public:
  QueryBlock(const AttentionParams& params, int64_t head, int64_t begin, float* scratch)
      : params_(params),
        head_(head),
        begin_(begin),
        rows_(std::min(kQueryBlock, params.q.dim(0) - begin)),
        d_(params.q.dim(2)),
        scale_(AttentionScale(params)),
        scores_(scratch),
        out_(scores_ + kQueryBlock * kKeyBlock),
        q_(out_ + kQueryBlock * d_),
        k_(q_ + kQueryBlock * d_),
        v_(k_ + kKeyBlock * d_) {
    std::fill(max_, max_ + kQueryBlock, kMinusInfinity);
  }

  static int64_t ScratchFloats(int64_t d) {
    return kQueryBlock * kKeyBlock + 2 * (kQueryBlock + kKeyBlock) * d;
  }

  absl::Status Run() {
    std::fill(out_, out_ + rows_ * d_, 0.0f);
    PackRows(params_.q, head_, begin_, rows_, q_);
    const int64_t keys = KeysSeen(params_, begin_ + rows_ - 1);
    for (int64_t j = 0; j < keys; j += kKeyBlock) {
      H3RT_RETURN_IF_ERROR(AddKeys(j, std::min(kKeyBlock, keys - j)));
    }
    for (int64_t i = 0; i < rows_; ++i) Store(i);
    return absl::OkStatus();
  }

 private:
  absl::Status AddKeys(int64_t first, int64_t keys) {
    const int64_t kv_head = head_ / (params_.q.dim(1) / params_.k.dim(1));
    PackRows(params_.k, kv_head, first, keys, k_);
    PackRows(params_.v, kv_head, first, keys, v_);
    H3RT_RETURN_IF_ERROR(Sgemm({.trans_b = true,
                                .m = rows_,
                                .n = keys,
                                .k = d_,
                                .alpha = scale_,
                                .a = q_,
                                .lda = d_,
                                .b = k_,
                                .ldb = d_,
                                .c = scores_,
                                .ldc = kKeyBlock}));
    const bool all_seen = KeysSeen(params_, begin_) >= first + keys;
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t seen = std::clamp<int64_t>(KeysSeen(params_, begin_ + i) - first, 0, keys);
      Softmax(i, seen);
      // On the causal edge each row stops at its own last key: a masked value, NaN even, cannot
      // enter the sum.
      for (int64_t j = 0; !all_seen && j < seen; ++j) {
        AddProduct(v_ + j * d_, d_, scores_[i * kKeyBlock + j], out_ + i * d_);
      }
    }
    if (!all_seen) return absl::OkStatus();
    return Sgemm({.m = rows_,
                  .n = d_,
                  .k = keys,
                  .a = scores_,
                  .lda = kKeyBlock,
                  .b = v_,
                  .ldb = d_,
                  .beta = 1.0f,
                  .c = out_,
                  .ldc = d_});
  }

  // Turns the scores of row i into probabilities relative to the new maximum and rescales what was
  // summed so far.
  void Softmax(int64_t i, int64_t seen) {
    if (seen == 0) return;
    float* s = scores_ + i * kKeyBlock;
    const float max = std::max(max_[i], MaxOfRow(s, seen));
    // With nothing but -inf so far the difference would be NaN; any finite reference gives zeros.
    const float reference = max == kMinusInfinity ? 0.0f : max;
    if (max != max_[i]) {
      const float correction = max_[i] == kMinusInfinity ? 0.0f : ExpF(max_[i] - reference);
      sum_[i] *= static_cast<double>(correction);
      MultiplyRow(out_ + i * d_, d_, correction);
      max_[i] = max;
    }
    sum_[i] += params_.round_bf16 ? ExponentialsRounded(s, seen, reference)
                                  : Exponentials(s, seen, reference);
  }

  void Store(int64_t i) {
    float* o =
        params_.o.as<float>() + (begin_ + i) * params_.o.stride(0) + head_ * params_.o.stride(1);
    if (KeysSeen(params_, begin_ + i) == 0) {
      std::fill(o, o + d_, 0.0f);
      return;
    }
    DivideRow(out_ + i * d_, d_, static_cast<float>(sum_[i]), o);
    if (params_.round_bf16) RoundRowToBf16(o, d_);
  }

  const AttentionParams& params_;
  int64_t head_;
  int64_t begin_;
  int64_t rows_;
  int64_t d_;
  float scale_;
  float* scores_;  // [kQueryBlock, kKeyBlock]
  float* out_;     // [kQueryBlock, d], not yet divided by the sum
  float* q_;
  float* k_;
  float* v_;
  float max_[kQueryBlock] = {};
  double sum_[kQueryBlock] = {};
};

}  // namespace

int64_t AttentionScratchBytes(int64_t head_dim) {
  const int64_t packing = std::max(SgemmPackingBytes(kQueryBlock, kKeyBlock, head_dim),
                                   SgemmPackingBytes(kQueryBlock, head_dim, kKeyBlock));
  return QueryBlock::ScratchFloats(head_dim) * static_cast<int64_t>(sizeof(float)) + 128 + packing;
}

absl::Status AttentionCpu(const AttentionParams& params, const ExecContext& context) {
  const int64_t blocks = (params.q.dim(0) + kQueryBlock - 1) / kQueryBlock;
  const int64_t d = params.q.dim(2);
  return context.ParallelFor(params.q.dim(1) * blocks, [&](int64_t task) {
    H3RT_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Create(QueryBlock::ScratchFloats(d)));
    return QueryBlock(params, task / blocks, task % blocks * kQueryBlock, scratch.data()).Run();
  });
}

}  // namespace h3rt
