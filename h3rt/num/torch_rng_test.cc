#include "h3rt/num/torch_rng.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "h3rt/num/compare.h"
#include "h3rt/num/fixture_reader.h"

namespace h3rt {
namespace {

constexpr float kPoison = 1e30f;

std::vector<float> Draw(TorchGenerator& generator, size_t n) {
  std::vector<float> out(n, kPoison);
  generator.Randn(out);
  return out;
}

TEST(TorchRng, EveryRecordedDrawIsReproducedBitForBit) {
  const FixtureReader fixture("rng.safetensors");
  int compared = 0;
  for (const auto& [key, entry] : fixture.header().items()) {
    if (key.rfind("randn.", 0) != 0) continue;
    const std::vector<float> expected = fixture.Read<float>(key);
    TorchGenerator generator(std::stoull(key.substr(6)));
    const CompareResult result = CompareFloats(Draw(generator, expected.size()), expected);
    EXPECT_TRUE(Identical(result)) << key << ": " << Describe(result);
    ++compared;
  }
  EXPECT_EQ(compared, 24) << "4 seeds of 6 shapes";
}

TEST(TorchRng, DrawsOfOneGeneratorContinueBitForBit) {
  const FixtureReader fixture("rng.safetensors");
  TorchGenerator generator(42);
  for (const char* key : {"seq.a", "seq.b", "seq.c"}) {
    const std::vector<float> expected = fixture.Read<float>(key);
    const CompareResult result = CompareFloats(Draw(generator, expected.size()), expected);
    EXPECT_TRUE(Identical(result)) << key << ": " << Describe(result);
  }
}

TEST(TorchRng, OutputsAreThoseOfTheMersenneTwister) {
  for (const uint32_t seed : {0u, 1u, 42u, 5489u, 0xffffffffu}) {
    std::mt19937 reference(seed);
    TorchGenerator generator(seed);
    for (int i = 0; i < 3000; ++i) ASSERT_EQ(generator.Next32(), reference()) << i;
  }
  // The known answer of the C++ standard: the 10,000th output of the default seed.
  TorchGenerator generator(5489);
  uint32_t last = 0;
  for (int i = 0; i < 10000; ++i) last = generator.Next32();
  EXPECT_EQ(last, 4123659995u);
}

TEST(TorchRng, OnlyTheLowHalfOfTheSeedCounts) {
  TorchGenerator a(7);
  TorchGenerator b((uint64_t{1} << 40) + 7);
  TorchGenerator c(8);
  const std::vector<float> drawn = Draw(a, 64);
  EXPECT_TRUE(Identical(CompareFloats(Draw(b, 64), drawn)));
  EXPECT_FALSE(Identical(CompareFloats(Draw(c, 64), drawn)));
}

TEST(TorchRng, TheKeptScalarValueSurvivesAWideDraw) {
  TorchGenerator plain(3);
  const std::vector<float> pair = Draw(plain, 2);
  TorchGenerator mixed(3);
  EXPECT_EQ(Draw(mixed, 1)[0], pair[0]);
  const std::vector<float> wide = Draw(mixed, 16);
  EXPECT_EQ(Draw(mixed, 1)[0], pair[1]);
  // The pair took four outputs, and the wide draw began right after them.
  TorchGenerator skipped(3);
  for (int i = 0; i < 4; ++i) skipped.Next32();
  EXPECT_TRUE(Identical(CompareFloats(wide, Draw(skipped, 16))));
}

TEST(TorchRng, ScalarDrawsAreTheBoxMullerFormulaInDouble) {
  std::mt19937 source(11);
  const auto uniform = [&source] {
    const uint64_t upper = source();
    const uint64_t lower = source();
    return std::ldexp(static_cast<double>((upper << 32 | lower) % (uint64_t{1} << 53)), -53);
  };
  const double u1 = uniform();
  const double u2 = uniform();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::acos(-1.0) * u1;
  TorchGenerator generator(11);
  const std::vector<float> drawn = Draw(generator, 2);
  EXPECT_EQ(drawn[0], static_cast<float>(radius * std::cos(theta)));
  EXPECT_EQ(drawn[1], static_cast<float>(radius * std::sin(theta)));
}

TEST(TorchRng, ATailRedrawsTheLastSixteen) {
  for (const size_t n : {17u, 31u, 33u, 47u, 100u}) {
    TorchGenerator generator(5);
    const std::vector<float> drawn = Draw(generator, n);
    // The part before the last 16 is that of the whole groups.
    TorchGenerator whole(5);
    const std::vector<float> groups = Draw(whole, n / 16 * 16);
    for (size_t i = 0; i < n - 16; ++i) ASSERT_EQ(drawn[i], groups[i]) << n;
    // The last 16 come from outputs n to n + 15.
    TorchGenerator tail(5);
    for (size_t i = 0; i < n; ++i) tail.Next32();
    const std::vector<float> last = Draw(tail, 16);
    for (size_t i = 0; i < 16; ++i) ASSERT_EQ(drawn[n - 16 + i], last[i]) << n;
    EXPECT_EQ(generator.Next32(), tail.Next32()) << "both are at output n + 16";
  }
}

TEST(TorchRng, NothingDrawnLeavesTheState) {
  TorchGenerator a(9);
  a.Randn({});
  TorchGenerator b(9);
  EXPECT_EQ(a.Next32(), b.Next32());
}

TEST(TorchRng, WideDrawsAreWithinFloatRoundingOfBoxMullerInDouble) {
  constexpr size_t kSize = 1 << 16;
  TorchGenerator generator(123);
  const std::vector<float> drawn = Draw(generator, kSize);
  std::mt19937 source(123);
  std::vector<double> uniforms(kSize);
  for (double& u : uniforms) u = std::ldexp(static_cast<double>(source() & 0xffffffu), -24);
  double worst = 0;
  for (size_t i = 0; i < kSize; i += 16) {
    for (size_t j = i; j < i + 8; ++j) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - uniforms[j]));
      const double theta = 2.0 * std::acos(-1.0) * uniforms[j + 8];
      worst = std::max(worst, std::fabs(drawn[j] - radius * std::cos(theta)));
      worst = std::max(worst, std::fabs(drawn[j + 8] - radius * std::sin(theta)));
    }
  }
  // radius <= sqrt(48 ln 2) < 5.8. theta is off by its own rounding and that of float(2 pi), at
  // most 2^-22 + 6.3 * 2^-24 in all; logarithm, root, sine and products add under 8 roundings of
  // 2^-24.
  EXPECT_LE(worst, 5.8 * (0x1p-22 + 6.3 * 0x1p-24 + 8 * 0x1p-24));
}

TEST(TorchRng, TheLargestReleasedLatentIsDrawnWholeAndLooksNormal) {
  TorchGenerator generator(440420);
  const std::vector<float> drawn = Draw(generator, size_t{24} * 37 * 48 * 84);
  double sum = 0;
  double squares = 0;
  for (const float value : drawn) {
    ASSERT_LT(std::fabs(value), 5.8f) << "the largest radius of 24-bit uniforms; poison is beyond";
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto n = static_cast<double>(drawn.size());
  // Five standard errors: 1/sqrt(n) of the mean, sqrt(2/n) of the variance.
  EXPECT_LE(std::fabs(sum / n), 5 / std::sqrt(n));
  EXPECT_LE(std::fabs(squares / n - 1), 5 * std::sqrt(2 / n));
}

}  // namespace
}  // namespace h3rt
