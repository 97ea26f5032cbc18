#include "h3rt/kernels/add_norm/add_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/add_norm/add_norm_cases.h"

namespace h3rt {
namespace {

using test::RandomFloats;
using test::TestContext;
using test::ToBf16;
using ::testing::Each;
using ::testing::HasSubstr;

// The tensors of one problem; outputs are poisoned and lie between guards.
struct Problem {
  static constexpr size_t kGuard = 32;
  static constexpr uint16_t kPoison = 0xffff;

  Problem(int64_t rows_in, int64_t hidden_in)
      : rows(rows_in),
        hidden(hidden_in),
        x(ToBf16(RandomFloats(rows * hidden, 1))),
        r(ToBf16(RandomFloats(rows * hidden, 2, 0.5f))),
        w(ToBf16(RandomFloats(hidden, 3))),
        h(x.size() + 2 * kGuard, kPoison),
        y(h) {}
  static TensorView Out(std::vector<uint16_t>& held, const Shape& shape) {
    return TensorView(reinterpret_cast<std::byte*>(held.data() + kGuard), DType::kBF16, shape);
  }
  AddNormParams Params() {
    AddNormParams p;
    p.x = test::ViewOf(x, DType::kBF16, {rows, hidden});
    p.r = test::ViewOf(r, DType::kBF16, {rows, hidden});
    p.w = test::ViewOf(w, DType::kBF16, {hidden});
    p.h = Out(h, {rows, hidden});
    p.y = Out(y, {rows, hidden});
    return p;
  }
  // The outputs without their guards, which must hold what they held.
  static std::vector<uint16_t> Inside(const std::vector<uint16_t>& held) {
    const auto n = static_cast<std::ptrdiff_t>(kGuard);
    EXPECT_THAT(std::vector<uint16_t>(held.begin(), held.begin() + n), Each(kPoison));
    EXPECT_THAT(std::vector<uint16_t>(held.end() - n, held.end()), Each(kPoison));
    return {held.begin() + n, held.end() - n};
  }
  void Run(const char* impl, int threads = 2) {
    std::fill(h.begin(), h.end(), kPoison);
    std::fill(y.begin(), y.end(), kPoison);
    const absl::Status status = AddNorm(Params(), TestContext(threads, "add_norm", impl)());
    ASSERT_TRUE(status.ok()) << MessageOf(status);
  }

  int64_t rows;
  int64_t hidden;
  std::vector<uint16_t> x, r, w, h, y;
};

class AddNormCases : public ::testing::TestWithParam<AddNormCase> {};

// y is rounded to bfloat16 on both sides, so a float32 error shows only where it moves a value over
// the middle between two of them: no element by more than one step, and few elements at all.
TEST_P(AddNormCases, StrictIsWithinOneStepOfFloat64AndSeldomThat) {
  Problem problem(GetParam().rows, GetParam().hidden);
  problem.Run("strict");
  const std::vector<uint16_t> h = Problem::Inside(problem.h);
  const std::vector<uint16_t> y = Problem::Inside(problem.y);
  problem.Run("ref");
  EXPECT_EQ(h, Problem::Inside(problem.h));
  const std::vector<uint16_t> expected = Problem::Inside(problem.y);
  if (y.empty()) return;
  const CompareResult result = CompareBf16(y, expected);
  EXPECT_TRUE(WithinUlp(result, 1)) << Describe(result);
  EXPECT_TRUE(Within(result, test::Bf16FlipBound(static_cast<int64_t>(y.size()))))
      << Describe(result);
}

TEST_P(AddNormCases, DeterminismSameBytesForEveryThreadCount) {
  Problem problem(GetParam().rows, GetParam().hidden);
  for (const char* impl : {"strict", "ref"}) {
    problem.Run(impl, 1);
    const std::vector<uint16_t> h = problem.h;
    const std::vector<uint16_t> y = problem.y;
    for (const int threads : {2, 5}) {
      problem.Run(impl, threads);
      EXPECT_EQ(problem.h, h);
      EXPECT_EQ(problem.y, y);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AddNormCases, ::testing::ValuesIn(kAddNormCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(AddNorm, ClosedFormsHold) {
  for (const char* impl : {"strict", "ref"}) {
    // A constant row: every element is 4, its root mean square 4, so y is the weight.
    Problem constant(2, 264);
    std::fill(constant.x.begin(), constant.x.end(), FloatToBf16(3.0f));
    std::fill(constant.r.begin(), constant.r.end(), FloatToBf16(1.0f));
    constant.Run(impl);
    EXPECT_THAT(Problem::Inside(constant.h), Each(FloatToBf16(4.0f)));
    const std::vector<uint16_t> y = Problem::Inside(constant.y);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], constant.w[i % 264]) << impl << i;
    // What is added undoes the input: zeros, not NaN.
    Problem undone(3, 100);
    for (size_t i = 0; i < undone.x.size(); ++i) undone.r[i] = undone.x[i] ^ 0x8000;
    undone.Run(impl);
    EXPECT_THAT(Problem::Inside(undone.h), Each(uint16_t{0}));
    for (const uint16_t bits : Problem::Inside(undone.y)) EXPECT_EQ(bits & 0x7fff, 0);
    // One element of 16: the root mean square is 2 / 4, so it becomes 4 w.
    Problem single(1, 16);
    std::fill(single.x.begin(), single.x.end(), uint16_t{0});
    std::fill(single.r.begin(), single.r.end(), uint16_t{0});
    single.x[5] = FloatToBf16(2.0f);
    single.w[5] = FloatToBf16(1.5f);
    single.Run(impl);
    EXPECT_EQ(Bf16ToFloat(Problem::Inside(single.y)[5]), 6.0f);
    EXPECT_EQ(Problem::Inside(single.y)[4] & 0x7fff, 0);
  }
}

TEST(AddNorm, EpsIsInForce) {
  for (const char* impl : {"strict", "ref"}) {
    Problem tiny(1, 8);
    std::fill(tiny.x.begin(), tiny.x.end(), FloatToBf16(0x1p-10f));
    std::fill(tiny.r.begin(), tiny.r.end(), uint16_t{0});
    std::fill(tiny.w.begin(), tiny.w.end(), FloatToBf16(1.0f));
    AddNormParams p = tiny.Params();
    p.eps = 3 * 0x1p-20;  // mean + eps = 4 * 2^-20, so y = 1 / 2
    ASSERT_TRUE(AddNorm(p, TestContext(1, "add_norm", impl)()).ok());
    EXPECT_THAT(Problem::Inside(tiny.y), Each(FloatToBf16(0.5f)));
  }
}

TEST(AddNorm, NanStaysInItsRowAndIsTheDevicesNan) {
  Problem problem(4, 40);
  problem.x[50] = 0xffc1;
  problem.Run("strict");
  const std::vector<uint16_t> h = Problem::Inside(problem.h);
  const std::vector<uint16_t> y = Problem::Inside(problem.y);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i] == 0x7fff, i / 40 == 1) << i;
    EXPECT_EQ(h[i] == 0x7fff, i == 50) << i;
  }
}

TEST(AddNorm, SumsThatOverflowGiveZerosAndInfinitiesNan) {
  Problem problem(1, 64);
  std::fill(problem.x.begin(), problem.x.end(), FloatToBf16(0x1p100f));
  std::fill(problem.r.begin(), problem.r.end(), uint16_t{0});
  problem.Run("strict");
  for (const uint16_t bits : Problem::Inside(problem.y)) EXPECT_EQ(bits & 0x7fff, 0);
  problem.x[0] = 0x7f80;
  problem.Run("strict");
  EXPECT_EQ(Problem::Inside(problem.y)[0], 0x7fff);
}

TEST(AddNormErrors, EveryShapeTypeAndValueIsRefused) {
  const TestContext context(1);
  Problem problem(4, 16);
  const AddNormParams good = problem.Params();
  ASSERT_TRUE(AddNorm(good, context()).ok());
  const auto refused = [&](const AddNormParams& p, const char* named) {
    const absl::Status status = AddNorm(p, context());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
  };
  AddNormParams p = good;
  p.x = {};
  refused(p, "x");
  p = good;
  p.x = test::ViewOf(problem.x, DType::kF16, {4, 16});
  refused(p, "BF16");
  p = good;
  p.r = test::ViewOf(problem.r, DType::kBF16, {2, 32});
  refused(p, "r");
  p = good;
  p.w = test::ViewOf(problem.w, DType::kBF16, {15});
  refused(p, "w");
  p = good;
  p.x = p.x.Reshape({16, 4}).Transpose(0, 1);
  refused(p, "x");
  p = good;
  p.y = p.h;
  refused(p, "overlaps");
  p = good;
  p.h = TensorView(reinterpret_cast<std::byte*>(problem.x.data()), DType::kBF16, {4, 16});
  refused(p, "overlaps");
  p = good;
  p.eps = -1;
  refused(p, "eps");
  p = good;
  p.eps = std::numeric_limits<double>::quiet_NaN();
  refused(p, "eps");
  Problem wide(1, 16385);
  refused(wide.Params(), "16384");
  Problem none(2, 0);
  refused(none.Params(), "16384");
  const absl::Status unknown = AddNorm(good, TestContext(1, "add_norm", "fast")());
  EXPECT_THAT(MessageOf(unknown), HasSubstr("strict, ref"));
}

}  // namespace
}  // namespace h3rt
