#include "h3rt/kernels/modulate/modulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/modulate/modulate_cases.h"

namespace h3rt {
namespace {

using test::ExpectWithin;
using test::RandomFloats;
using test::TestContext;
using ::testing::HasSubstr;

// Every tensor has rows of c + gap elements.
struct Problem {
  explicit Problem(const ModulateCase& c)
      : spec(c),
        x(RandomFloats(c.s * (c.c + c.gap), 1)),
        y(RandomFloats(c.s * (c.c + c.gap), 2)),
        shift(RandomFloats(c.rows * (c.c + c.gap), 3)),
        scale(RandomFloats(c.rows * (c.c + c.gap), 4)) {
    for (int64_t i = 0; i < c.s; ++i) row.push_back(static_cast<int32_t>(i * 7 % c.rows));
  }
  template <typename View, typename Data>
  View Of(Data* data, int64_t rows) const {
    const int64_t strides[] = {spec.c + spec.gap, 1};
    return View(reinterpret_cast<typename View::Byte*>(data), DType::kF32, {rows, spec.c}, strides);
  }
  std::vector<float> Modulated(const std::string& impl, int threads, bool round_bf16) const {
    const TestContext context(threads, "modulate", impl);
    std::vector<float> out(x.size(), -9.0f);
    ModulateParams p;
    p.x = Of<ConstTensorView>(x.data(), spec.s);
    p.shift = Of<ConstTensorView>(shift.data(), spec.rows);
    p.scale = Of<ConstTensorView>(scale.data(), spec.rows);
    p.row = row;
    p.y = Of<TensorView>(out.data(), spec.s);
    p.round_bf16 = round_bf16;
    const absl::Status status = Modulate(p, context());
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    return out;
  }
  std::vector<float> Added(const std::string& impl, int threads, bool gated,
                           bool round_bf16) const {
    const TestContext context(threads, "modulate", impl);
    std::vector<float> out = x;
    GatedResidualParams p;
    p.x = Of<TensorView>(out.data(), spec.s);
    p.y = Of<ConstTensorView>(y.data(), spec.s);
    if (gated) p.gate = Of<ConstTensorView>(scale.data(), spec.rows);
    if (gated) p.row = row;
    p.round_bf16 = round_bf16;
    const absl::Status status = GatedResidual(p, context());
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    return out;
  }
  ModulateCase spec;
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> shift;
  std::vector<float> scale;
  std::vector<int32_t> row;
};

class ModulateCases : public ::testing::TestWithParam<ModulateCase> {};

TEST_P(ModulateCases, StaysWithinTwiceTheErrorOfAPlainLoop) {
  const Problem problem(GetParam());
  const int64_t width = GetParam().c + GetParam().gap;
  std::vector<float> modulated(problem.x.size(), -9.0f);
  std::vector<float> gated = problem.x;
  std::vector<float> added = problem.x;
  for (int64_t i = 0; i < GetParam().s; ++i) {
    for (int64_t j = 0; j < GetParam().c; ++j) {
      const auto e = static_cast<size_t>(i * width + j);
      const auto t = static_cast<size_t>(problem.row[static_cast<size_t>(i)] * width + j);
      modulated[e] = problem.x[e] * (1.0f + problem.scale[t]) + problem.shift[t];
      gated[e] += problem.scale[t] * problem.y[e];
      added[e] += problem.y[e];
    }
  }
  ExpectWithin(problem.Modulated("cpu", 2, false), modulated, problem.Modulated("ref", 2, false));
  ExpectWithin(problem.Added("cpu", 2, true, false), gated, problem.Added("ref", 2, true, false));
  ExpectWithin(problem.Added("cpu", 2, false, false), added, problem.Added("ref", 2, false, false));
}

TEST_P(ModulateCases, RoundingPointsGiveTheBitsOfTheReferenceOnBfloat16Input) {
  Problem problem(GetParam());
  for (auto* values : {&problem.x, &problem.y, &problem.shift, &problem.scale}) {
    for (float& v : *values) v = RoundToBf16(v);
  }
  // Products of bfloat16 values are exact in FP32, and the reference too rounds a sum to FP32
  // before it rounds to bfloat16.
  const auto same = [](const std::vector<float>& fast, const std::vector<float>& reference) {
    const CompareResult result = CompareFloats(fast, reference);
    EXPECT_TRUE(Identical(result)) << Describe(result);
  };
  same(problem.Modulated("cpu", 2, true), problem.Modulated("ref", 2, true));
  same(problem.Added("cpu", 2, true, true), problem.Added("ref", 2, true, true));
  same(problem.Added("cpu", 2, false, true), problem.Added("ref", 2, false, true));
}

TEST_P(ModulateCases, DeterminismSameBytesForEveryThreadCount) {
  const Problem problem(GetParam());
  for (const int threads : test::kThreadCounts) {
    EXPECT_TRUE(Identical(CompareFloats(problem.Modulated("cpu", threads, false),
                                        problem.Modulated("cpu", 1, false))));
    EXPECT_TRUE(Identical(CompareFloats(problem.Added("cpu", threads, true, false),
                                        problem.Added("cpu", 1, true, false))));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModulateCases, ::testing::ValuesIn(kModulateCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Modulate, EachRoundingPointCounts) {
  // 1 + 2^-8 is a tie and rounds to 1 before the product, so y is x + shift; without that rounding
  // y is larger.
  std::vector<float> x = {128.0f};
  const std::vector<float> scale = {0x1p-8f};
  const std::vector<float> shift = {1.0f};
  const std::vector<int32_t> row = {0};
  std::vector<float> y(1);
  for (const char* impl : {"cpu", "ref"}) {
    const TestContext context(1, "modulate", impl);
    ModulateParams p;
    p.x = test::ViewOf(x, {1, 1});
    p.scale = test::ViewOf(scale, {1, 1});
    p.shift = test::ViewOf(shift, {1, 1});
    p.row = row;
    p.y = TensorView::Of(y.data(), {1, 1});
    p.round_bf16 = true;
    ASSERT_TRUE(Modulate(p, context()).ok());
    EXPECT_EQ(y[0], 129.0f) << impl;
    p.round_bf16 = false;
    ASSERT_TRUE(Modulate(p, context()).ok());
    EXPECT_EQ(y[0], 129.5f) << impl;
  }
}

TEST(ModulateErrors, EveryShapeTypeAndIndexIsRefused) {
  const TestContext context(1);
  const auto refused = [&](const absl::Status& status, const char* named) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
  };
  std::vector<float> x = RandomFloats(40, 1);
  std::vector<float> out(40);
  const std::vector<float> table = RandomFloats(30, 2);
  std::vector<int32_t> row = {0, 1, 2, 0};
  ModulateParams good;
  good.x = test::ViewOf(x, {4, 10});
  good.shift = good.scale = test::ViewOf(table, {3, 10});
  good.row = row;
  good.y = TensorView::Of(out.data(), {4, 10});
  ASSERT_TRUE(Modulate(good, context()).ok());
  ModulateParams p = good;
  p.row = std::span<const int32_t>(row).first(3);
  refused(Modulate(p, context()), "row index");
  for (const int32_t bad : {-1, 3}) {
    row[2] = bad;
    refused(Modulate(good, context()), "row index");
  }
  row[2] = 2;
  p = good;
  p.scale = test::ViewOf(table, {2, 10});
  refused(Modulate(p, context()), "scale");
  p = good;
  p.shift = p.scale = test::ViewOf(table, {3, 9});
  refused(Modulate(p, context()), "shift");
  p = good;
  p.y = TensorView::Of(out.data(), {10, 4});
  refused(Modulate(p, context()), "y");
  p = good;
  p.x = test::ViewOf(x, {10, 4}).Transpose(0, 1);
  refused(Modulate(p, context()), "x");
  p = good;
  p.y = TensorView::Of(x.data() + 1, {4, 9});
  p.x = test::ViewOf(x, {4, 9});
  p.shift = p.scale = test::ViewOf(table, {3, 9});
  refused(Modulate(p, context()), "overlaps x");
  GatedResidualParams g;
  g.x = TensorView::Of(out.data(), {4, 10});
  g.y = test::ViewOf(x, {4, 9});
  refused(GatedResidual(g, context()), "y");
  g.y = test::ViewOf(x, {4, 10});
  g.gate = test::ViewOf(table, {3, 10});
  refused(GatedResidual(g, context()), "row index");
  g.row = row;
  g.gate = test::ViewOf(table, {3, 9});
  refused(GatedResidual(g, context()), "gate");
  g.gate = {};
  g.y = g.x;
  refused(GatedResidual(g, context()), "overlaps y");
}

}  // namespace
}  // namespace h3rt
