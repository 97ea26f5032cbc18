#include "h3rt/kernels/conv/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "h3rt/base/count_allocations.h"
#include "h3rt/cpu/test_support.h"
#include "h3rt/kernels/conv/conv_cases.h"

namespace h3rt {
namespace {

using test::GuardedOutput;
using test::RandomFloats;
using test::TestContext;
using ::testing::HasSubstr;

// Weights in the type of the case and, for the plain loop, as floats.
struct Weights {
  Weights(int64_t n, DType type) : dtype(type), wide(RandomFloats(n + 1, 2, 0.2f)) {
    narrow = type == DType::kF16 ? test::ToF16(wide) : test::ToBf16(wide);
    for (size_t i = 0; i < wide.size() && type != DType::kF32; ++i) {
      wide[i] = type == DType::kF16 ? F16ToFloat(narrow[i]) : Bf16ToFloat(narrow[i]);
    }
  }
  ConstTensorView view(const Shape& shape) const {
    return dtype == DType::kF32 ? test::ViewOf(wide, shape) : test::ViewOf(narrow, dtype, shape);
  }
  DType dtype;
  std::vector<float> wide;
  std::vector<uint16_t> narrow;
};

struct Problem {
  explicit Problem(const ConvCase& c)
      : spec(c),
        x(RandomFloats(c.ci * c.in[0] * c.in[1] * c.in[2] + 1, 1)),
        weights(c.co * c.ci * c.kernel[0] * c.kernel[1] * c.kernel[2], c.weight),
        bias(RandomFloats(c.co, 3)) {
    for (size_t a = 0; a < 3; ++a) {
      out[a] = (c.in[a] + c.pad_begin[a] + c.pad_end[a] - c.dilation[a] * (c.kernel[a] - 1) - 1) /
                   c.stride[a] +
               1;
    }
  }
  int64_t OutputFloats() const { return spec.co * out[0] * out[1] * out[2]; }
  Conv3dParams Params(float* y) const {
    Conv3dParams p;
    p.x = test::ViewOf(x, {spec.ci, spec.in[0], spec.in[1], spec.in[2]});
    p.weight = weights.view({spec.co, spec.ci, spec.kernel[0], spec.kernel[1], spec.kernel[2]});
    if (spec.bias) p.bias = test::ViewOf(bias, {spec.co});
    p.y = TensorView::Of(y, {spec.co, out[0], out[1], out[2]});
    p.stride = spec.stride;
    p.dilation = spec.dilation;
    p.pad_begin = spec.pad_begin;
    p.pad_end = spec.pad_end;
    return p;
  }

  float At(int64_t ci, int64_t t, int64_t h, int64_t w) const {
    if (t < 0 || h < 0 || w < 0 || t >= spec.in[0] || h >= spec.in[1] || w >= spec.in[2]) return 0;
    return x[static_cast<size_t>(((ci * spec.in[0] + t) * spec.in[1] + h) * spec.in[2] + w)];
  }

  float NaiveElement(int64_t co, int64_t ot, int64_t oh, int64_t ow) const {
    float sum = spec.bias ? bias[static_cast<size_t>(co)] : 0.0f;
    const auto& k = spec.kernel;
    size_t w = static_cast<size_t>(co * spec.ci * k[0] * k[1] * k[2]);
    for (int64_t ci = 0; ci < spec.ci; ++ci) {
      for (int64_t kt = 0; kt < k[0]; ++kt) {
        for (int64_t kh = 0; kh < k[1]; ++kh) {
          for (int64_t kw = 0; kw < k[2]; ++kw) {
            sum += weights.wide[w++] *
                   At(ci, ot * spec.stride[0] + kt * spec.dilation[0] - spec.pad_begin[0],
                      oh * spec.stride[1] + kh * spec.dilation[1] - spec.pad_begin[1],
                      ow * spec.stride[2] + kw * spec.dilation[2] - spec.pad_begin[2]);
          }
        }
      }
    }
    return sum;
  }

  std::vector<float> Naive() const {
    std::vector<float> y;
    for (int64_t co = 0; co < spec.co; ++co) {
      for (int64_t t = 0; t < out[0]; ++t) {
        for (int64_t h = 0; h < out[1]; ++h) {
          for (int64_t w = 0; w < out[2]; ++w) y.push_back(NaiveElement(co, t, h, w));
        }
      }
    }
    return y;
  }

  ConvCase spec;
  std::array<int64_t, 3> out = {};
  std::vector<float> x;
  Weights weights;
  std::vector<float> bias;
};

struct TransposeProblem {
  explicit TransposeProblem(const TransposeCase& c)
      : spec(c),
        length((c.n - 1) * c.stride + c.kernel - 2 * c.pad),
        x(RandomFloats(c.ci * c.n, 1)),
        weights(c.ci * c.co * c.kernel, c.weight),
        bias(RandomFloats(c.co, 3)) {}
  ConvTranspose1dParams Params(float* y) const {
    ConvTranspose1dParams p;
    p.x = test::ViewOf(x, {spec.ci, spec.n});
    p.weight = weights.view({spec.ci, spec.co, spec.kernel});
    if (spec.bias) p.bias = test::ViewOf(bias, {spec.co});
    p.y = TensorView::Of(y, {spec.co, length});
    p.stride = spec.stride;
    p.pad = spec.pad;
    return p;
  }
  // Scatters every input, as the definition has it.
  std::vector<float> Naive() const {
    std::vector<float> y(static_cast<size_t>(spec.co * length), 0.0f);
    for (int64_t a = 0; a < spec.ci; ++a) {
      for (int64_t i = 0; i < spec.n; ++i) {
        for (int64_t c = 0; c < spec.co; ++c) {
          for (int64_t k = 0; k < spec.kernel; ++k) {
            const int64_t o = i * spec.stride + k - spec.pad;
            if (o < 0 || o >= length) continue;
            y[static_cast<size_t>(c * length + o)] +=
                x[static_cast<size_t>(a * spec.n + i)] *
                weights.wide[static_cast<size_t>((a * spec.co + c) * spec.kernel + k)];
          }
        }
      }
    }
    for (int64_t i = 0; spec.bias && i < spec.co * length; ++i) {
      y[static_cast<size_t>(i)] += bias[static_cast<size_t>(i / length)];
    }
    return y;
  }

  TransposeCase spec;
  int64_t length;
  std::vector<float> x;
  Weights weights;
  std::vector<float> bias;
};

absl::Status RunOp(const Conv3dParams& p, const ExecContext& context) { return Conv3d(p, context); }
absl::Status RunOp(const ConvTranspose1dParams& p, const ExecContext& context) {
  return ConvTranspose1d(p, context);
}

template <typename P>
std::vector<float> RunImpl(const P& problem, int64_t n, const std::string& impl) {
  const TestContext context(2, "conv", impl);
  GuardedOutput out(n);
  const absl::Status status = RunOp(problem.Params(out.data()), context());
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  EXPECT_TRUE(out.GuardsIntact());
  EXPECT_TRUE(out.AllWritten());
  return {out.values().begin(), out.values().end()};
}

template <typename P>
void ExpectWithinPlainError(const P& problem, int64_t n) {
  const std::vector<float> reference = RunImpl(problem, n, "ref");
  const std::vector<float> fast = RunImpl(problem, n, "onednn");
  const double bound = test::DerivedBound(problem.Naive(), reference);
  const CompareResult result = CompareFloats(fast, reference);
  EXPECT_TRUE(Within(result, bound)) << Describe(result) << ", bound " << bound;
}

class ConvCases : public ::testing::TestWithParam<ConvCase> {};
TEST_P(ConvCases, StaysWithinTwiceTheErrorOfAPlainLoop) {
  const Problem problem(GetParam());
  ExpectWithinPlainError(problem, problem.OutputFloats());
}
TEST_P(ConvCases, DeterminismSameBytesForEveryThreadCount) {
  const Problem problem(GetParam());
  EXPECT_FALSE(test::SameForAllThreadCounts(problem.OutputFloats(), [&](const ExecContext& context,
                                                                        float* y) {
                 return Conv3d(problem.Params(y), context).ok();
               }).empty());
}
INSTANTIATE_TEST_SUITE_P(All, ConvCases, ::testing::ValuesIn(kConvCases),
                         [](const auto& c) { return std::string(c.param.name); });

class TransposeCases : public ::testing::TestWithParam<TransposeCase> {};
TEST_P(TransposeCases, StaysWithinTwiceTheErrorOfAPlainLoop) {
  const TransposeProblem problem(GetParam());
  ExpectWithinPlainError(problem, problem.spec.co * problem.length);
}
TEST_P(TransposeCases, DeterminismSameBytesForEveryThreadCount) {
  const TransposeProblem problem(GetParam());
  EXPECT_FALSE(
      test::SameForAllThreadCounts(problem.spec.co * problem.length, [&](const ExecContext& context,
                                                                         float* y) {
        return ConvTranspose1d(problem.Params(y), context).ok();
      }).empty());
}
INSTANTIATE_TEST_SUITE_P(All, TransposeCases, ::testing::ValuesIn(kTransposeCases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(ConvCases, ATaskAllocatesNoMoreThanItSays) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  const TestContext context(1);
  const Problem problem(GetParam());
  const Conv3dParams shapes = problem.Params(nullptr);
  const int64_t co = shapes.y.dim(0);
  std::vector<float> y(static_cast<size_t>(shapes.y.elements()));
  const Conv3dParams p = problem.Params(y.data());
  ASSERT_TRUE(Conv3d(p, context()).ok());  // oneDNN keeps the code that it generates
  const AllocationPeak peak;
  ASSERT_TRUE(Conv3d(p, context()).ok());
  EXPECT_LE(peak.bytes(),
            ConvScratchBytes(co, p.weight.elements() / co, p.y.elements() / co, p.weight.dtype()));
}

TEST_P(TransposeCases, ATaskAllocatesNoMoreThanItSays) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  const TestContext context(1);
  const TransposeProblem problem(GetParam());
  const TransposeCase& c = GetParam();
  std::vector<float> y(static_cast<size_t>(problem.Params(nullptr).y.elements()));
  const ConvTranspose1dParams p = problem.Params(y.data());
  ASSERT_TRUE(ConvTranspose1d(p, context()).ok());
  const AllocationPeak peak;
  ASSERT_TRUE(ConvTranspose1d(p, context()).ok());
  const int64_t widened = p.weight.dtype() == DType::kF32 ? 0 : p.weight.elements() * 4 + 128;
  EXPECT_LE(peak.bytes(), ConvTransposeScratchBytes(c.ci, c.co, c.kernel, c.stride) + widened);
}

TEST(Conv, KnownAnswerOfOneDimension) {
  for (const char* impl : {"onednn", "ref"}) {
    const TestContext context(1, "conv", impl);
    const std::vector<float> x = {1, 2, 3, 4};
    const std::vector<float> w = {1, 10, 100};
    const std::vector<float> b = {0.5f};
    std::vector<float> y(4);
    Conv3dParams p;
    p.x = test::ViewOf(x, {1, 1, 1, 4});
    p.weight = test::ViewOf(w, {1, 1, 1, 1, 3});
    p.bias = test::ViewOf(b, {1});
    p.pad_begin = {0, 0, 2};
    p.y = TensorView::Of(y.data(), {1, 1, 1, 4});
    ASSERT_TRUE(Conv3d(p, context()).ok());
    EXPECT_EQ(y, (std::vector<float>{100.5f, 210.5f, 321.5f, 432.5f})) << impl;
    std::vector<float> t(9);
    ConvTranspose1dParams q;
    q.x = p.x.Reshape({1, 4});
    q.weight = test::ViewOf(w, {1, 1, 3});
    q.stride = 2;
    q.y = TensorView::Of(t.data(), {1, 9});
    ASSERT_TRUE(ConvTranspose1d(q, context()).ok());
    EXPECT_EQ(t, (std::vector<float>{1, 10, 102, 20, 203, 30, 304, 40, 400})) << impl;
  }
}

TEST(Conv, NanReachesTheOutputsItTouchesOnly) {
  const TestContext context(2);
  std::vector<float> x = RandomFloats(2 * 600, 1);
  x[300] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> w = RandomFloats(3 * 2 * 5, 2);
  GuardedOutput out(3 * 600);
  Conv3dParams p;
  p.x = test::ViewOf(x, {2, 1, 1, 600});
  p.weight = test::ViewOf(w, {3, 2, 1, 1, 5});
  p.pad_begin = p.pad_end = {0, 0, 2};
  p.y = out.view({3, 1, 1, 600});
  ASSERT_TRUE(Conv3d(p, context()).ok());
  for (size_t i = 0; i < 1800; ++i) {
    const size_t column = i % 600;
    EXPECT_EQ(std::isnan(out.values()[i]), column >= 298 && column <= 302) << i;
  }
}

class ConvErrors : public ::testing::Test {
 protected:
  void Refused(const char* named) {
    const absl::Status status = Conv3d(p_, context_());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
    EXPECT_EQ(out_.Unwritten(), problem_.OutputFloats());
  }
  void TransposeRefused(const char* named) {
    const absl::Status status = ConvTranspose1d(t_, context_());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << MessageOf(status);
    EXPECT_THAT(MessageOf(status), HasSubstr(named));
  }
  Problem problem_{kConvCases[1]};
  GuardedOutput out_{problem_.OutputFloats()};
  Conv3dParams p_ = problem_.Params(out_.data());
  TransposeProblem transpose_{kTransposeCases[1]};
  GuardedOutput transpose_out_{transpose_.spec.co * transpose_.length};
  ConvTranspose1dParams t_ = transpose_.Params(transpose_out_.data());
  TestContext context_{1};
};

TEST_F(ConvErrors, InputChannels) {
  p_.x = test::ViewOf(problem_.x, {4, 4, 9, 7});
  Refused("input channels");
}
TEST_F(ConvErrors, ShapeOfTheOutput) {
  p_.y = out_.view({6, 4, 7, 4});
  Refused("y");
}
TEST_F(ConvErrors, StrideZero) {
  p_.stride[1] = 0;
  Refused("stride in height");
}
TEST_F(ConvErrors, DilationZero) {
  p_.dilation[0] = 0;
  Refused("dilation in time");
}
TEST_F(ConvErrors, NegativePadding) {
  p_.pad_end[2] = -1;
  Refused("padding in width");
}
TEST_F(ConvErrors, PaddingThatOverflows) {
  p_.pad_end[2] = std::numeric_limits<int64_t>::max();
  Refused("kernel reach in width");
}
TEST_F(ConvErrors, DilationThatOverflows) {
  p_.dilation[2] = std::numeric_limits<int64_t>::max();
  Refused("kernel reach in width");
}
TEST_F(ConvErrors, KernelLargerThanTheInput) {
  p_.dilation[2] = 4;
  Refused("kernel reach in width");
}
TEST_F(ConvErrors, TypeOfTheWeight) {
  p_.weight = ConstTensorView(p_.weight.data(), DType::kI32, p_.weight.shape());
  Refused("weight");
}
TEST_F(ConvErrors, LengthOfTheBias) {
  p_.bias = test::ViewOf(problem_.bias, {5});
  Refused("bias");
}
TEST_F(ConvErrors, StridedInput) {
  p_.x = test::ViewOf(problem_.x, {5, 4, 7, 9}).Transpose(2, 3);
  Refused("x");
}
TEST_F(ConvErrors, Rank) {
  p_.x = test::ViewOf(problem_.x, {5, 4, 63});
  Refused("rank 4");
}
TEST_F(ConvErrors, TransposedShapeOfTheOutput) {
  t_.y = transpose_out_.view({10, transpose_.length - 1});
  TransposeRefused("y");
}
TEST_F(ConvErrors, TransposedPaddingOverTheKernel) {
  t_.pad = 9;
  TransposeRefused("padding");
}
TEST_F(ConvErrors, TransposedStrideThatOverflows) {
  t_.stride = std::numeric_limits<int64_t>::max() / 2;
  TransposeRefused("output length");
}
TEST_F(ConvErrors, TransposedInputChannels) {
  t_.x = test::ViewOf(transpose_.x, {11, 207});
  TransposeRefused("input channels");
}
TEST_F(ConvErrors, TransposedOutputOverInput) {
  t_.y = TensorView::Of(transpose_.x.data(), t_.y.shape());
  TransposeRefused("overlaps x");
}

}  // namespace
}  // namespace h3rt
