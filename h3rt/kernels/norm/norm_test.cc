#include "h3rt/kernels/norm/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/norm/norm_cases.h"

namespace h3rt {
namespace {

using test::ExpectWithin;
using test::GuardedOutput;
using test::RandomFloats;
using test::TestContext;
using ::testing::HasSubstr;

// Rows of one case: `gap` elements follow every row (rank 2) or every group of heads (rank 3).
struct Rows {
  explicit Rows(const RowNormCase& c)
      : spec(c),
        heads(std::max<int64_t>(c.heads, 1)),
        row(heads * c.c + c.gap),
        x(RandomFloats(c.m * row, 1)),
        weight(RandomFloats(c.c, 2)),
        bias(RandomFloats(c.c, 3)) {
    for (float& v : x) v += c.mean;
  }
  ConstTensorView View() const {
    const auto* data = reinterpret_cast<const std::byte*>(x.data());
    const int64_t strides[] = {row, spec.c, 1};
    if (spec.heads > 0) {
      return ConstTensorView(data, DType::kF32, {spec.m, heads, spec.c}, strides);
    }
    const int64_t flat[] = {row, 1};
    return ConstTensorView(data, DType::kF32, {spec.m, spec.c}, flat);
  }
  int64_t Floats() const { return spec.m * heads * spec.c; }
  std::vector<float> Naive(bool layer, float eps, bool weighted) const {
    std::vector<float> y;
    for (int64_t i = 0; i < spec.m * heads; ++i) {
      const float* from = &x[static_cast<size_t>(i / heads * row + i % heads * spec.c)];
      float mean = 0.0f;
      for (int64_t j = 0; j < spec.c && layer; ++j) mean += from[j];
      mean /= static_cast<float>(spec.c);
      float sum = 0.0f;
      for (int64_t j = 0; j < spec.c; ++j) sum += (from[j] - mean) * (from[j] - mean);
      const float inverse = 1.0f / std::sqrt(sum / static_cast<float>(spec.c) + eps);
      for (int64_t j = 0; j < spec.c; ++j) {
        const auto k = static_cast<size_t>(j);
        y.push_back((from[j] - mean) * inverse * (weighted ? weight[k] : 1.0f) +
                    (layer ? bias[k] : 0.0f));
      }
    }
    return y;
  }
  RowNormCase spec;
  int64_t heads;
  int64_t row;
  std::vector<float> x;
  std::vector<float> weight;
  std::vector<float> bias;
};

class RowNormCases : public ::testing::TestWithParam<RowNormCase> {};

TEST_P(RowNormCases, RmsStaysWithinTwiceTheErrorOfAPlainLoop) {
  const Rows rows(GetParam());
  for (const bool weighted : {false, true}) {
    RmsNormParams p;
    p.x = rows.View();
    if (weighted) p.weight = test::ViewOf(rows.weight, {rows.spec.c});
    GuardedOutput fast(rows.Floats());
    GuardedOutput reference(rows.Floats());
    p.y = fast.view(p.x.shape());
    ASSERT_TRUE(RmsNorm(p, TestContext(2, "norm", "cpu")()).ok());
    p.y = reference.view(p.x.shape());
    ASSERT_TRUE(RmsNorm(p, TestContext(2, "norm", "ref")()).ok());
    EXPECT_TRUE(fast.AllWritten() && fast.GuardsIntact());
    ExpectWithin(fast.values(), rows.Naive(false, 1e-5f, weighted), reference.values());
    p.round_bf16 = true;
    p.y = fast.view(p.x.shape());
    ASSERT_TRUE(RmsNorm(p, TestContext(2, "norm", "cpu")()).ok());
    p.y = reference.view(p.x.shape());
    ASSERT_TRUE(RmsNorm(p, TestContext(2, "norm", "ref")()).ok());
    const CompareResult result = CompareFloats(fast.values(), reference.values());
    EXPECT_TRUE(Within(result, test::Bf16FlipBound(rows.Floats()))) << Describe(result);
  }
}

TEST_P(RowNormCases, LayerStaysWithinTwiceTheErrorOfAPlainLoop) {
  RowNormCase rank_two = GetParam();  // the only rank that it takes
  rank_two.heads = 0;
  const Rows rows(rank_two);
  LayerNormParams p;
  p.x = rows.View();
  p.weight = test::ViewOf(rows.weight, {rows.spec.c});
  p.bias = test::ViewOf(rows.bias, {rows.spec.c});
  GuardedOutput reference(rows.Floats());
  p.y = reference.view(p.x.shape());
  ASSERT_TRUE(LayerNorm(p, TestContext(2, "norm", "ref")()).ok());
  const std::vector<float> fast =
      test::SameForAllThreadCounts(rows.Floats(), [&](const ExecContext& context, float* y) {
        p.y = TensorView::Of(y, p.x.shape());
        return LayerNorm(p, context).ok();
      });
  ASSERT_FALSE(fast.empty());
  ExpectWithin(fast, rows.Naive(true, 1e-5f, true), reference.values());
}

TEST_P(RowNormCases, DeterminismSameBytesForEveryThreadCount) {
  const Rows rows(GetParam());
  RmsNormParams p;
  p.x = rows.View();
  EXPECT_FALSE(
      test::SameForAllThreadCounts(rows.Floats(), [&](const ExecContext& context, float* y) {
        p.y = TensorView::Of(y, p.x.shape());
        return RmsNorm(p, context).ok();
      }).empty());
}

INSTANTIATE_TEST_SUITE_P(All, RowNormCases, ::testing::ValuesIn(kRowNormCases),
                         [](const auto& c) { return std::string(c.param.name); });

struct Frames {
  explicit Frames(const GroupNormCase& c)
      : spec(c),
        x(RandomFloats(c.c * c.t * c.h * c.w, 1)),
        weight(RandomFloats(c.c, 2)),
        bias(RandomFloats(c.c, 3)) {
    for (float& v : x) v += c.mean;
  }
  GroupNormParams Params(float* y, bool silu) const {
    GroupNormParams p;
    p.x = test::ViewOf(x, {spec.c, spec.t, spec.h, spec.w});
    p.weight = test::ViewOf(weight, {spec.c});
    p.bias = test::ViewOf(bias, {spec.c});
    p.y = TensorView::Of(y, p.x.shape());
    p.groups = spec.groups;
    p.silu = silu;
    return p;
  }
  std::vector<float> Naive(bool silu) const {
    std::vector<float> y(x.size());
    const int64_t channels = spec.c / spec.groups;
    const int64_t plane = spec.h * spec.w;
    for (int64_t g = 0; g < spec.groups; ++g) {
      for (int64_t t = 0; t < spec.t; ++t) {
        const auto at = [&](int64_t i) {
          return static_cast<size_t>(((g * channels + i / plane) * spec.t + t) * plane + i % plane);
        };
        const int64_t count = channels * plane;
        float mean = 0.0f;
        for (int64_t i = 0; i < count; ++i) mean += x[at(i)];
        mean /= static_cast<float>(count);
        float sum = 0.0f;
        for (int64_t i = 0; i < count; ++i) sum += (x[at(i)] - mean) * (x[at(i)] - mean);
        const float inverse = 1.0f / std::sqrt(sum / static_cast<float>(count) + 1e-6f);
        for (int64_t i = 0; i < count; ++i) {
          const auto c = static_cast<size_t>(g * channels + i / plane);
          const float v = (x[at(i)] - mean) * inverse * weight[c] + bias[c];
          y[at(i)] = silu ? v / (1.0f + std::exp(-v)) : v;
        }
      }
    }
    return y;
  }
  GroupNormCase spec;
  std::vector<float> x;
  std::vector<float> weight;
  std::vector<float> bias;
};

class GroupNormCases : public ::testing::TestWithParam<GroupNormCase> {};

TEST_P(GroupNormCases, DeterminismAndTwiceTheErrorOfAPlainLoop) {
  const Frames frames(GetParam());
  const auto n = static_cast<int64_t>(frames.x.size());
  for (const bool silu : {false, true}) {
    GuardedOutput reference(n);
    ASSERT_TRUE(
        GroupNorm(frames.Params(reference.data(), silu), TestContext(2, "norm", "ref")()).ok());
    const std::vector<float> fast =
        test::SameForAllThreadCounts(n, [&](const ExecContext& context, float* y) {
          return GroupNorm(frames.Params(y, silu), context).ok();
        });
    ASSERT_FALSE(fast.empty());
    ExpectWithin(fast, frames.Naive(silu), reference.values());
  }
}

INSTANTIATE_TEST_SUITE_P(All, GroupNormCases, ::testing::ValuesIn(kGroupNormCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Norm, MayWriteOverItsInput) {
  const TestContext context(2);
  std::vector<float> x = RandomFloats(10 * 33, 1);
  const std::vector<float> w = RandomFloats(33, 2);
  std::vector<float> expected(x.size());
  RmsNormParams p;
  p.x = test::ViewOf(x, {10, 33});
  p.weight = test::ViewOf(w, {33});
  p.y = TensorView::Of(expected.data(), {10, 33});
  ASSERT_TRUE(RmsNorm(p, context()).ok());
  p.y = TensorView::Of(x.data(), {10, 33});
  ASSERT_TRUE(RmsNorm(p, context()).ok());
  EXPECT_EQ(x, expected);
}

TEST(Norm, RoundedWeightsGiveTheBytesOfStoredBfloat16) {
  const std::vector<float> x = RandomFloats(10 * 300, 1);
  const std::vector<float> w = RandomFloats(300, 2);
  const std::vector<uint16_t> narrow = test::ToBf16(w);
  const std::vector<uint16_t> half = test::ToF16(w);
  for (const char* impl : {"cpu", "ref"}) {
    const TestContext context(2, "norm", impl);
    const auto run = [&](const ConstTensorView& weight, bool round) {
      std::vector<float> y(x.size());
      RmsNormParams p;
      p.x = test::ViewOf(x, {10, 300});
      p.weight = weight;
      p.y = TensorView::Of(y.data(), {10, 300});
      p.round_weight_bf16 = round;
      EXPECT_TRUE(RmsNorm(p, context()).ok());
      return y;
    };
    const std::vector<float> expected = run(test::ViewOf(narrow, DType::kBF16, {300}), false);
    EXPECT_EQ(run(test::ViewOf(w, {300}), true), expected) << impl;
    EXPECT_EQ(run(test::ViewOf(narrow, DType::kBF16, {300}), true), expected) << impl;
    EXPECT_NE(run(test::ViewOf(w, {300}), false), expected) << impl;
    EXPECT_NE(run(test::ViewOf(half, DType::kF16, {300}), true),
              run(test::ViewOf(half, DType::kF16, {300}), false));
  }
}

TEST(Norm, NanStaysInItsRow) {
  std::vector<float> x = RandomFloats(4 * 32, 1);
  x[40] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> y(x.size());
  RmsNormParams p;
  p.x = test::ViewOf(x, {4, 32});
  p.y = TensorView::Of(y.data(), {4, 32});
  ASSERT_TRUE(RmsNorm(p, TestContext(1)()).ok());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 32 == 1) << i;
}

TEST(Norm, EpsIsInForce) {
  const std::vector<float> x(8, 0.0f);
  const std::vector<float> tiny(8, 1e-3f);
  std::vector<float> y(8, -1.0f);
  RmsNormParams p;
  p.x = test::ViewOf(x, {1, 8});
  p.y = TensorView::Of(y.data(), {1, 8});
  ASSERT_TRUE(RmsNorm(p, TestContext(1)()).ok());
  for (const float v : y) EXPECT_EQ(v, 0.0f);
  p.x = test::ViewOf(tiny, {1, 8});
  p.eps = 3e-6;
  ASSERT_TRUE(RmsNorm(p, TestContext(1)()).ok());
  for (const float v : y) EXPECT_NEAR(v, 0.5f, 1e-6f);  // 1e-3 / sqrt(1e-6 + 3e-6)
}

TEST(NormErrors, EveryShapeTypeAndValueIsRefused) {
  const TestContext context(1);
  const auto refused = [&](const absl::Status& status, const char* named) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
  };
  std::vector<float> x = RandomFloats(64, 1);
  const std::vector<float> w = RandomFloats(16, 2);
  std::vector<float> y(64);
  RmsNormParams good;
  good.x = test::ViewOf(x, {4, 16});
  good.weight = test::ViewOf(w, {16});
  good.y = TensorView::Of(y.data(), {4, 16});
  ASSERT_TRUE(RmsNorm(good, context()).ok());
  RmsNormParams p = good;
  p.weight = test::ViewOf(w, {15});
  refused(RmsNorm(p, context()), "weight");
  p = good;
  p.x = test::ViewOf(x, {64});
  refused(RmsNorm(p, context()), "rank 2 or 3");
  p = good;
  p.y = TensorView::Of(y.data(), {16, 4});
  refused(RmsNorm(p, context()), "y");
  p = good;
  p.eps = -1.0;
  refused(RmsNorm(p, context()), "eps");
  p = good;
  p.y = TensorView::Of(x.data() + 1, {4, 15});
  refused(RmsNorm(p, context()), "y");
  p = good;
  p.x = test::ViewOf(x, {4, 15});
  p.weight = {};
  p.y = TensorView::Of(x.data() + 1, {4, 15});
  refused(RmsNorm(p, context()), "overlaps x");
  p = good;
  p.x = test::ViewOf(x, {16, 4}).Transpose(0, 1);
  refused(RmsNorm(p, context()), "x");
  LayerNormParams l;
  l.x = good.x;
  l.y = good.y;
  l.weight = good.weight;
  refused(LayerNorm(l, context()), "bias");
  GroupNormParams g;
  g.x = test::ViewOf(x, {16, 1, 2, 2});
  g.y = TensorView::Of(y.data(), {16, 1, 2, 2});
  g.weight = g.bias = good.weight;
  g.groups = 3;
  refused(GroupNorm(g, context()), "groups");
  g.groups = 0;
  refused(GroupNorm(g, context()), "groups");
}

}  // namespace
}  // namespace h3rt
