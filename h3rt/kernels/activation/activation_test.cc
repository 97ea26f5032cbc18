#include "h3rt/kernels/activation/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/activation/activation_cases.h"

namespace h3rt {
namespace {

using test::ExpectWithin;
using test::GuardedOutput;
using test::RandomFloats;
using test::TestContext;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float NaiveSilu(float x) { return x / (1.0f + std::exp(-x)); }

float NaiveSnake(float x, float a, float b) {
  const float s = std::sin(a * x);
  return x + s * s / (b + 1e-9f);
}

// A filter like the model's: a windowed sinc that sums to 1.
std::vector<float> Filter() {
  std::vector<float> f(12);
  double sum = 0.0;
  for (int k = 0; k < 12; ++k) {
    const double t = (k - 5.5) * 0.5;
    const double v = std::sin(M_PI * t) / (M_PI * t) * std::cos(M_PI * (k - 5.5) / 13.0);
    f[static_cast<size_t>(k)] = static_cast<float>(v);
    sum += v;
  }
  for (float& v : f) v = static_cast<float>(v / sum);
  return f;
}

struct SnakeProblem {
  explicit SnakeProblem(const SnakeCase& c)
      : spec(c),
        x(RandomFloats(c.c * c.n, 1)),
        alpha(RandomFloats(c.c, 2, 0.5f)),
        beta(RandomFloats(c.c, 3, 0.5f)),
        up(Filter()),
        down(Filter()) {
    down[2] += 0.01f;  // the two are told apart, and so are the ends of each
    up[10] -= 0.02f;
  }
  AntiAliasedSnakeParams Params(float* y) const {
    AntiAliasedSnakeParams p;
    p.x = test::ViewOf(x, {spec.c, spec.n});
    p.alpha = test::ViewOf(alpha, {spec.c});
    p.beta = test::ViewOf(beta, {spec.c});
    p.up_filter = test::ViewOf(up, {12});
    p.down_filter = test::ViewOf(down, {12});
    p.y = TensorView::Of(y, {spec.c, spec.n});
    return p;
  }
  std::vector<float> Naive() const {
    std::vector<float> y;
    const int64_t n = spec.n;
    for (int64_t c = 0; c < spec.c; ++c) {
      const float* from = &x[static_cast<size_t>(c * n)];
      std::vector<float> s(static_cast<size_t>(2 * n + 30), 0.0f);
      for (int64_t i = 0; i < n + 10; ++i) {
        for (int64_t k = 0; k < 12; ++k) {
          s[static_cast<size_t>(2 * i + k)] +=
              2.0f * from[std::clamp<int64_t>(i - 5, 0, n - 1)] * up[static_cast<size_t>(k)];
        }
      }
      const float a = std::exp(alpha[static_cast<size_t>(c)]);
      const float b = std::exp(beta[static_cast<size_t>(c)]);
      for (float& v : s) v = NaiveSnake(v, a, b);
      for (int64_t o = 0; o < n; ++o) {
        float sum = 0.0f;
        for (int64_t k = 0; k < 12; ++k) {
          const int64_t j = std::clamp<int64_t>(2 * o + k - 5, 0, 2 * n - 1);
          sum += s[static_cast<size_t>(j + 15)] * down[static_cast<size_t>(k)];
        }
        y.push_back(sum);
      }
    }
    return y;
  }
  SnakeCase spec;
  std::vector<float> x;
  std::vector<float> alpha;
  std::vector<float> beta;
  std::vector<float> up;
  std::vector<float> down;
};

std::vector<float> RunSnake(const SnakeProblem& problem, const std::string& impl) {
  const TestContext context(2, "activation", impl);
  GuardedOutput out(problem.spec.c * problem.spec.n);
  const absl::Status status = AntiAliasedSnake(problem.Params(out.data()), context());
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  EXPECT_TRUE(out.GuardsIntact());
  EXPECT_TRUE(out.AllWritten());
  return {out.values().begin(), out.values().end()};
}

class AntiAliasedSnakeCases : public ::testing::TestWithParam<SnakeCase> {};

TEST_P(AntiAliasedSnakeCases, StaysWithinTwiceTheErrorOfAPlainLoop) {
  const SnakeProblem problem(GetParam());
  ExpectWithin(RunSnake(problem, "cpu"), problem.Naive(), RunSnake(problem, "ref"));
}

TEST_P(AntiAliasedSnakeCases, DeterminismSameBytesForEveryThreadCount) {
  const SnakeProblem problem(GetParam());
  EXPECT_FALSE(
      test::SameForAllThreadCounts(problem.spec.c * problem.spec.n, [&](const ExecContext& context,
                                                                        float* y) {
        return AntiAliasedSnake(problem.Params(y), context).ok();
      }).empty());
}

INSTANTIATE_TEST_SUITE_P(All, AntiAliasedSnakeCases, ::testing::ValuesIn(kSnakeCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(AntiAliasedSnake, ConstantInputGivesItsSnakeEverywhere) {
  for (const char* impl : {"cpu", "ref"}) {
    SnakeProblem problem({"", 1, 40});
    problem.x.assign(40, 0.7f);
    problem.up = problem.down = Filter();
    const float expected = NaiveSnake(0.7f, std::exp(problem.alpha[0]), std::exp(problem.beta[0]));
    // The doubled signal has two values, 0.7 times twice the sum of the even or of the odd taps,
    // which are not quite one half each; the down filter mixes their snakes with weights that sum
    // to 1. The mix is at most sum |weight| times as far from the snake of 0.7 as the further one.
    float taps[2] = {};
    float size = 0.0f;
    for (size_t k = 0; k < 12; ++k) {
      taps[k % 2] += problem.up[k];
      size += std::fabs(problem.down[k]);
    }
    float furthest = 0.0f;
    for (const float sum : taps) {
      const float snake =
          NaiveSnake(1.4f * sum, std::exp(problem.alpha[0]), std::exp(problem.beta[0]));
      furthest = std::max(furthest, std::fabs(snake - expected));
    }
    const float bound = size * furthest + 1e-6f;  // and a few float32 roundings of values near 1
    ASSERT_LT(bound, 0.05f);
    for (const float v : RunSnake(problem, impl)) EXPECT_NEAR(v, expected, bound) << impl;
  }
}

TEST(AntiAliasedSnake, ArgumentsFarBeyondTheReductionStayRight) {
  SnakeProblem problem({"", 1, 600});
  problem.alpha[0] = 0.0f;
  for (size_t i = 0; i < 600; i += 7) problem.x[i] *= 3e5f;
  ExpectWithin(RunSnake(problem, "cpu"), problem.Naive(), RunSnake(problem, "ref"));
}

TEST(AntiAliasedSnake, NanReachesItsNeighboursOnly) {
  SnakeProblem problem({"", 2, 1200});
  problem.x[600] = kNan;
  const std::vector<float> y = RunSnake(problem, "cpu");
  const std::vector<float> reference = RunSnake(problem, "ref");
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), std::isnan(reference[i])) << i;
  EXPECT_TRUE(std::isnan(y[600]));
  EXPECT_TRUE(std::isfinite(y[620]));
}

class SwiGluCases : public ::testing::TestWithParam<RowsCase> {};

TEST_P(SwiGluCases, StaysWithinTwiceTheErrorOfAPlainLoopAndRounds) {
  const RowsCase& c = GetParam();
  // gate and value are two column ranges of one buffer.
  const int64_t row = 2 * c.f + c.gap;
  const std::vector<float> u = RandomFloats(c.m * row, 1, 3.0f);
  const int64_t strides[] = {row, 1};
  SwiGluParams p;
  p.gate = ConstTensorView(reinterpret_cast<const std::byte*>(u.data()), DType::kF32, {c.m, c.f},
                           strides);
  p.value = ConstTensorView(reinterpret_cast<const std::byte*>(u.data() + c.f), DType::kF32,
                            {c.m, c.f}, strides);
  std::vector<float> naive;
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.f; ++j) {
      naive.push_back(NaiveSilu(u[static_cast<size_t>(i * row + j)]) *
                      u[static_cast<size_t>(i * row + c.f + j)]);
    }
  }
  for (const bool rounded : {false, true}) {
    p.round_bf16 = rounded;
    GuardedOutput fast(c.m * c.f);
    GuardedOutput reference(c.m * c.f);
    p.y = fast.view({c.m, c.f});
    ASSERT_TRUE(SwiGlu(p, TestContext(2, "activation", "cpu")()).ok());
    p.y = reference.view({c.m, c.f});
    ASSERT_TRUE(SwiGlu(p, TestContext(2, "activation", "ref")()).ok());
    EXPECT_TRUE(fast.AllWritten() && fast.GuardsIntact());
    if (rounded) {
      const CompareResult result = CompareFloats(fast.values(), reference.values());
      EXPECT_TRUE(Within(result, test::Bf16FlipBound(c.m * c.f))) << Describe(result);
    } else {
      ExpectWithin(fast.values(), naive, reference.values());
    }
    EXPECT_FALSE(test::SameForAllThreadCounts(c.m * c.f, [&](const ExecContext& context, float* y) {
                   p.y = TensorView::Of(y, {c.m, c.f});
                   return SwiGlu(p, context).ok();
                 }).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, SwiGluCases, ::testing::ValuesIn(kSwiGluCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(SwiGlu, MayOverwriteItsGate) {
  const TestContext context(1);
  std::vector<float> gate = RandomFloats(60, 1);
  const std::vector<float> value = RandomFloats(60, 2);
  std::vector<float> expected(60);
  SwiGluParams p;
  p.gate = test::ViewOf(gate, {6, 10});
  p.value = test::ViewOf(value, {6, 10});
  p.y = TensorView::Of(expected.data(), {6, 10});
  ASSERT_TRUE(SwiGlu(p, context()).ok());
  p.y = TensorView::Of(gate.data(), {6, 10});
  ASSERT_TRUE(SwiGlu(p, context()).ok());
  EXPECT_EQ(gate, expected);
}

TEST(Activate, DeterminismAndErrorOfBothFunctions) {
  const int64_t n = 70000;
  std::vector<float> x = RandomFloats(n, 1, 4.0f);
  for (const Pointwise function : {Pointwise::kSilu, Pointwise::kGeluTanh}) {
    std::vector<float> naive;
    for (const float v : x) {
      naive.push_back(function == Pointwise::kSilu
                          ? NaiveSilu(v)
                          : 0.5f * v *
                                (1.0f + std::tanh(0.7978845608f * (v + 0.044715f * v * v * v))));
    }
    std::vector<float> reference(x.size());
    const ConstTensorView in = test::ViewOf(x, {n});
    ASSERT_TRUE(Activate(function, in, TensorView::Of(reference.data(), {n}),
                         TestContext(2, "activation", "ref")())
                    .ok());
    const std::vector<float> fast =
        test::SameForAllThreadCounts(n, [&](const ExecContext& context, float* y) {
          return Activate(function, in, TensorView::Of(y, {n}), context).ok();
        });
    ASSERT_FALSE(fast.empty());
    ExpectWithin(fast, naive, reference);
  }
}

TEST(Activate, SpecialValues) {
  const TestContext context(1);
  std::vector<float> x = {0.0f, -0.0f, kNan, 100.0f, -100.0f, 1e30f, -1e30f};
  ASSERT_TRUE(
      Activate(Pointwise::kSilu, test::ViewOf(x, {7}), TensorView::Of(x.data(), {7}), context())
          .ok());
  EXPECT_EQ(x[0], 0.0f);
  EXPECT_TRUE(std::isnan(x[2]));
  EXPECT_EQ(x[3], 100.0f);
  EXPECT_NEAR(x[4], 0.0f, 1e-30f);
  EXPECT_EQ(x[5], 1e30f);
  EXPECT_EQ(x[6], 0.0f);
}

TEST(Snake, StaysWithinTwiceTheErrorOfAPlainLoop) {
  const int64_t c = 3;
  const int64_t n = 20000;
  const std::vector<float> x = RandomFloats(c * n, 1, 10.0f);
  const std::vector<float> alpha = {0.3f, 1.0f, 8.0f};
  std::vector<float> naive;
  for (int64_t i = 0; i < c * n; ++i) {
    const float a = alpha[static_cast<size_t>(i / n)];
    naive.push_back(NaiveSnake(x[static_cast<size_t>(i)], a, a));
  }
  SnakeParams p;
  p.x = test::ViewOf(x, {c, n});
  p.alpha = test::ViewOf(alpha, {c});
  std::vector<float> reference(x.size());
  p.y = TensorView::Of(reference.data(), {c, n});
  ASSERT_TRUE(Snake(p, TestContext(2, "activation", "ref")()).ok());
  const std::vector<float> fast =
      test::SameForAllThreadCounts(c * n, [&](const ExecContext& context, float* y) {
        p.y = TensorView::Of(y, {c, n});
        return Snake(p, context).ok();
      });
  ASSERT_FALSE(fast.empty());
  ExpectWithin(fast, naive, reference);
}

TEST(ActivationErrors, EveryShapeTypeAndOverlapIsRefused) {
  const TestContext context(1);
  const auto refused = [&](const absl::Status& status, const char* named) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
  };
  std::vector<float> a = RandomFloats(64, 1);
  std::vector<float> b = RandomFloats(64, 2);
  std::vector<float> y(64);
  const auto out = [&](const Shape& shape) { return TensorView::Of(y.data(), shape); };
  refused(SwiGlu({test::ViewOf(a, {4, 8}), test::ViewOf(b, {4, 7}), out({4, 8})}, context()),
          "value");
  refused(SwiGlu({test::ViewOf(a, {4, 8}), test::ViewOf(b, {4, 8}), out({8, 4})}, context()), "y");
  refused(SwiGlu({test::ViewOf(a, {32}), test::ViewOf(b, {32}), out({32})}, context()), "gate");
  refused(SwiGlu({test::ViewOf(a, {8, 4}).Transpose(0, 1), test::ViewOf(b, {4, 8}), out({4, 8})},
                 context()),
          "gate");
  refused(SwiGlu({test::ViewOf(a, {4, 8}), test::ViewOf(b, {4, 8}),
                  TensorView::Of(a.data() + 1, {4, 8})},
                 context()),
          "overlaps gate");
  refused(Activate(Pointwise::kSilu, test::ViewOf(a, {8}), out({7}), context()), "y");
  refused(Activate(Pointwise::kSilu, ConstTensorView(test::ViewOf(a, {8}).data(), DType::kF16, {8}),
                   out({8}), context()),
          "x");
  refused(Snake({test::ViewOf(a, {4, 8}), test::ViewOf(b, {3}), out({4, 8})}, context()), "alpha");
  refused(Snake({test::ViewOf(a, {8, 4}).Transpose(0, 1), test::ViewOf(b, {4}), out({4, 8})},
                context()),
          "x");
  const SnakeProblem problem({"", 2, 16});
  AntiAliasedSnakeParams p = problem.Params(y.data());
  p.up_filter = test::ViewOf(problem.up, {11});
  refused(AntiAliasedSnake(p, context()), "up_filter");
  p = problem.Params(y.data());
  p.beta = test::ViewOf(problem.beta, {1});
  refused(AntiAliasedSnake(p, context()), "beta");
  p = problem.Params(y.data());
  p.x = TensorView::Of(y.data(), {2, 16});
  refused(AntiAliasedSnake(p, context()), "overlaps x");
}

}  // namespace
}  // namespace h3rt
