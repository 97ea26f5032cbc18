#include "h3rt/kernels/attention/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "h3rt/base/count_allocations.h"
#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/attention/attention_cases.h"

namespace h3rt {
namespace {

using test::GuardedOutput;
using test::RandomFloats;
using test::TestContext;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Problem {
  explicit Problem(const AttentionCase& c)
      : spec(c),
        q(RandomFloats(c.sq * c.hq * c.d, 1)),
        k(RandomFloats(c.sk * c.hk * c.d, 2)),
        v(RandomFloats(c.sk * c.hk * c.d, 3)) {
    // Room for a pointer even where there are no keys.
    k.resize(k.size() + 1);
    v.resize(v.size() + 1);
  }

  AttentionParams Params(float* o, bool round_bf16) const {
    AttentionParams p;
    p.q = test::ViewOf(q, {spec.sq, spec.hq, spec.d});
    p.k = test::ViewOf(k, {spec.sk, spec.hk, spec.d});
    p.v = test::ViewOf(v, {spec.sk, spec.hk, spec.d});
    p.o = TensorView::Of(o, {spec.sq, spec.hq, spec.d});
    p.causal = spec.causal;
    p.round_bf16 = round_bf16;
    return p;
  }

  // Plain FP32: all scores of a row, maximum, exponentials, sums. Scale 0: 1 / sqrt(d).
  std::vector<float> Naive(float given_scale = 0.0f) const {
    std::vector<float> o(q.size(), 0.0f);
    const float scale =
        given_scale > 0.0f ? given_scale : 1.0f / std::sqrt(static_cast<float>(spec.d));
    std::vector<float> p(static_cast<size_t>(spec.sk));
    for (int64_t i = 0; i < spec.sq; ++i) {
      for (int64_t h = 0; h < spec.hq; ++h) {
        const int64_t kv = h / (spec.hq / spec.hk);
        const int64_t end =
            spec.causal ? std::clamp<int64_t>(i + 1 + spec.sk - spec.sq, 0, spec.sk) : spec.sk;
        const float* row = &q[static_cast<size_t>((i * spec.hq + h) * spec.d)];
        float max = -std::numeric_limits<float>::infinity();
        for (int64_t j = 0; j < end; ++j) {
          float dot = 0.0f;
          const float* key = &k[static_cast<size_t>((j * spec.hk + kv) * spec.d)];
          for (int64_t c = 0; c < spec.d; ++c) dot += row[c] * key[c];
          p[static_cast<size_t>(j)] = dot * scale;
          max = std::max(max, dot * scale);
        }
        float sum = 0.0f;
        float* to = &o[static_cast<size_t>((i * spec.hq + h) * spec.d)];
        for (int64_t j = 0; j < end; ++j) {
          const float e = std::exp(p[static_cast<size_t>(j)] - max);
          sum += e;
          const float* value = &v[static_cast<size_t>((j * spec.hk + kv) * spec.d)];
          for (int64_t c = 0; c < spec.d; ++c) to[c] += e * value[c];
        }
        for (int64_t c = 0; c < spec.d && end > 0; ++c) to[c] /= sum;
      }
    }
    return o;
  }

  // Float64 with the rounding points of the mixed precision, in the way that the memory-saving loop
  // has them: keys in blocks of 512; a block's exponentials are relative to the maximum so far and
  // are rounded so (`round_p`); what was summed before is scaled when the maximum moves.
  std::vector<float> Blocked(bool round_p) const {
    constexpr int64_t kBlock = 512;
    constexpr double kLowest = -std::numeric_limits<double>::infinity();
    std::vector<float> o(q.size(), 0.0f);
    const double scale = 1.0 / std::sqrt(static_cast<double>(spec.d));
    for (int64_t i = 0; i < spec.sq * spec.hq; ++i) {
      const int64_t kv = i % spec.hq / (spec.hq / spec.hk);
      const int64_t row = i / spec.hq;
      const int64_t end =
          spec.causal ? std::clamp<int64_t>(row + 1 + spec.sk - spec.sq, 0, spec.sk) : spec.sk;
      std::vector<double> sums(static_cast<size_t>(spec.d), 0.0);
      double max = kLowest;
      double sum = 0.0;
      for (int64_t first = 0; first < end; first += kBlock) {
        std::vector<double> scores;
        for (int64_t j = first; j < std::min(end, first + kBlock); ++j) {
          double dot = 0.0;
          for (int64_t c = 0; c < spec.d; ++c) {
            dot += static_cast<double>(q[static_cast<size_t>(i * spec.d + c)]) *
                   static_cast<double>(k[static_cast<size_t>((j * spec.hk + kv) * spec.d + c)]);
          }
          scores.push_back(dot * scale);
        }
        const double next = std::max(max, *std::max_element(scores.begin(), scores.end()));
        const double correction = max == kLowest ? 0.0 : std::exp(max - next);
        max = next;
        sum *= correction;
        for (double& s : sums) s *= correction;
        for (size_t j = 0; j < scores.size(); ++j) {
          const double e = std::exp(scores[j] - max);
          sum += e;
          const double p = round_p ? static_cast<double>(RoundToBf16(static_cast<float>(e))) : e;
          const int64_t key = (first + static_cast<int64_t>(j)) * spec.hk + kv;
          for (int64_t c = 0; c < spec.d; ++c) {
            sums[static_cast<size_t>(c)] +=
                p * static_cast<double>(v[static_cast<size_t>(key * spec.d + c)]);
          }
        }
      }
      for (int64_t c = 0; c < spec.d && end > 0; ++c) {
        o[static_cast<size_t>(i * spec.d + c)] =
            RoundToBf16(static_cast<float>(sums[static_cast<size_t>(c)] / sum));
      }
    }
    return o;
  }

  AttentionCase spec;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
};

std::vector<float> RunImpl(const AttentionParams& params, const std::string& impl) {
  const TestContext context(2, "attention", impl);
  GuardedOutput out(params.q.elements());
  AttentionParams p = params;
  p.o = out.view(params.q.shape());
  const absl::Status status = Attention(p, context());
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  EXPECT_TRUE(out.GuardsIntact());
  EXPECT_TRUE(out.AllWritten());
  return {out.values().begin(), out.values().end()};
}

void ExpectWithinPlainError(const Problem& problem) {
  const std::vector<float> reference = RunImpl(problem.Params(nullptr, false), "ref");
  const std::vector<float> fast = RunImpl(problem.Params(nullptr, false), "cpu");
  const double bound = test::DerivedBound(problem.Naive(), reference);
  const CompareResult result = CompareFloats(fast, reference);
  EXPECT_TRUE(Within(result, bound)) << Describe(result) << ", bound " << bound;
}

class AttentionCases : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionCases, StaysWithinTwiceTheErrorOfAPlainLoop) {
  ExpectWithinPlainError(Problem(GetParam()));
}

TEST_P(AttentionCases, RoundedProbabilitiesMatchTheReference) {
  const Problem problem(GetParam());
  const std::vector<float> fast = RunImpl(problem.Params(nullptr, true), "cpu");
  for (const float v : fast) ASSERT_EQ(v, RoundToBf16(v));
  // The same rounding points: only values on a rounding boundary move, in the probabilities and in
  // the output.
  const double bound = 2.0 * test::Bf16FlipBound(static_cast<int64_t>(problem.q.size()));
  const CompareResult result = CompareFloats(fast, problem.Blocked(true));
  EXPECT_TRUE(Within(result, bound)) << Describe(result) << ", bound " << bound;
  // One key block is what the reference computes, too.
  if (GetParam().sk > 512) return;
  const CompareResult same = CompareFloats(RunImpl(problem.Params(nullptr, true), "ref"), fast);
  EXPECT_TRUE(Within(same, bound)) << Describe(same) << ", bound " << bound;
}

// Without the rounding of the probabilities the bound is missed. Few keys share the weight here, so
// that their roundings do not average out.
TEST(Attention, PlantedUnroundedProbabilitiesMissTheBound) {
  for (const int64_t keys : {100, 600, 1500}) {
    Problem problem({"", 200, keys, 2, 2, 32, false});
    for (float& x : problem.q) x *= 4.0f;
    const std::vector<float> fast = RunImpl(problem.Params(nullptr, true), "cpu");
    const double bound = 2.0 * test::Bf16FlipBound(static_cast<int64_t>(problem.q.size()));
    EXPECT_TRUE(Within(CompareFloats(fast, problem.Blocked(true)), bound)) << keys;
    EXPECT_GT(test::RelativeL2(fast, problem.Blocked(false)), bound) << keys;
  }
}

TEST_P(AttentionCases, DeterminismSameBytesForEveryThreadCount) {
  const Problem problem(GetParam());
  const auto out = test::SameForAllThreadCounts(
      static_cast<int64_t>(problem.q.size()), [&](const ExecContext& context, float* o) {
        return Attention(problem.Params(o, false), context).ok();
      });
  EXPECT_FALSE(out.empty());
}

INSTANTIATE_TEST_SUITE_P(All, AttentionCases, ::testing::ValuesIn(kAttentionCases),
                         [](const auto& c) { return std::string(c.param.name); });

class AttentionLengths : public ::testing::TestWithParam<int64_t> {};

TEST_P(AttentionLengths, EveryLengthIsRightAndReadsNothingPastItsEnd) {
  const int64_t n = GetParam();
  // The longest with few queries, so that the reference stays quick.
  const Problem problem({"", std::min<int64_t>(n, 200), n, 1, 1, 24, false});
  ExpectWithinPlainError(problem);
  const std::vector<float> clean = RunImpl(problem.Params(nullptr, false), "cpu");
  for (const float poison : {kNan, 1e30f}) {
    Problem poisoned = problem;
    for (auto* array : {&poisoned.q, &poisoned.k, &poisoned.v}) {
      array->resize(array == &poisoned.q ? problem.q.size() : problem.k.size() - 1);
      array->resize(array->size() + 4096, poison);
    }
    EXPECT_TRUE(Identical(CompareFloats(RunImpl(poisoned.Params(nullptr, false), "cpu"), clean)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionLengths, ::testing::ValuesIn(kAttentionLengths));

// Interleaves q, k and v as columns of one buffer with rows of 3 * h * d.
TEST(Attention, FusedAndTransposedViewsGiveTheBytesOfContiguousCopies) {
  const AttentionCase c = {"", 140, 140, 3, 3, 32, false};
  const Problem problem(c);
  const std::vector<float> expected = RunImpl(problem.Params(nullptr, false), "cpu");
  const int64_t width = c.hq * c.d;
  std::vector<float> fused(static_cast<size_t>(c.sq * 3 * width));
  std::vector<float> by_head(problem.q.size() * 3);
  for (int64_t i = 0; i < c.sq; ++i) {
    for (int64_t part = 0; part < 3; ++part) {
      const float* from = (part == 0 ? problem.q : part == 1 ? problem.k : problem.v).data();
      for (int64_t h = 0; h < c.hq; ++h) {
        for (int64_t j = 0; j < c.d; ++j) {
          const float value = from[i * width + h * c.d + j];
          fused[static_cast<size_t>(i * 3 * width + part * width + h * c.d + j)] = value;
          by_head[static_cast<size_t>(((part * c.hq + h) * c.sq + i) * c.d + j)] = value;
        }
      }
    }
  }
  AttentionParams p = problem.Params(nullptr, false);
  ConstTensorView* views[] = {&p.q, &p.k, &p.v};
  const int64_t fused_strides[] = {3 * width, c.d, 1};
  for (int64_t part = 0; part < 3; ++part) {
    *views[part] = ConstTensorView(reinterpret_cast<const std::byte*>(fused.data() + part * width),
                                   DType::kF32, {c.sq, c.hq, c.d}, fused_strides);
  }
  EXPECT_TRUE(Identical(CompareFloats(RunImpl(p, "cpu"), expected)));
  for (int64_t part = 0; part < 3; ++part) {
    *views[part] = ConstTensorView::Of(by_head.data() + part * c.hq * c.sq * c.d, {c.hq, c.sq, c.d})
                       .Transpose(0, 1);
  }
  EXPECT_TRUE(Identical(CompareFloats(RunImpl(p, "cpu"), expected)));
}

TEST(Attention, OffsetsPastTwoToThe32ElementsAreRight) {
  // Five rows 2^30 + 64 elements apart reach from 0 past 2^32.
  const Problem problem({"", 5, 5, 2, 2, 16, false});
  const int64_t row = (int64_t{1} << 30) + 64;
  test::SparseFloats fused(4 * row + 3 * 32);
  ASSERT_NE(fused.data(), nullptr);
  for (int64_t i = 0; i < 5; ++i) {
    std::copy_n(problem.q.begin() + i * 32, 32, fused.data() + i * row);
    std::copy_n(problem.k.begin() + i * 32, 32, fused.data() + i * row + 32);
    std::copy_n(problem.v.begin() + i * 32, 32, fused.data() + i * row + 64);
  }
  AttentionParams p = problem.Params(nullptr, false);
  const std::vector<float> expected = RunImpl(p, "cpu");
  const int64_t strides[] = {row, 16, 1};
  const auto view = [&](int64_t part) {
    return ConstTensorView(reinterpret_cast<const std::byte*>(fused.data() + part * 32),
                           DType::kF32, {5, 2, 16}, strides);
  };
  p.q = view(0);
  p.k = view(1);
  p.v = view(2);
  EXPECT_TRUE(Identical(CompareFloats(RunImpl(p, "cpu"), expected)));
}

TEST(Attention, ExtentsOfOneMayHaveAnyStride) {
  const Problem problem({"", 1, 1, 1, 1, 8, false});
  const std::vector<float> expected = RunImpl(problem.Params(nullptr, false), "cpu");
  AttentionParams p = problem.Params(nullptr, false);
  const int64_t strides[] = {-5, int64_t{1} << 60, 1};
  p.q = ConstTensorView(p.q.data(), DType::kF32, {1, 1, 8}, strides);
  p.k = ConstTensorView(p.k.data(), DType::kF32, {1, 1, 8}, strides);
  EXPECT_TRUE(Identical(CompareFloats(RunImpl(p, "cpu"), expected)));
}

TEST(Attention, GroupedQueriesEqualRepeatedKeys) {
  const Problem grouped({"", 60, 90, 6, 2, 16, false});
  Problem repeated({"", 60, 90, 6, 6, 16, false});
  for (int64_t j = 0; j < 90; ++j) {
    for (int64_t h = 0; h < 6; ++h) {
      for (int64_t c = 0; c < 16; ++c) {
        const auto to = static_cast<size_t>((j * 6 + h) * 16 + c);
        const auto from = static_cast<size_t>((j * 2 + h / 3) * 16 + c);
        repeated.k[to] = grouped.k[from];
        repeated.v[to] = grouped.v[from];
      }
    }
  }
  repeated.q = grouped.q;
  EXPECT_TRUE(Identical(CompareFloats(RunImpl(grouped.Params(nullptr, false), "cpu"),
                                      RunImpl(repeated.Params(nullptr, false), "cpu"))));
}

TEST(Attention, AQueryThatSeesNoKeyGivesZeros) {
  for (const char* impl : {"cpu", "ref"}) {
    const Problem problem({"", 20, 12, 2, 2, 8, true});
    const std::vector<float> o = RunImpl(problem.Params(nullptr, false), impl);
    for (size_t i = 0; i < o.size(); ++i) EXPECT_EQ(o[i] == 0.0f, i < 8 * 16) << i;
  }
}

TEST(Attention, NanReachesExactlyTheRowsItTouches) {
  for (const char* impl : {"cpu", "ref"}) {
    Problem problem({"", 600, 600, 1, 1, 16, true});
    problem.q[3 * 16 + 1] = kNan;
    problem.k[550 * 16 + 2] = kNan;  // in the causal edge of later rows
    problem.v[590 * 16] = kNan;      // first channel only
    const std::vector<float> o = RunImpl(problem.Params(nullptr, false), impl);
    for (int64_t i = 0; i < 600; ++i) {
      for (int64_t c = 0; c < 16; ++c) {
        const bool expected = i == 3 || i >= 550;
        EXPECT_EQ(std::isnan(o[static_cast<size_t>(i * 16 + c)]), expected) << impl << ' ' << i;
      }
    }
    Problem values({"", 40, 600, 1, 1, 16, false});
    values.v[590 * 16] = kNan;
    const std::vector<float> with_value = RunImpl(values.Params(nullptr, false), impl);
    for (size_t i = 0; i < with_value.size(); ++i) {
      EXPECT_EQ(std::isnan(with_value[i]), i % 16 == 0) << impl << ' ' << i;
    }
  }
}

TEST(Attention, KeysOfMinusInfinityWeighNothing) {
  for (const char* impl : {"cpu", "ref"}) {
    // q positive: the first 520 keys score -inf, a whole block of them, the others are equal.
    Problem problem({"", 3, 530, 1, 1, 2, false});
    problem.q.assign(problem.q.size(), 1.0f);
    problem.k.assign(problem.k.size(), 0.0f);
    for (size_t j = 0; j < 520; ++j) {
      problem.k[2 * j] = -std::numeric_limits<float>::infinity();
      problem.v[2 * j] = 1e6f;
    }
    for (size_t j = 520; j < 530; ++j) problem.v[2 * j] = problem.v[2 * j + 1] = 0.5f;
    for (const float v : RunImpl(problem.Params(nullptr, false), impl)) EXPECT_EQ(v, 0.5f) << impl;
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Problem problem({"", 10, 700, 1, 1, 4, false});
  for (float& x : problem.q) x *= 1e4f;
  for (float& x : problem.k) x *= 1e4f;
  for (const float v : RunImpl(problem.Params(nullptr, false), "cpu"))
    EXPECT_TRUE(std::isfinite(v));
}

TEST(Attention, GivenScaleIsUsed) {
  const Problem problem({"", 30, 50, 1, 1, 16, false});
  AttentionParams p = problem.Params(nullptr, false);
  const std::vector<float> implicit = RunImpl(p, "cpu");
  p.scale = 0.25f;
  EXPECT_TRUE(Identical(CompareFloats(RunImpl(p, "cpu"), implicit)));
  p.scale = 0.5f;
  EXPECT_FALSE(Identical(CompareFloats(RunImpl(p, "cpu"), implicit)));
  const std::vector<float> reference = RunImpl(p, "ref");
  const double bound = test::DerivedBound(problem.Naive(0.5f), reference);
  EXPECT_TRUE(Within(CompareFloats(RunImpl(p, "cpu"), reference), bound));
}

TEST(Attention, ATaskAllocatesNoMoreThanItSays) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  const TestContext context(1);
  for (const int64_t d : {16, 64, 128}) {
    const Problem problem({"", 300, 1100, 1, 1, d, false});
    std::vector<float> o(problem.q.size());
    const AttentionParams p = problem.Params(o.data(), true);
    ASSERT_TRUE(Attention(p, context()).ok());  // oneDNN keeps the code that it generates
    const AllocationPeak peak;
    ASSERT_TRUE(Attention(p, context()).ok());
    // Packing is counted for the largest instruction set, at no more than twice what another needs.
    EXPECT_LE(peak.bytes(), AttentionScratchBytes(d));
    EXPECT_GE(3 * peak.bytes(), AttentionScratchBytes(d));
  }
}

class AttentionErrors : public ::testing::Test {
 protected:
  void Refused(const char* named) {
    const absl::Status status = Attention(p_, context_());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
    EXPECT_EQ(out_.Unwritten(), 6 * 4 * 8);
  }
  Problem problem_{{"", 6, 7, 4, 2, 8, false}};
  GuardedOutput out_{6 * 4 * 8};
  AttentionParams p_ = problem_.Params(out_.data(), false);
  TestContext context_{1};
};

TEST_F(AttentionErrors, HeadsThatDoNotDivide) {
  p_.k = test::ViewOf(problem_.k, {4, 3, 8});
  p_.v = test::ViewOf(problem_.v, {4, 3, 8});
  Refused("multiple of the key heads");
}
TEST_F(AttentionErrors, LengthsOfKeysAndValues) {
  p_.v = test::ViewOf(problem_.v, {6, 2, 8});
  Refused("v");
}
TEST_F(AttentionErrors, HeadDimension) {
  p_.k = test::ViewOf(problem_.k, {7, 2, 7});
  Refused("k");
}
TEST_F(AttentionErrors, HeadDimensionZero) {
  p_.q = test::ViewOf(problem_.q, {6, 4, 0});
  Refused("head dimension");
}
TEST_F(AttentionErrors, ShapeOfTheOutput) {
  p_.o = TensorView::Of(out_.data(), {6, 4, 7});
  Refused("o");
}
TEST_F(AttentionErrors, Rank) {
  p_.q = test::ViewOf(problem_.q, {6, 32});
  Refused("q");
}
TEST_F(AttentionErrors, MixedTypes) {
  p_.k = ConstTensorView(p_.k.data(), DType::kBF16, {7, 2, 8});
  Refused("k");
}
TEST_F(AttentionErrors, StrideInsideAHead) {
  p_.v = test::ViewOf(problem_.v, {7, 8, 2}).Transpose(1, 2);
  Refused("v");
}
TEST_F(AttentionErrors, OutputOverInput) {
  p_.o = TensorView::Of(problem_.q.data(), {6, 4, 8});
  Refused("overlaps q");
}
TEST_F(AttentionErrors, ScaleThatIsNoNumber) {
  p_.scale = kNan;
  Refused("scale");
}

}  // namespace
}  // namespace h3rt
