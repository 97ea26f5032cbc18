#include "h3rt/kernels/linear/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "h3rt/base/count_allocations.h"
#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/linear/linear_cases.h"

namespace h3rt {
namespace {

using test::GuardedOutput;
using test::RandomFloats;
using test::TestContext;
using ::testing::HasSubstr;

// The memory of one case; rows are `gap` elements further apart than their length.
struct Problem {
  explicit Problem(const LinearCase& c) : spec(c) {
    x = RandomFloats(c.m * (c.k + c.gap) + 1, 1);
    weight = RandomFloats(c.n * (c.k + c.gap) + 1, 2, 0.1f);
    bias = RandomFloats(c.n, 3);
    narrow = c.weight == DType::kF16 ? test::ToF16(weight) : test::ToBf16(weight);
    for (size_t i = 0; i < weight.size(); ++i) {
      if (c.weight == DType::kBF16) weight[i] = Bf16ToFloat(narrow[i]);
      if (c.weight == DType::kF16) weight[i] = F16ToFloat(narrow[i]);
    }
  }

  LinearParams Params(float* y, bool round_bf16) const {
    const int64_t row = spec.k + spec.gap;
    LinearParams p;
    const int64_t x_strides[] = {row, 1};
    p.x = ConstTensorView(reinterpret_cast<const std::byte*>(x.data()), DType::kF32,
                          {spec.m, spec.k}, x_strides);
    const auto* w = spec.weight == DType::kF32 ? reinterpret_cast<const std::byte*>(weight.data())
                                               : reinterpret_cast<const std::byte*>(narrow.data());
    if (spec.groups == 0) {
      p.weight = ConstTensorView(w, spec.weight, {spec.n, spec.k}, x_strides);
    } else {
      // Row g * r + i of the result is row i * groups + g of memory: interleaved heads.
      const int64_t strides[] = {row, spec.groups * row, 1};
      p.weight =
          ConstTensorView(w, spec.weight, {spec.groups, spec.n / spec.groups, spec.k}, strides);
    }
    if (spec.bias && spec.groups == 0) p.bias = test::ViewOf(bias, {spec.n});
    if (spec.bias && spec.groups > 0) {
      const int64_t strides[] = {1, spec.groups};
      p.bias = ConstTensorView(reinterpret_cast<const std::byte*>(bias.data()), DType::kF32,
                               {spec.groups, spec.n / spec.groups}, strides);
    }
    const int64_t y_strides[] = {spec.n + spec.gap, 1};
    p.y = TensorView(reinterpret_cast<std::byte*>(y), DType::kF32, {spec.m, spec.n}, y_strides);
    p.round_bf16 = round_bf16;
    return p;
  }

  int64_t MemoryRow(int64_t j) const {
    if (spec.groups == 0) return j;
    const int64_t r = spec.n / spec.groups;
    return j % r * spec.groups + j / r;
  }

  // A straightforward FP32 loop.
  std::vector<float> Naive() const {
    std::vector<float> y;
    for (int64_t i = 0; i < spec.m; ++i) {
      for (int64_t j = 0; j < spec.n; ++j) {
        float sum = 0.0f;
        const int64_t row = spec.k + spec.gap;
        for (int64_t c = 0; c < spec.k; ++c) {
          sum += x[static_cast<size_t>(i * row + c)] *
                 weight[static_cast<size_t>(MemoryRow(j) * row + c)];
        }
        if (spec.bias) sum += bias[static_cast<size_t>(MemoryRow(j))];
        y.push_back(sum);
      }
    }
    return y;
  }

  int64_t OutputFloats() const { return spec.m * (spec.n + spec.gap); }

  LinearCase spec;
  std::vector<float> x;
  std::vector<float> weight;
  std::vector<uint16_t> narrow;
  std::vector<float> bias;
};

std::optional<std::vector<float>> RunImpl(const Problem& problem, bool round_bf16,
                                          const std::string& impl) {
  const TestContext context(2, "linear", impl);
  GuardedOutput out(problem.OutputFloats());
  const absl::Status status = Linear(problem.Params(out.data(), round_bf16), context());
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  EXPECT_TRUE(out.GuardsIntact());
  EXPECT_EQ(out.Unwritten(), problem.spec.m * problem.spec.gap) << "gaps stay, all else is written";
  if (!status.ok()) return std::nullopt;
  std::vector<float> values;
  const int64_t row = problem.spec.n + problem.spec.gap;
  for (int64_t i = 0; i < problem.spec.m; ++i) {
    const auto from =
        out.values().subspan(static_cast<size_t>(i * row), static_cast<size_t>(problem.spec.n));
    values.insert(values.end(), from.begin(), from.end());
  }
  return values;
}

class LinearCases : public ::testing::TestWithParam<LinearCase> {};

TEST_P(LinearCases, StaysWithinTwiceTheErrorOfAPlainLoop) {
  const Problem problem(GetParam());
  const auto reference = RunImpl(problem, false, "ref");
  const auto fast = RunImpl(problem, false, "onednn");
  ASSERT_TRUE(reference && fast);
  const std::vector<float> naive = problem.Naive();
  const double bound = test::DerivedBound(naive, *reference);
  const CompareResult result = CompareFloats(*fast, *reference);
  EXPECT_TRUE(Within(result, bound)) << Describe(result) << ", bound " << bound;
}

TEST_P(LinearCases, RoundsOnceToBfloat16) {
  const Problem problem(GetParam());
  const auto reference = RunImpl(problem, true, "ref");
  const auto fast = RunImpl(problem, true, "onednn");
  ASSERT_TRUE(reference && fast);
  for (const float v : *fast) ASSERT_EQ(v, RoundToBf16(v));
  const CompareResult result = CompareFloats(*fast, *reference);
  EXPECT_TRUE(Within(result, test::Bf16FlipBound(problem.spec.m * problem.spec.n)))
      << Describe(result);
}

TEST_P(LinearCases, DeterminismSameBytesForEveryThreadCount) {
  const Problem problem(GetParam());
  std::vector<float> first;
  for (const int threads : test::kThreadCounts) {
    const TestContext context(threads);
    std::vector<float> y(static_cast<size_t>(problem.OutputFloats()), -7.0f);
    ASSERT_TRUE(Linear(problem.Params(y.data(), false), context()).ok());
    if (first.empty()) first = y;
    EXPECT_TRUE(Identical(CompareFloats(y, first))) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinearCases, ::testing::ValuesIn(kLinearCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Linear, LayoutAndTypeOfTheWeightDoNotChangeBytes) {
  const TestContext context(2);
  const int64_t m = 70;
  const int64_t n = 96;
  const int64_t k = 1100;
  const std::vector<float> x = RandomFloats(m * k, 1);
  const std::vector<uint16_t> narrow = test::ToBf16(RandomFloats(n * k, 2));
  std::vector<float> wide(narrow.size());
  WidenBf16(narrow.data(), wide.data(), n * k);
  LinearParams p;
  p.x = test::ViewOf(x, {m, k});
  std::vector<float> expected(static_cast<size_t>(m * n));
  p.weight = test::ViewOf(wide, {n, k});
  p.y = TensorView::Of(expected.data(), {m, n});
  ASSERT_TRUE(Linear(p, context()).ok());
  const std::vector<ConstTensorView> others = {test::ViewOf(narrow, DType::kBF16, {n, k}),
                                               test::ViewOf(narrow, DType::kBF16, {6, 16, k}),
                                               test::ViewOf(wide, {4, 24, k})};
  for (const ConstTensorView& weight : others) {
    GuardedOutput out(m * n);
    p.weight = weight;
    p.y = out.view({m, n});
    ASSERT_TRUE(Linear(p, context()).ok());
    EXPECT_TRUE(Identical(CompareFloats(out.values(), expected)));
  }
}

TEST(Linear, RoundedWeightsGiveTheBytesOfStoredBfloat16) {
  const int64_t m = 40;
  const int64_t n = 70;
  const int64_t k = 1100;
  const std::vector<float> x = RandomFloats(m * k, 1);
  const std::vector<float> w = RandomFloats(n * k, 2);
  const std::vector<float> bias = RandomFloats(n, 3);
  const std::vector<uint16_t> narrow_w = test::ToBf16(w);
  const std::vector<uint16_t> narrow_bias = test::ToBf16(bias);
  for (const char* impl : {"onednn", "ref"}) {
    const TestContext context(2, "linear", impl);
    const auto run = [&](bool narrow, bool round) {
      std::vector<float> y(static_cast<size_t>(m * n));
      LinearParams p;
      p.x = test::ViewOf(x, {m, k});
      p.weight = narrow ? test::ViewOf(narrow_w, DType::kBF16, {n, k}) : test::ViewOf(w, {n, k});
      p.bias = narrow ? test::ViewOf(narrow_bias, DType::kBF16, {n}) : test::ViewOf(bias, {n});
      p.y = TensorView::Of(y.data(), {m, n});
      p.round_weight_bf16 = round;
      EXPECT_TRUE(Linear(p, context()).ok());
      return y;
    };
    const std::vector<float> expected = run(true, false);
    EXPECT_EQ(run(false, true), expected) << impl;
    EXPECT_EQ(run(true, true), expected) << impl;
    EXPECT_NE(run(false, false), expected) << impl;
  }
}

TEST(Linear, NothingPastTheEndIsRead) {
  const TestContext context(1);
  const int64_t m = 19;
  const int64_t n = 21;
  const int64_t k = 37;
  std::vector<float> first;
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
    std::vector<float> x = RandomFloats(m * k, 1);
    std::vector<float> w = RandomFloats(n * k, 2);
    x.resize(x.size() + 64, poison);
    w.resize(w.size() + 64, poison);
    GuardedOutput out(m * n);
    LinearParams p;
    p.x = test::ViewOf(x, {m, k});
    p.weight = test::ViewOf(w, {n, k});
    p.y = out.view({m, n});
    ASSERT_TRUE(Linear(p, context()).ok());
    if (first.empty()) first.assign(out.values().begin(), out.values().end());
    EXPECT_TRUE(Identical(CompareFloats(out.values(), first)));
    for (const float v : out.values()) EXPECT_TRUE(std::isfinite(v));
  }
}

TEST(Linear, OffsetsPastTwoToThe32ElementsAreRight) {
  const TestContext context(2);
  const int64_t row = (int64_t{1} << 30) + 64;
  test::SparseFloats x(4 * row + 24);
  test::SparseFloats y(4 * row + 24);
  ASSERT_TRUE(x.data() != nullptr && y.data() != nullptr);
  const std::vector<float> dense = RandomFloats(5 * 24, 1);
  const std::vector<float> w = RandomFloats(20 * 24, 2);
  for (int64_t i = 0; i < 5; ++i) std::copy_n(dense.begin() + i * 24, 24, x.data() + i * row);
  LinearParams p;
  p.weight = test::ViewOf(w, {20, 24});
  std::vector<float> expected(5 * 20);
  p.x = test::ViewOf(dense, {5, 24});
  p.y = TensorView::Of(expected.data(), {5, 20});
  ASSERT_TRUE(Linear(p, context()).ok());
  const int64_t strides[] = {row, 1};
  p.x =
      ConstTensorView(reinterpret_cast<const std::byte*>(x.data()), DType::kF32, {5, 24}, strides);
  p.y = TensorView(reinterpret_cast<std::byte*>(y.data()), DType::kF32, {5, 20}, strides);
  ASSERT_TRUE(Linear(p, context()).ok());
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      EXPECT_EQ(y.data()[i * row + j], expected[static_cast<size_t>(i * 20 + j)]);
    }
  }
}

TEST(Linear, NanStaysInItsRow) {
  const TestContext context(2);
  std::vector<float> x = RandomFloats(4 * 50, 1);
  const std::vector<float> w = RandomFloats(30 * 50, 2);
  x[50 + 7] = std::numeric_limits<float>::quiet_NaN();
  GuardedOutput out(4 * 30);
  LinearParams p;
  p.x = test::ViewOf(x, {4, 50});
  p.weight = test::ViewOf(w, {30, 50});
  p.y = out.view({4, 30});
  ASSERT_TRUE(Linear(p, context()).ok());
  for (size_t i = 0; i < out.values().size(); ++i) {
    EXPECT_EQ(std::isnan(out.values()[i]), i / 30 == 1) << i;
  }
}

class LinearErrors : public ::testing::Test {
 protected:
  LinearErrors() {
    p_.x = test::ViewOf(x_, {4, 8});
    p_.weight = test::ViewOf(w_, {6, 8});
    p_.bias = test::ViewOf(bias_, {6});
    p_.y = out_.view({4, 6});
  }
  void Refused(const char* named) {
    const absl::Status status = Linear(p_, context_());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
    EXPECT_EQ(out_.Unwritten(), 24);
  }

  std::vector<float> x_ = RandomFloats(64, 1);
  std::vector<float> w_ = RandomFloats(64, 2);
  std::vector<float> bias_ = RandomFloats(6, 3);
  GuardedOutput out_{24};
  TestContext context_{1};
  LinearParams p_;
};

TEST_F(LinearErrors, DepthsThatDisagree) {
  p_.weight = test::ViewOf(w_, {6, 7});
  Refused("weight");
}
TEST_F(LinearErrors, RankOfTheInput) {
  p_.x = test::ViewOf(x_, {32});
  Refused("x");
}
TEST_F(LinearErrors, RankOfTheWeight) {
  p_.weight = test::ViewOf(w_, {48});
  Refused("weight");
}
TEST_F(LinearErrors, ShapeOfTheOutput) {
  p_.y = out_.view({4, 5});
  Refused("y");
}
TEST_F(LinearErrors, ShapeOfTheBias) {
  p_.bias = test::ViewOf(bias_, {5});
  Refused("bias");
}
TEST_F(LinearErrors, TypeOfTheInput) {
  p_.x = ConstTensorView(p_.x.data(), DType::kBF16, {4, 8});
  Refused("x");
}
TEST_F(LinearErrors, TypeOfTheWeight) {
  p_.weight = ConstTensorView(p_.weight.data(), DType::kE4M3, {6, 8});
  Refused("weight");
}
TEST_F(LinearErrors, StrideOfTheInput) {
  const int64_t strides[] = {16, 2};
  p_.x = ConstTensorView(p_.x.data(), DType::kF32, {4, 8}, strides);
  Refused("x");
}
TEST_F(LinearErrors, OutputRowsThatOverlap) {
  const int64_t strides[] = {5, 1};
  p_.y = TensorView(p_.y.data(), DType::kF32, {4, 6}, strides);
  Refused("y");
}
TEST_F(LinearErrors, OutputOverInput) {
  p_.y = TensorView::Of(x_.data(), {4, 6});
  Refused("overlaps x");
}
TEST_F(LinearErrors, NoMemory) {
  p_.x = ConstTensorView(nullptr, DType::kF32, {4, 8});
  Refused("x");
}
TEST_F(LinearErrors, UnknownImplementation) {
  const TestContext context(1, "linear", "cublas");
  const absl::Status status = Linear(p_, context());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("onednn, ref"));
}

TEST(Linear, OutputMayLieBesideTheInputInOneBuffer) {
  const TestContext context(2);
  std::vector<float> buffer = RandomFloats(5 * 20, 1);
  const std::vector<float> w = RandomFloats(12 * 8, 2);
  const int64_t strides[] = {20, 1};
  LinearParams p;
  p.x = ConstTensorView(reinterpret_cast<const std::byte*>(buffer.data()), DType::kF32, {5, 8},
                        strides);
  p.weight = test::ViewOf(w, {12, 8});
  p.y = TensorView(reinterpret_cast<std::byte*>(buffer.data() + 8), DType::kF32, {5, 12}, strides);
  const std::vector<float> before = buffer;
  ASSERT_TRUE(Linear(p, context()).ok());
  // The same product of a packed copy of x, and x itself as it was.
  std::vector<float> x;
  for (size_t i = 0; i < 5; ++i) {
    x.insert(x.end(), before.begin() + static_cast<int64_t>(i * 20),
             before.begin() + static_cast<int64_t>(i * 20 + 8));
  }
  std::vector<float> expected(5 * 12);
  p.x = test::ViewOf(x, {5, 8});
  p.y = TensorView::Of(expected.data(), {5, 12});
  ASSERT_TRUE(Linear(p, context()).ok());
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 20; ++j) {
      EXPECT_EQ(buffer[i * 20 + j], j < 8 ? before[i * 20 + j] : expected[i * 12 + j - 8]);
    }
  }
}

// A quarter of the time that the whole takes, then cancel. The machine may be busy, so that the
// other thread comes too early or too late; one attempt has to stop in the middle.
TEST(Linear, CancelledFromAnotherThreadWhileItRuns) {
  ThreadPool pool(1);
  CancelToken cancel;
  const ExecContext context{.pool = &pool, .cancel = &cancel};
  const int64_t m = 512;
  const int64_t n = 64 * 512;
  const int64_t k = 64;
  const std::vector<float> x = RandomFloats(m * k, 1);
  const std::vector<float> w = RandomFloats(n * k, 2);
  std::vector<float> y(static_cast<size_t>(m * n));
  LinearParams p;
  p.x = test::ViewOf(x, {m, k});
  p.weight = test::ViewOf(w, {n, k});
  p.y = TensorView::Of(y.data(), {m, n});
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(Linear(p, context).ok());
  const auto whole = std::chrono::steady_clock::now() - start;
  bool stopped_inside = false;
  for (int attempt = 0; attempt < 50 && !stopped_inside; ++attempt) {
    std::fill(y.begin(), y.end(), -7.0f);
    cancel.Reset();
    std::thread other([&] {
      std::this_thread::sleep_for(whole / 4);
      cancel.Cancel();
    });
    const absl::Status status = Linear(p, context);
    other.join();
    const bool begun = y.front() != -7.0f;
    const bool finished = y.back() != -7.0f;
    // With anything left out the status has to say so.
    EXPECT_TRUE(finished || status.code() == absl::StatusCode::kCancelled);
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kCancelled);
    stopped_inside = begun && !finished;
  }
  EXPECT_TRUE(stopped_inside);
}

TEST(Linear, ATaskAllocatesNoMoreThanItSays) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  const TestContext context(1);
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 300, 80}, {40, 1000, 2100}, {1100, 9000, 64}}) {
    const std::vector<float> x = RandomFloats(m * k, 1);
    const std::vector<uint16_t> w = test::ToBf16(RandomFloats(n * k, 2));
    const std::vector<float> bias = RandomFloats(n, 3);
    std::vector<float> y(static_cast<size_t>(m * n));
    LinearParams p;
    p.x = test::ViewOf(x, {m, k});
    p.weight = test::ViewOf(w, DType::kBF16, {n, k});
    p.bias = test::ViewOf(bias, {n});
    p.y = TensorView::Of(y.data(), {m, n});
    ASSERT_TRUE(Linear(p, context()).ok());  // oneDNN keeps the code that it generates
    const AllocationPeak peak;
    ASSERT_TRUE(Linear(p, context()).ok());
    // Packing is counted for the largest instruction set, at no more than twice what another needs.
    EXPECT_LE(peak.bytes(), LinearScratchBytes(m, n, k));
    EXPECT_GE(3 * peak.bytes(), LinearScratchBytes(m, n, k));
  }
  EXPECT_EQ(LinearScratchBytes(0, 10, 10), 0);
}

TEST(Linear, CancelledBeforeItBegins) {
  const TestContext base(2);
  CancelToken cancel;
  cancel.Cancel();
  ExecContext context = base();
  context.cancel = &cancel;
  const std::vector<float> x = RandomFloats(64, 1);
  GuardedOutput out(64);
  LinearParams p;
  p.x = test::ViewOf(x, {8, 8});
  p.weight = test::ViewOf(x, {8, 8});
  p.y = out.view({8, 8});
  EXPECT_EQ(Linear(p, context).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace h3rt
