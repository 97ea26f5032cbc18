#include "h3rt/num/int8_convrot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "h3rt/num/bf16.h"
#include "h3rt/num/compare.h"
#include "h3rt/num/e4m3.h"
#include "h3rt/num/fixture_reader.h"
#include "h3rt/num/fp8_scaled.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

constexpr float kPoison = 1e30f;

// R_G as the definition says: the Kronecker power of the 4 x 4 matrix, unscaled.
std::vector<int> RegularHadamard(int64_t group) {
  static constexpr int kR4[4][4] = {{1, 1, 1, -1}, {1, 1, -1, 1}, {1, -1, 1, 1}, {-1, 1, 1, 1}};
  std::vector<int> r = {1};
  for (int64_t n = 1; n < group; n *= 4) {
    std::vector<int> larger(static_cast<size_t>(16 * n * n));
    for (int64_t i = 0; i < 4 * n; ++i) {
      for (int64_t j = 0; j < 4 * n; ++j) {
        larger[static_cast<size_t>(i * 4 * n + j)] =
            r[static_cast<size_t>(i / 4 * n + j / 4)] * kR4[i % 4][j % 4];
      }
    }
    r = std::move(larger);
  }
  return r;
}

std::vector<float> RandomFloats(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> out(n);
  for (float& value : out) value = normal(random);
  return out;
}

std::vector<float> Dequantize(const ConvRotTensor& t) {
  std::vector<float> out(t.codes.size(), kPoison);
  const absl::Status status = DequantizeConvRot(t.codes, t.rows, t.cols, t.group, t.scales, out);
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  return out;
}

class ConvRotGroup : public ::testing::TestWithParam<int64_t> {};

TEST_P(ConvRotGroup, RotatingUnitRowsGivesTheKroneckerPower) {
  const int64_t group = GetParam();
  const auto n = static_cast<size_t>(group);
  std::vector<float> rows(n * n, 0.0f);
  for (size_t i = 0; i < n; ++i) rows[i * n + i] = 1.0f;
  ASSERT_TRUE(RotateConvRot(rows, group, group).ok());
  const std::vector<int> r = RegularHadamard(group);
  const double root = std::sqrt(static_cast<double>(group));
  for (size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) {
      ASSERT_EQ(rows[i * n + j], r[i * n + j] / root) << i << ", " << j;
      ASSERT_EQ(rows[i * n + j], rows[j * n + i]) << "symmetric";
      sum += rows[i * n + j];
    }
    ASSERT_EQ(sum, 1.0) << "regular: every row has the same sum, unlike Sylvester's matrix";
  }
  // Orthogonal: R * R is the identity, exactly, since all sums are of equal powers of two.
  ASSERT_TRUE(RotateConvRot(rows, group, group).ok());
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) ASSERT_EQ(rows[i * n + j], i == j ? 1.0f : 0.0f);
  }
}

TEST_P(ConvRotGroup, RotationAgreesWithTheMatrixProductInDouble) {
  const int64_t group = GetParam();
  const auto n = static_cast<size_t>(group);
  const std::vector<float> x = RandomFloats(3 * 2 * n, 5);  // 3 rows of 2 groups
  std::vector<float> rotated = x;
  ASSERT_TRUE(RotateConvRot(rotated, 2 * group, group).ok());
  const std::vector<int> r = RegularHadamard(group);
  const double root = std::sqrt(static_cast<double>(group));
  std::vector<double> expected(x.size(), 0.0);
  for (size_t begin = 0; begin < x.size(); begin += n) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < n; ++k) {
        expected[begin + j] += static_cast<double>(x[begin + k]) * r[k * n + j];
      }
      expected[begin + j] /= root;
    }
  }
  // Two roundings a pass, each relative 2^-24 of a vector whose norm is kept: at most 2 log4 G.
  const double passes = std::log2(static_cast<double>(group)) / 2;
  const CompareResult result = CompareToReference(rotated, expected);
  EXPECT_TRUE(Within(result, 2 * passes * 0x1p-24)) << Describe(result);
}

TEST_P(ConvRotGroup, RoundTripIsWithinHalfAStepOfEveryRotatedElement) {
  const int64_t group = GetParam();
  const int64_t rows = 5;
  const int64_t cols = 3 * group;
  const std::vector<float> w = RandomFloats(static_cast<size_t>(rows * cols), 17);
  const auto tensor = QuantizeConvRot(w, rows, cols, group);
  ASSERT_TRUE(tensor.ok()) << MessageOf(tensor.status());
  const std::vector<float> out = Dequantize(*tensor);
  for (int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (int64_t k = 0; k < cols; ++k) {
      const auto i = static_cast<size_t>(row * cols + k);
      squares += std::pow(static_cast<double>(out[i]) - w[i], 2);
    }
    // The rotation keeps norms, so the error is that of `cols` roundings of half a step at most.
    const double step = tensor->scales[static_cast<size_t>(row)];
    EXPECT_LE(std::sqrt(squares), 0.50001 * step * std::sqrt(static_cast<double>(cols))) << row;
  }
}

TEST_P(ConvRotGroup, DequantisationIsExactUpToOneRounding) {
  const int64_t group = GetParam();
  const auto n = static_cast<size_t>(group);
  std::mt19937 random(23);
  std::vector<int8_t> codes(2 * n);
  for (int8_t& code : codes) code = static_cast<int8_t>(random() % 256);
  const std::vector<float> scales = {0.0123f, 3.7e-5f};
  std::vector<float> out(codes.size(), kPoison);
  ASSERT_TRUE(DequantizeConvRot(codes, 2, group, group, scales, out).ok());
  const std::vector<int> r = RegularHadamard(group);
  const double root = std::sqrt(static_cast<double>(group));
  for (size_t row = 0; row < 2; ++row) {
    for (size_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (size_t k = 0; k < n; ++k) sum += codes[row * n + k] * r[k * n + j];
      ASSERT_EQ(out[row * n + j], static_cast<float>(static_cast<double>(sum) / root * scales[row]))
          << row << ", " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, ConvRotGroup, ::testing::Values(4, 16, 64, 256));

TEST(ConvRot, TheLargestGroupStillSumsExactly) {
  const std::vector<int8_t> codes(kConvRotMaxGroup, -128);
  std::vector<float> out(codes.size(), kPoison);
  const float scale = 1.0f;
  ASSERT_TRUE(
      DequantizeConvRot(codes, 1, kConvRotMaxGroup, kConvRotMaxGroup, std::span(&scale, 1), out)
          .ok());
  // Every row of R sums to 1, so constants stay what they are.
  for (const float value : out) ASSERT_EQ(value, -128.0f);
}

TEST(ConvRot, GroupOneIsPlainInt8WithAScaleForAllOrOneARow) {
  const std::vector<int8_t> codes = {1, -2, 127, -127, 0, 64};
  std::vector<float> out(6, kPoison);
  const std::vector<float> one = {0.5f};
  ASSERT_TRUE(DequantizeConvRot(codes, 2, 3, 1, one, out).ok());
  EXPECT_EQ(out, (std::vector<float>{0.5f, -1.0f, 63.5f, -63.5f, 0.0f, 32.0f}));
  const std::vector<float> two = {0.5f, 2.0f};
  ASSERT_TRUE(DequantizeConvRot(codes, 2, 3, 1, two, out).ok());
  EXPECT_EQ(out, (std::vector<float>{0.5f, -1.0f, 63.5f, -254.0f, 0.0f, 128.0f}));
}

TEST(ConvRot, CodesRoundHalfToEvenAndReach127) {
  // amax 127 makes the scale 1.
  const std::vector<float> w = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, -127.0f};
  const auto tensor = QuantizeConvRot(w, 1, 8, 1);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->scales[0], 1.0f);
  EXPECT_EQ(tensor->codes, (std::vector<int8_t>{127, 0, 2, 2, 0, -2, -2, -127}));
}

TEST(ConvRot, ARowOfZerosIsZeros) {
  std::vector<float> w(2 * 64, 0.0f);
  w[70] = 1.0f;
  const auto tensor = QuantizeConvRot(w, 2, 64, 64);
  ASSERT_TRUE(tensor.ok());
  const std::vector<float> out = Dequantize(*tensor);
  for (size_t k = 0; k < 64; ++k) ASSERT_EQ(out[k], 0.0f);
}

TEST(ConvRot, GroupsThatAreNoPowerOf4OrDoNotDivideAreRefused) {
  std::vector<float> x(512);
  for (const int64_t group : {int64_t{0}, int64_t{2}, int64_t{8}, int64_t{100}, int64_t{128},
                              int64_t{-4}, int64_t{262144}, std::numeric_limits<int64_t>::min()}) {
    const absl::Status status = RotateConvRot(x, 512, group);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << group;
    EXPECT_THAT(MessageOf(status), HasSubstr("power of 4"));
    EXPECT_FALSE(QuantizeConvRot(x, 1, 512, group).ok());
  }
  // The released extents: 21, 28 and 56 groups of 256; the AdaLN layers only take 64.
  for (const int64_t cols : {5376, 7168, 14336}) {
    EXPECT_TRUE(ValidateConvRotGroup(cols, 256).ok()) << cols;
  }
  EXPECT_TRUE(ValidateConvRotGroup(2688, 64).ok());
  const absl::Status status = ValidateConvRotGroup(2688, 256);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("got 2688, wanted a multiple of the group size 256"));
  EXPECT_FALSE(ValidateConvRotGroup(0, 64).ok());
}

TEST(ConvRot, SizesAndValuesThatDoNotFitAreRefused) {
  const std::vector<int8_t> codes(128);
  std::vector<float> out(128);
  const std::vector<float> scales = {1.0f, 1.0f};
  ASSERT_TRUE(DequantizeConvRot(codes, 2, 64, 64, scales, out).ok());
  EXPECT_FALSE(DequantizeConvRot(codes, 3, 64, 64, scales, out).ok());
  EXPECT_FALSE(DequantizeConvRot(codes, 2, 64, 64, {}, out).ok());
  EXPECT_FALSE(DequantizeConvRot(codes, 1, 128, 64, scales, out).ok());
  EXPECT_FALSE(DequantizeConvRot(codes, 2, 64, 64, scales, std::span(out).first(127)).ok());
  EXPECT_FALSE(DequantizeConvRot(codes, int64_t{1} << 60, 64, 64, scales, out).ok());
  const std::vector<float> nan = {1.0f, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_FALSE(DequantizeConvRot(codes, 2, 64, 64, nan, out).ok());
  EXPECT_FALSE(RotateConvRot(std::span(out).first(100), 64, 64).ok());
  out[65] = std::numeric_limits<float>::infinity();
  const auto tensor = QuantizeConvRot(out, 2, 64, 64);
  ASSERT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(tensor.status()), HasSubstr("row 1"));
}

TEST(ConvRot, TheFixtureIsReproducedWithinItsBound) {
  const FixtureReader fixture("formats.safetensors");
  const std::vector<int8_t> codes = fixture.Read<int8_t>("convrot.q");
  const std::vector<float> scales = fixture.Read<float>("convrot.scale");
  const std::vector<float> expected = fixture.Read<float>("convrot.dequant");
  ASSERT_EQ(codes.size(), 160u * 512u);
  ASSERT_EQ(scales.size(), 160u);
  std::vector<float> out(codes.size(), kPoison);
  ASSERT_TRUE(DequantizeConvRot(codes, 160, 512, 256, scales, out).ok());
  const CompareResult result = CompareFloats(out, expected);
  EXPECT_TRUE(Within(result, 1e-6)) << Describe(result);
}

TEST(ConvRot, QuantisingTheFixtureWeightsGivesItsScalesAndCodes) {
  const FixtureReader fixture("formats.safetensors");
  const std::vector<uint16_t> stored = fixture.Read<uint16_t>("nvfp4.w");
  std::vector<float> weights(stored.size());
  WidenBf16(stored.data(), weights.data(), static_cast<int64_t>(stored.size()));
  const auto tensor = QuantizeConvRot(weights, 160, 512, 256);
  ASSERT_TRUE(tensor.ok());
  // The sums of the rotation are ordered otherwise than the matrix product that made the fixture,
  // so scales differ in their last place; no code lies so close to a tie that this moves it.
  const CompareResult scales = CompareFloats(tensor->scales, fixture.Read<float>("convrot.scale"));
  EXPECT_TRUE(Within(scales, 1e-6)) << Describe(scales);
  EXPECT_EQ(tensor->codes, fixture.Read<int8_t>("convrot.q"));
}

TEST(Fp8Scaled, MultipliesEveryCodeByItsScale) {
  std::vector<uint8_t> codes;
  for (int c = 0; c < 256; ++c) {
    if (c != 0x7f && c != 0xff) codes.push_back(static_cast<uint8_t>(c));
  }
  const auto n = static_cast<int64_t>(codes.size() / 2);
  std::vector<float> out(codes.size(), kPoison);
  const std::vector<float> scales = {0.3f, 7e-4f};
  ASSERT_TRUE(DequantizeFp8Scaled(Fp8Kind::kE4m3, codes, 2, n, scales, out).ok());
  for (size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(out[i], E4m3ToFloat(codes[i]) * scales[i / static_cast<size_t>(n)]) << i;
  }
  ASSERT_TRUE(
      DequantizeFp8Scaled(Fp8Kind::kE4m3, codes, 2, n, std::span(scales).first(1), out).ok());
  for (size_t i = 0; i < codes.size(); ++i) ASSERT_EQ(out[i], E4m3ToFloat(codes[i]) * 0.3f) << i;
  const std::vector<uint8_t> e5m2 = {0x3c, 0xc0, 0x7b, 0x01};  // 1, -2, 57344, 2^-16
  std::vector<float> four(4, kPoison);
  ASSERT_TRUE(DequantizeFp8Scaled(Fp8Kind::kE5m2, e5m2, 2, 2, std::vector<float>{2.0f}, four).ok());
  EXPECT_EQ(four, (std::vector<float>{2.0f, -4.0f, 114688.0f, 0x1p-15f}));
}

TEST(Fp8Scaled, BadSizesScalesAndCodesAreRefused) {
  std::vector<uint8_t> codes(6, 0x38);
  std::vector<float> out(6);
  const std::vector<float> two = {1.0f, 1.0f};
  const std::vector<float> three = {1.0f, 1.0f, 1.0f};
  const auto code_of = [&](int64_t rows, int64_t cols, std::span<const float> scales) {
    return DequantizeFp8Scaled(Fp8Kind::kE4m3, codes, rows, cols, scales, out).code();
  };
  EXPECT_EQ(code_of(2, 3, two), absl::StatusCode::kOk);
  EXPECT_EQ(code_of(2, 3, three), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(2, 3, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(2, 4, two), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(-2, -3, two), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(2, 3, std::vector<float>{std::numeric_limits<float>::infinity()}),
            absl::StatusCode::kInvalidArgument);
  codes[4] = 0xff;
  const absl::Status status = DequantizeFp8Scaled(Fp8Kind::kE4m3, codes, 2, 3, two, out);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("row 1, column 1"));
  codes[4] = 0x7c;  // e5m2 infinity
  EXPECT_EQ(DequantizeFp8Scaled(Fp8Kind::kE5m2, codes, 2, 3, two, out).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace h3rt
