// Known answers derived by hand from the format's definition, then the public fixture bit for bit.
#include "h3rt/num/nvfp4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "h3rt/num/bf16.h"
#include "h3rt/num/compare.h"
#include "h3rt/num/e2m1.h"
#include "h3rt/num/e4m3.h"
#include "h3rt/num/fixture_reader.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

constexpr uint8_t kOne = 0x38;  // 1.0 in e4m3
constexpr float kPoison = 1e30f;

// 16 rows of one block; everything is zero but what a test sets.
struct OneBlockRows {
  std::vector<uint8_t> packed = std::vector<uint8_t>(16 * 8);
  std::vector<uint8_t> scales = std::vector<uint8_t>(128 * 4);
  Nvfp4View view(NibbleOrder order, float tensor_scale = 1.0f) const {
    return {.rows = 16,
            .cols = 16,
            .packed = packed,
            .block_scales = scales,
            .tensor_scale = tensor_scale,
            .order = order,
            .pre_quant_scale = {}};
  }
};

std::vector<float> Dequantize(const Nvfp4View& view) {
  std::vector<float> out(static_cast<size_t>(view.rows * view.cols), kPoison);
  const absl::Status status = DequantizeNvfp4(view, 0, view.rows, view.cols, out);
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  return out;
}

std::vector<float> RandomWeights(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  std::vector<float> out(n);
  for (float& value : out) value = normal(random);
  return out;
}

TEST(Nvfp4, NibbleOrderSaysWhichHalfHoldsTheEvenElement) {
  OneBlockRows rows;
  rows.scales[0] = kOne;
  rows.packed[0] = 0x2f;  // code 2 is 1, code 15 is -6
  const std::vector<float> high = Dequantize(rows.view(NibbleOrder::kHighFirst));
  EXPECT_EQ(high[0], 1.0f);
  EXPECT_EQ(high[1], -6.0f);
  const std::vector<float> low = Dequantize(rows.view(NibbleOrder::kLowFirst));
  EXPECT_EQ(low[0], -6.0f);
  EXPECT_EQ(low[1], 1.0f);
  SwapNibbles(rows.packed);
  EXPECT_EQ(rows.packed[0], 0xf2);
  EXPECT_EQ(Dequantize(rows.view(NibbleOrder::kLowFirst)), high);
}

TEST(Nvfp4, QuantisationPacksBothOrders) {
  std::vector<float> weights(16 * 16, 0.0f);
  // amax 2688 = 6 * 448 makes the tensor scale 1 and the block scale 448.
  weights[0] = 2688.0f;
  weights[1] = -448.0f;
  weights[15] = 224.0f;
  const auto high = QuantizeNvfp4(weights, 16, 16, NibbleOrder::kHighFirst);
  ASSERT_TRUE(high.ok()) << MessageOf(high.status());
  EXPECT_EQ(high->tensor_scale, 1.0f);
  EXPECT_EQ(high->block_scales[0], 0x7e) << "448";
  EXPECT_EQ(high->packed[0], 0x7a) << "6, then -1";
  EXPECT_EQ(high->packed[7], 0x01) << "0, then 0.5";
  const auto low = QuantizeNvfp4(weights, 16, 16, NibbleOrder::kLowFirst);
  ASSERT_TRUE(low.ok());
  EXPECT_EQ(low->packed[0], 0xa7);
  EXPECT_EQ(low->packed[7], 0x10);
  EXPECT_EQ(Dequantize(high->view()), weights) << "all of these values are exact";
  EXPECT_EQ(Dequantize(low->view()), weights);
}

TEST(Nvfp4, SixTimes448IsTheLargestValueAndASmallerBlockKeepsItsOwnScale) {
  std::vector<float> weights(16 * 32, 0.0f);
  weights[0] = 6.0f * 448.0f;
  weights[16] = -6.0f;  // second block of row 0: amax 6, scale 1
  weights[17] = 0.5f;
  weights[18] = 2.5f;   // a tie between 2 (code 4) and 3 (code 5)
  weights[19] = -3.5f;  // a tie between 3 (code 5) and 4 (code 6)
  weights[20] = -0x1p-20f;
  const auto tensor = QuantizeNvfp4(weights, 16, 32, NibbleOrder::kHighFirst);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->tensor_scale, 1.0f);
  EXPECT_EQ(tensor->block_scales[0], 0x7e);
  EXPECT_EQ(tensor->block_scales[1], kOne);
  EXPECT_EQ(tensor->packed[8], 0xf1) << "-6, 0.5";
  EXPECT_EQ(tensor->packed[9], 0x4e) << "2, -4";
  EXPECT_EQ(tensor->packed[10], 0x80) << "a tiny negative keeps its sign";
  const std::vector<float> out = Dequantize(tensor->view());
  EXPECT_EQ(out[0], 2688.0f);
  EXPECT_EQ(out[18], 2.0f);
  EXPECT_EQ(out[19], -4.0f);
  EXPECT_TRUE(std::signbit(out[20]));
}

TEST(Nvfp4, AZeroBlockHasScaleAndCodesZero) {
  std::vector<float> weights(16 * 32, 0.0f);
  for (size_t k = 0; k < 16; ++k) weights[k] = k % 2 == 0 ? 1.0f : -1.0f;
  weights[20] = -0.0f;
  const auto tensor = QuantizeNvfp4(weights, 16, 32, NibbleOrder::kHighFirst);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->block_scales[1], 0);
  for (size_t byte = 8; byte < tensor->packed.size(); ++byte) EXPECT_EQ(tensor->packed[byte], 0);
  const std::vector<float> out = Dequantize(tensor->view());
  for (size_t i = 16; i < out.size(); ++i) ASSERT_EQ(out[i], 0.0f) << i;
}

TEST(Nvfp4, ATensorOfZerosIsZerosWithoutNan) {
  const std::vector<float> weights(16 * 16, 0.0f);
  const auto tensor = QuantizeNvfp4(weights, 16, 16, NibbleOrder::kHighFirst);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->tensor_scale, 0.0f);
  EXPECT_EQ(Dequantize(tensor->view()), weights);
}

TEST(Nvfp4, ABlockWhoseScaleRoundsToZeroGetsCodesZero) {
  std::vector<float> weights(16 * 48, 0.0f);
  weights[0] = 2688.0f;               // tensor scale 1
  weights[16] = 6 * 0x1p-11f;         // scale 2^-11, under half of the least e4m3 value 2^-9
  weights[17] = -6 * 0x1p-11f;        // not even a sign remains
  weights[32] = 1.5f * 6 * 0x1p-10f;  // scale 1.5 * 2^-10 rounds to 2^-9: code 0.75 * 6 = 4.5 -> 4
  const auto tensor = QuantizeNvfp4(weights, 16, 48, NibbleOrder::kHighFirst);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->block_scales[1], 0);
  EXPECT_EQ(tensor->packed[8], 0);
  EXPECT_EQ(tensor->block_scales[2], 1);
  EXPECT_EQ(tensor->packed[16], 0x60);
  // Half of the least value is a tie and goes to the even code, 0.
  weights[16] = 6 * 0x1p-10f;
  weights[17] = 0;
  const auto tie = QuantizeNvfp4(weights, 16, 48, NibbleOrder::kHighFirst);
  ASSERT_TRUE(tie.ok());
  EXPECT_EQ(tie->block_scales[1], 0);
  EXPECT_EQ(tie->packed[8], 0);
}

TEST(Nvfp4, ScalesLieInSwizzledTilesOf128By4) {
  // By hand: inside a tile 16 * (row % 32) + 4 * (row / 32) + block; tiles of a row follow.
  EXPECT_EQ(Nvfp4ScaleIndex(0, 0, 4), 0);
  EXPECT_EQ(Nvfp4ScaleIndex(0, 1, 4), 1);
  EXPECT_EQ(Nvfp4ScaleIndex(1, 0, 4), 16);
  EXPECT_EQ(Nvfp4ScaleIndex(31, 3, 4), 499);
  EXPECT_EQ(Nvfp4ScaleIndex(32, 0, 4), 4);
  EXPECT_EQ(Nvfp4ScaleIndex(127, 3, 4), 511);
  EXPECT_EQ(Nvfp4ScaleIndex(128, 0, 4), 512);
  EXPECT_EQ(Nvfp4ScaleIndex(0, 4, 5), 512) << "five blocks take two tiles";
  EXPECT_EQ(Nvfp4ScaleIndex(128, 0, 5), 1024);
  EXPECT_EQ(Nvfp4ScaleIndex(200, 6, 8), 1024 + 512 + 16 * (72 - 64) + 4 * 2 + 2);
  // The last scale of the largest released layer (fc2: 5376 x 14336).
  EXPECT_EQ(Nvfp4ScaleIndex(5375, 895, 896), 5376 * 896 - 1);
}

TEST(Nvfp4, TheSwizzleIsAPermutationAndItsInverseUndoesIt) {
  for (const auto& [rows, blocks] :
       std::vector<std::pair<int64_t, int64_t>>{{16, 1}, {128, 4}, {160, 5}, {256, 32}, {304, 7}}) {
    const int64_t bytes = Nvfp4ScaleRows(rows) * Nvfp4ScaleCols(blocks);
    std::set<int64_t> seen;
    for (int64_t row = 0; row < Nvfp4ScaleRows(rows); ++row) {
      for (int64_t block = 0; block < Nvfp4ScaleCols(blocks); ++block) {
        const int64_t index = Nvfp4ScaleIndex(row, block, blocks);
        ASSERT_GE(index, 0);
        ASSERT_LT(index, bytes);
        ASSERT_TRUE(seen.insert(index).second) << row << ", " << block;
        ASSERT_EQ(Nvfp4ScalePlaceOf(index, blocks), (Nvfp4ScalePlace{row, block}));
      }
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), bytes);
    std::vector<uint8_t> row_major(static_cast<size_t>(rows * blocks));
    for (size_t i = 0; i < row_major.size(); ++i) row_major[i] = static_cast<uint8_t>(i * 7 + 1);
    const auto swizzled = SwizzleNvfp4Scales(row_major, rows, blocks);
    ASSERT_TRUE(swizzled.ok());
    const auto back = UnswizzleNvfp4Scales(*swizzled, rows, blocks);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, row_major);
  }
}

TEST(Nvfp4, EveryBlockIsReadWithItsOwnSwizzledScale) {
  constexpr int64_t kRows = 160;
  constexpr int64_t kBlocks = 5;
  std::vector<uint8_t> scales(kRows * kBlocks);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<uint8_t>(i % 0x7f);
  const auto swizzled = SwizzleNvfp4Scales(scales, kRows, kBlocks);
  ASSERT_TRUE(swizzled.ok());
  const std::vector<uint8_t> packed(kRows * kBlocks * 8, 0x22);  // ones
  const Nvfp4View view{.rows = kRows,
                       .cols = kBlocks * 16,
                       .packed = packed,
                       .block_scales = *swizzled,
                       .tensor_scale = 0.5f,
                       .order = NibbleOrder::kHighFirst,
                       .pre_quant_scale = {}};
  const std::vector<float> out = Dequantize(view);
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], 0.5f * E4m3ToFloat(scales[i / 16])) << i;
  }
}

TEST(Nvfp4, TheProductOfTheScalesIsRoundedFirst) {
  OneBlockRows rows;
  rows.packed[0] = 0x50;  // 3
  rows.scales[0] = 0x3f;  // 1.875
  const float tensor_scale = std::nextafter(0.1f, 1.0f);
  const std::vector<float> out = Dequantize(rows.view(NibbleOrder::kHighFirst, tensor_scale));
  const float scale = 1.875f * tensor_scale;
  EXPECT_EQ(out[0], 3.0f * scale);
}

TEST(Nvfp4, ThePreQuantScaleMultipliesColumnsOfTheWeight) {
  OneBlockRows rows;
  rows.scales[0] = kOne;
  rows.scales[16] = kOne;
  for (size_t i = 0; i < 16; ++i) rows.packed[i] = 0x24;  // 1, 2
  std::vector<float> factors(16);
  for (size_t k = 0; k < 16; ++k) factors[k] = 0.25f * static_cast<float>(k + 1);
  Nvfp4View view = rows.view(NibbleOrder::kHighFirst);
  view.pre_quant_scale = factors;
  const std::vector<float> out = Dequantize(view);
  for (size_t row = 0; row < 2; ++row) {
    for (size_t k = 0; k < 16; ++k) {
      EXPECT_EQ(out[row * 16 + k], (k % 2 == 0 ? 1.0f : 2.0f) * factors[k]);
    }
  }
  // x * p against the stored weight is x against the dequantised one.
  float folded = 0;
  float applied = 0;
  for (size_t k = 0; k < 16; ++k) {
    folded += out[k];
    applied += factors[k] * (k % 2 == 0 ? 1.0f : 2.0f);
  }
  EXPECT_EQ(folded, applied);
}

TEST(Nvfp4, ColumnsThatAreNotAMultipleOf16AreRefusedWithWhatIsSupported) {
  const std::vector<float> weights(16 * 24, 1.0f);
  const auto tensor = QuantizeNvfp4(weights, 16, 24, NibbleOrder::kHighFirst);
  ASSERT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(tensor.status()), HasSubstr("got 24"));
  EXPECT_THAT(MessageOf(tensor.status()), HasSubstr("multiple of 16, padded with zeros to 32"));
  OneBlockRows rows;
  Nvfp4View view = rows.view(NibbleOrder::kHighFirst);
  view.cols = 24;
  EXPECT_EQ(ValidateNvfp4(view).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Nvfp4, PaddingIsStoredAsZerosAndCanBeLeftOff) {
  // A layer of 19 x 24 is stored as 32 x 32.
  EXPECT_EQ(Nvfp4StoredExtent(19), 32);
  EXPECT_EQ(Nvfp4StoredExtent(32), 32);
  std::vector<float> weights(19 * 32, 0.0f);
  for (size_t row = 0; row < 19; ++row) {
    for (size_t k = 0; k < 24; ++k) weights[row * 32 + k] = static_cast<float>(row + k + 1);
  }
  const auto tensor = QuantizeNvfp4(weights, 19, 32, NibbleOrder::kHighFirst);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->rows, 32);
  const std::vector<float> whole = Dequantize(tensor->view());
  for (size_t i = 19 * 32; i < whole.size(); ++i) ASSERT_EQ(whole[i], 0.0f);
  std::vector<float> part(19 * 24 + 1, kPoison);
  ASSERT_TRUE(DequantizeNvfp4(tensor->view(), 0, 19, 24, std::span(part).first(19 * 24)).ok());
  for (size_t row = 0; row < 19; ++row) {
    for (size_t k = 0; k < 24; ++k) ASSERT_EQ(part[row * 24 + k], whole[row * 32 + k]);
  }
  EXPECT_EQ(part.back(), kPoison);
  std::vector<float> two(2 * 24, kPoison);
  ASSERT_TRUE(DequantizeNvfp4(tensor->view(), 7, 9, 24, two).ok());
  EXPECT_TRUE(std::equal(two.begin(), two.end(), part.begin() + 7 * 24));
}

TEST(Nvfp4, SizesThatDoNotFitAreRefused) {
  OneBlockRows rows;
  const Nvfp4View good = rows.view(NibbleOrder::kHighFirst);
  ASSERT_TRUE(ValidateNvfp4(good).ok());
  std::vector<float> out(256);
  const std::vector<float> factors(17, 1.0f);
  const std::vector<float> nan_factor(16, std::numeric_limits<float>::quiet_NaN());
  std::vector<Nvfp4View> bad(8, good);
  bad[0].rows = 17;
  bad[1].rows = 0;
  bad[2].cols = -16;
  bad[3].packed = good.packed.first(127);
  bad[4].block_scales = good.block_scales.first(16);
  bad[5].tensor_scale = std::numeric_limits<float>::infinity();
  bad[6].pre_quant_scale = factors;
  bad[7].pre_quant_scale = nan_factor;
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(DequantizeNvfp4(bad[i], 0, 16, 16, out).code(), absl::StatusCode::kInvalidArgument)
        << i;
  }
  EXPECT_FALSE(DequantizeNvfp4(good, 0, 17, 16, out).ok());
  EXPECT_FALSE(DequantizeNvfp4(good, -1, 15, 16, out).ok());
  EXPECT_FALSE(DequantizeNvfp4(good, 8, 7, 16, out).ok());
  EXPECT_FALSE(DequantizeNvfp4(good, 0, 16, 17, out).ok());
  EXPECT_FALSE(DequantizeNvfp4(good, 0, 16, 16, std::span(out).first(255)).ok());
  EXPECT_FALSE(QuantizeNvfp4(std::span(out).first(255), 16, 16, NibbleOrder::kHighFirst).ok());
  EXPECT_FALSE(QuantizeNvfp4({}, 0, 16, NibbleOrder::kHighFirst).ok());
  EXPECT_FALSE(SwizzleNvfp4Scales(good.block_scales, 16, 1).ok());
  EXPECT_FALSE(UnswizzleNvfp4Scales(good.block_scales, 160, 1).ok());
}

TEST(Nvfp4, ValuesThatAreNotFiniteAreReportedWithTheirPlace) {
  std::vector<float> weights(16 * 16, 1.0f);
  weights[37] = std::numeric_limits<float>::quiet_NaN();
  const auto tensor = QuantizeNvfp4(weights, 16, 16, NibbleOrder::kHighFirst);
  ASSERT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(tensor.status()), HasSubstr("index 37"));
  OneBlockRows rows;
  rows.scales[16 * 3] = 0x7f;  // row 3
  std::vector<float> out(256);
  const absl::Status status = DequantizeNvfp4(rows.view(NibbleOrder::kHighFirst), 0, 16, 16, out);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("row 3, block 0"));
}

TEST(Nvfp4, RoundTripErrorIsAtMostOneStepOfTheBlock) {
  const std::vector<float> weights = RandomWeights(64 * 128, 3);
  const auto tensor = QuantizeNvfp4(weights, 64, 128, NibbleOrder::kLowFirst);
  ASSERT_TRUE(tensor.ok());
  const std::vector<float> out = Dequantize(tensor->view());
  for (size_t i = 0; i < out.size(); ++i) {
    const auto row = static_cast<int64_t>(i / 128);
    const auto block = static_cast<int64_t>(i % 128 / 16);
    const float scale =
        E4m3ToFloat(tensor->block_scales[static_cast<size_t>(Nvfp4ScaleIndex(row, block, 8))]) *
        tensor->tensor_scale;
    // Half of the widest gap (4 to 6) is one scale; a scale rounded down by at most 1/16 clips
    // values up to 6.4 scales to 6.
    ASSERT_LE(std::fabs(out[i] - weights[i]), scale * 1.00001f) << i;
  }
}

TEST(Nvfp4, TheFixtureIsReproducedBitForBit) {
  const FixtureReader fixture("formats.safetensors");
  const std::vector<uint16_t> stored = fixture.Read<uint16_t>("nvfp4.w");
  ASSERT_EQ(stored.size(), 160u * 512u);
  std::vector<float> weights(stored.size());
  WidenBf16(stored.data(), weights.data(), static_cast<int64_t>(stored.size()));
  const auto tensor = QuantizeNvfp4(weights, 160, 512, NibbleOrder::kHighFirst);
  ASSERT_TRUE(tensor.ok()) << MessageOf(tensor.status());
  EXPECT_EQ(tensor->tensor_scale, fixture.Read<float>("nvfp4.scale2").at(0));
  EXPECT_EQ(tensor->block_scales, fixture.Read<uint8_t>("nvfp4.block_scale_swizzled"));
  EXPECT_EQ(tensor->packed, fixture.Read<uint8_t>("nvfp4.packed_hi_first"));
  const std::vector<float> expected = fixture.Read<float>("nvfp4.dequant_f32");
  const CompareResult result = CompareFloats(Dequantize(tensor->view()), expected);
  EXPECT_TRUE(Identical(result)) << Describe(result);
}

TEST(E4m3Fixture, BytesOfTorchAreReproduced) {
  const FixtureReader fixture("formats.safetensors");
  const std::vector<float> in = fixture.Read<float>("e4m3.in");
  const std::vector<uint8_t> expected = fixture.Read<uint8_t>("e4m3.torch_bytes");
  ASSERT_EQ(in.size(), 8013u);
  ASSERT_EQ(expected.size(), in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(FloatToE4m3Saturating(in[i]), expected[i]) << in[i];
    // torch's cast does not saturate; the fixture clamped its input first.
    ASSERT_EQ(FloatToE4m3(std::clamp(in[i], -448.0f, 448.0f)), expected[i]) << in[i];
  }
}

}  // namespace
}  // namespace h3rt
