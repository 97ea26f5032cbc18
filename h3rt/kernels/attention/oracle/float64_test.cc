// Attention in float64 against closed forms and a plain evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "h3rt/kernels/attention/exact/exact_cases.h"
#include "h3rt/kernels/attention/oracle/oracle.h"

namespace h3rt {
namespace {

constexpr double kPoison = 12345.0;
constexpr uint16_t kNan = 0x7fc0;

struct Result {
  absl::Status status;
  std::vector<double> o;
  std::vector<double> lse;
};
Result Attend(const ExactProblem& p) {
  Result r;
  const auto rows = static_cast<size_t>(p.batch * p.q_heads * p.q_len);
  r.o.assign(rows * static_cast<size_t>(p.head_dim), kPoison);
  r.lse.assign(rows, kPoison);
  r.status = Float64Attention(p, 0, p.q_len, r.o.data(), r.lse.data());
  return r;
}

ExactCase Case(int64_t q_len, int64_t k_len, int64_t dim = 40) {
  ExactCase c;
  c.inputs.q_len = q_len;
  c.inputs.k_len = k_len;
  c.inputs.head_dim = dim;
  c.inputs.seed = 3;
  return c;
}
ExactHostCall CallOf(const ExactCase& c) {
  return HostCallOf(c, ExactPath::kB, ExactGranularity::kPerWarp, kNan);
}
double At(const void* data, int64_t i) {
  return static_cast<double>(Bf16ToFloat(static_cast<const uint16_t*>(data)[i]));
}

TEST(Float64AttentionTest, OneKeyGivesItsValueAndItsScore) {
  const ExactHostCall call = CallOf(Case(5, 1));
  const Result r = Attend(call.problem);
  ASSERT_TRUE(r.status.ok()) << r.status;
  for (int64_t row = 0; row < 5; ++row) {
    double score = 0.0;
    for (int64_t c = 0; c < 40; ++c) {
      EXPECT_EQ(r.o[static_cast<size_t>(row * 40 + c)], At(call.problem.v.data, c));
      score += At(call.problem.q.data, row * 40 + c) * At(call.problem.k.data, c);
    }
    score *= static_cast<double>(call.problem.sm_scale);
    EXPECT_NEAR(r.lse[static_cast<size_t>(row)], score, 1e-12);
  }
}

TEST(Float64AttentionTest, EqualKeysGiveTheMean) {
  ExactCase c = Case(6, 130);
  c.fill = ExactFill::kConstantK;
  const ExactHostCall call = CallOf(c);
  const Result r = Attend(call.problem);
  for (int64_t channel = 0; channel < 40; ++channel) {
    double mean = 0.0;
    for (int64_t key = 0; key < 130; ++key) mean += At(call.problem.v.data, key * 40 + channel);
    mean /= 130.0;
    for (size_t row = 0; row < 6; ++row) {
      EXPECT_NEAR(r.o[row * 40 + static_cast<size_t>(channel)], mean, 1e-13);
    }
  }
  ExactProblem one = call.problem;
  one.k_len = 1;
  const Result single = Attend(one);
  for (size_t row = 0; row < 6; ++row) {
    EXPECT_NEAR(r.lse[row], single.lse[row] + std::log(130.0), 1e-12);
  }
}

TEST(Float64AttentionTest, CausalRowsSeeTheKeysUpToTheirOwn) {
  ExactCase c = Case(100, 70);
  c.causal = true;
  const ExactHostCall call = CallOf(c);
  const Result causal = Attend(call.problem);
  for (int64_t channel = 0; channel < 40; ++channel) {
    EXPECT_EQ(causal.o[static_cast<size_t>(channel)], At(call.problem.v.data, channel));
  }
  for (const int64_t row : {1, 3, 4, 63, 64, 68, 69, 70, 99}) {
    ExactProblem cut = call.problem;
    cut.causal = false;
    cut.k_len = std::min<int64_t>(70, row + 1);
    const Result r = Attend(cut);
    for (size_t i = static_cast<size_t>(row) * 40; i < static_cast<size_t>(row + 1) * 40; ++i) {
      EXPECT_NEAR(causal.o[i], r.o[i], 1e-13);
    }
    EXPECT_NEAR(causal.lse[static_cast<size_t>(row)], r.lse[static_cast<size_t>(row)], 1e-13);
  }
}

// softmax by the definition, one element at a time, over heads, batch and a strided view.
TEST(Float64AttentionTest, PlainEvaluation) {
  ExactCase c = Case(9, 131, 72);
  c.inputs.batch = 2;
  c.inputs.q_heads = 4;
  c.inputs.k_heads = 2;
  const ExactHostCall dense = CallOf(c);
  const ExactInputs in = InputsOf(c);
  c.layout = ExactLayout::kFusedQkv;
  const ExactHostCall fused = CallOf(c);
  const Result r = Attend(dense.problem);
  const Result s = Attend(fused.problem);
  EXPECT_EQ(r.o, s.o);
  EXPECT_EQ(r.lse, s.lse);
  size_t checked = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 4; ++h) {
      for (int64_t row = 0; row < 9; ++row) {
        std::vector<double> weight(131);
        double sum = 0.0;
        for (int64_t key = 0; key < 131; ++key) {
          double score = 0.0;
          for (int64_t d = 0; d < 72; ++d) {
            score += At(in.q.data(), ((b * 9 + row) * 4 + h) * 72 + d) *
                     At(in.k.data(), ((b * 131 + key) * 2 + h / 2) * 72 + d);
          }
          sum += weight[static_cast<size_t>(key)] =
              std::exp(score * static_cast<double>(dense.problem.sm_scale));
        }
        EXPECT_NEAR(r.lse[static_cast<size_t>((b * 4 + h) * 9 + row)], std::log(sum), 1e-11);
        for (const int64_t d : {0, 1, 71}) {
          double o = 0.0;
          for (int64_t key = 0; key < 131; ++key) {
            o += weight[static_cast<size_t>(key)] / sum *
                 At(in.v.data(), ((b * 131 + key) * 2 + h / 2) * 72 + d);
          }
          EXPECT_NEAR(r.o[static_cast<size_t>(((b * 9 + row) * 4 + h) * 72 + d)], o, 1e-12);
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 2u * 4 * 9 * 3);
}

// T13: the logarithms of two shards of the keys merge to that of the whole.
TEST(Float64AttentionTest, UnevenShardsOfKeysMerge) {
  const ExactHostCall call = CallOf(Case(5, 200));
  const Result whole = Attend(call.problem);
  ExactProblem first = call.problem;
  first.k_len = 37;
  ExactProblem rest = call.problem;
  rest.k_len = 163;
  rest.k.data = static_cast<const uint16_t*>(rest.k.data) + 37 * 40;
  rest.v.data = static_cast<const uint16_t*>(rest.v.data) + 37 * 40;
  const Result a = Attend(first);
  const Result b = Attend(rest);
  for (size_t row = 0; row < 5; ++row) {
    const double lse = std::log(std::exp(a.lse[row]) + std::exp(b.lse[row]));
    EXPECT_NEAR(whole.lse[row], lse, 1e-12);
    for (size_t i = row * 40; i < (row + 1) * 40; ++i) {
      const double o = a.o[i] * std::exp(a.lse[row] - lse) + b.o[i] * std::exp(b.lse[row] - lse);
      EXPECT_NEAR(whole.o[i], o, 1e-12);
    }
  }
}

TEST(Float64AttentionTest, RowRangesNoKeysAndBadInput) {
  const ExactHostCall call = CallOf(Case(9, 20));
  const Result whole = Attend(call.problem);
  std::vector<double> o(9 * 40, kPoison);
  std::vector<double> lse(9, kPoison);
  ASSERT_TRUE(Float64Attention(call.problem, 3, 8, o.data(), lse.data()).ok());
  for (size_t row = 0; row < 9; ++row) {
    const bool inside = row >= 3 && row < 8;
    EXPECT_EQ(lse[row], inside ? whole.lse[row] : kPoison);
    EXPECT_EQ(o[row * 40 + 7], inside ? whole.o[row * 40 + 7] : kPoison);
  }
  ASSERT_TRUE(Float64Attention(call.problem, 0, 9, nullptr, nullptr).ok());
  ExactProblem none = call.problem;
  none.k_len = 0;
  const Result r = Attend(none);
  for (const double x : r.o) EXPECT_EQ(x, 0.0);
  for (const double x : r.lse) EXPECT_EQ(x, -std::numeric_limits<double>::infinity());
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{-1, 3}, {3, 10}, {5, 4}}) {
    EXPECT_EQ(Float64Attention(call.problem, begin, end, nullptr, nullptr).code(),
              absl::StatusCode::kInvalidArgument);
  }
  ExactProblem bad = call.problem;
  bad.q_heads = 3;
  bad.k_heads = 2;
  EXPECT_EQ(Attend(bad).status.code(), absl::StatusCode::kInvalidArgument);
  bad = call.problem;
  bad.v.data = nullptr;
  EXPECT_EQ(Attend(bad).status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
