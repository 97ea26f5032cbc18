#include "h3rt/kernels/rope/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/rope/rope_cases.h"

namespace h3rt {
namespace {

using test::RandomFloats;
using test::TestContext;
using ::testing::HasSubstr;

struct Problem {
  explicit Problem(const RopeCase& c)
      : spec(c), row(c.row > 0 ? c.row : c.h * c.d), x(RandomFloats(c.s * row, 1)) {
    for (int64_t i = 0; i < c.s * c.r; ++i) {
      cos.push_back(std::cos(0.37f * static_cast<float>(i)));
      sin.push_back(std::sin(0.37f * static_cast<float>(i)));
    }
    cos.resize(cos.size() + 1);
    sin.resize(sin.size() + 1);
  }
  RopeParams Params(std::vector<float>& data, bool round_bf16) const {
    RopeParams p;
    const int64_t strides[] = {row, spec.d, 1};
    p.x = TensorView(reinterpret_cast<std::byte*>(data.data()), DType::kF32,
                     {spec.s, spec.h, spec.d}, strides);
    p.cos = test::ViewOf(cos, {spec.s, spec.r});
    p.sin = test::ViewOf(sin, {spec.s, spec.r});
    p.round_bf16 = round_bf16;
    return p;
  }
  std::vector<float> Run(const std::string& impl, int threads, bool round_bf16) const {
    const TestContext context(threads, "rope", impl);
    std::vector<float> data = x;
    const absl::Status status = Rope(Params(data, round_bf16), context());
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    return data;
  }
  RopeCase spec;
  int64_t row;
  std::vector<float> x;
  std::vector<float> cos;
  std::vector<float> sin;
};

class RopeCases : public ::testing::TestWithParam<RopeCase> {};

TEST_P(RopeCases, RotatesPairsAndLeavesTheRest) {
  const Problem problem(GetParam());
  const RopeCase& c = GetParam();
  const std::vector<float> fast = problem.Run("cpu", 2, false);
  const std::vector<float> reference = problem.Run("ref", 2, false);
  std::vector<float> naive = problem.x;
  for (int64_t i = 0; i < c.s; ++i) {
    for (int64_t h = 0; h < c.h; ++h) {
      float* head = &naive[static_cast<size_t>(i * problem.row + h * c.d)];
      for (int64_t j = 0; j < c.r; ++j) {
        const float cos = problem.cos[static_cast<size_t>(i * c.r + j)];
        const float sin = problem.sin[static_cast<size_t>(i * c.r + j)];
        const float a = head[j];
        const float b = head[j + c.r];
        head[j] = a * cos - b * sin;
        head[j + c.r] = b * cos + a * sin;
      }
    }
  }
  const double bound = test::DerivedBound(naive, reference);
  const CompareResult result = CompareFloats(fast, reference);
  EXPECT_TRUE(Within(result, bound)) << Describe(result) << ", bound " << bound;
  for (int64_t e = 0; e < c.s * problem.row; ++e) {
    const int64_t in_row = e % problem.row;
    const bool rotated = in_row < c.h * c.d && in_row % c.d < 2 * c.r;
    const auto k = static_cast<size_t>(e);
    if (!rotated) {
      EXPECT_EQ(std::memcmp(&fast[k], &problem.x[k], 4), 0) << e;
    }
  }
}

TEST_P(RopeCases, RoundsCosSinProductsAndSum) {
  const Problem problem(GetParam());
  // The rounding points are all on FP32 operations of bfloat16 values, products of which are exact
  // in FP32: the two implementations agree in every bit when x is bfloat16.
  Problem exact = problem;
  for (float& v : exact.x) v = RoundToBf16(v);
  EXPECT_TRUE(Identical(CompareFloats(exact.Run("cpu", 2, true), exact.Run("ref", 2, true))));
}

TEST_P(RopeCases, DeterminismSameBytesForEveryThreadCount) {
  const Problem problem(GetParam());
  const std::vector<float> first = problem.Run("cpu", 1, false);
  for (const int threads : test::kThreadCounts) {
    EXPECT_TRUE(Identical(CompareFloats(problem.Run("cpu", threads, false), first)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RopeCases, ::testing::ValuesIn(kRopeCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(RopeErrors, EveryShapeAndTypeIsRefused) {
  const TestContext context(1);
  const auto refused = [&](const RopeParams& p, const char* named) {
    const absl::Status status = Rope(p, context());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
  };
  const Problem problem({"", 4, 2, 16, 8, 0});
  std::vector<float> x = problem.x;
  RopeParams p = problem.Params(x, false);
  p.cos = p.sin = test::ViewOf(problem.x, {4, 9});
  refused(p, "half of the head dimension");
  p = problem.Params(x, false);
  p.sin = test::ViewOf(problem.sin, {4, 7});
  refused(p, "sin");
  p = problem.Params(x, false);
  p.cos = test::ViewOf(problem.cos, {3, 8});
  refused(p, "cos");
  p = problem.Params(x, false);
  p.x = TensorView::Of(x.data(), {4, 32});
  refused(p, "x");
  p = problem.Params(x, false);
  p.cos = ConstTensorView(p.cos.data(), DType::kF64, {4, 8});
  refused(p, "cos");
  p = problem.Params(x, false);
  p.cos = TensorView::Of(x.data(), {4, 8});
  refused(p, "overlaps cos");
  p = problem.Params(x, false);
  const int64_t overlapping[] = {32, 8, 1};
  p.x = TensorView(p.x.data(), DType::kF32, {4, 2, 16}, overlapping);
  refused(p, "distinct elements");
}

}  // namespace
}  // namespace h3rt
