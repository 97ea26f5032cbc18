// The scalar codecs over all of their bit patterns, against formulas and a search that share no
// code with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "h3rt/num/bf16.h"
#include "h3rt/num/e2m1.h"
#include "h3rt/num/e4m3.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

// A binary float format as the textbook writes it.
struct Format {
  const char* name;
  int exponent_bits;
  int fraction_bits;
  int bias;
  int max_code;       // the largest finite magnitude
  int overflow_code;  // what a magnitude that rounds beyond it becomes
  std::function<int(float)> encode;
  std::function<float(int)> decode;

  int sign_code() const { return 1 << (exponent_bits + fraction_bits); }

  // The value of a finite magnitude code.
  double Value(int code) const {
    const int exponent = code >> fraction_bits;
    const int fraction = code & ((1 << fraction_bits) - 1);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }

  // The code of a finite float: the nearest value, ties to the even code, sign kept.
  int Nearest(float value) const {
    const double magnitude = std::fabs(static_cast<double>(value));
    int low = 0;
    int high = max_code + 1;  // Value(low) <= magnitude < Value(high), or high is beyond
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (Value(middle) <= magnitude ? low : high) = middle;
    }
    // The step above max_code is the one that the format would go on with.
    const double above = high <= max_code ? Value(high) : 2 * Value(max_code) - Value(max_code - 1);
    const double down = magnitude - Value(low);
    const double up = above - magnitude;
    int code = down < up || (down == up && low % 2 == 0) ? low : high;
    if (code > max_code) code = overflow_code;
    return code | (std::signbit(value) ? sign_code() : 0);
  }
};

Format Bf16Format() {
  return {"bf16",
          8,
          7,
          127,
          0x7f7f,
          0x7f80,
          [](float v) { return int{FloatToBf16(v)}; },
          [](int c) { return Bf16ToFloat(static_cast<uint16_t>(c)); }};
}
Format F16Format() {
  return {"f16",
          5,
          10,
          15,
          0x7bff,
          0x7c00,
          [](float v) { return int{FloatToF16(v)}; },
          [](int c) { return F16ToFloat(static_cast<uint16_t>(c)); }};
}
Format E4m3Format(bool saturating) {
  return {
      saturating ? "e4m3 saturating" : "e4m3",
      4,
      3,
      7,
      0x7e,
      saturating ? 0x7e : 0x7f,
      [saturating](float v) { return int{saturating ? FloatToE4m3Saturating(v) : FloatToE4m3(v)}; },
      [](int c) { return E4m3ToFloat(static_cast<uint8_t>(c)); }};
}
Format E2m1Format() {
  return {"e2m1",
          2,
          1,
          1,
          7,
          7,
          [](float v) { return int{FloatToE2m1(v)}; },
          [](int c) { return E2m1ToFloat(static_cast<uint8_t>(c)); }};
}

std::vector<Format> AllFormats() {
  return {Bf16Format(), F16Format(), E4m3Format(false), E4m3Format(true), E2m1Format()};
}

TEST(ScalarCodecs, EveryFiniteCodeDecodesToItsFormulaAndEncodesBack) {
  for (const Format& format : AllFormats()) {
    for (int code = 0; code <= format.max_code; ++code) {
      for (const int sign : {0, format.sign_code()}) {
        const double value = sign != 0 ? -format.Value(code) : format.Value(code);
        const float decoded = format.decode(code | sign);
        ASSERT_EQ(std::bit_cast<uint64_t>(static_cast<double>(decoded)),
                  std::bit_cast<uint64_t>(value))
            << format.name << " code " << (code | sign);
        ASSERT_EQ(format.encode(decoded), code | sign) << format.name;
      }
    }
  }
}

TEST(ScalarCodecs, EveryMidpointGoesToTheEvenCodeAndItsNeighboursToTheNearer) {
  for (const Format& format : AllFormats()) {
    const float infinity = std::numeric_limits<float>::infinity();
    for (int code = 0; code <= format.max_code; ++code) {
      const bool last = code == format.max_code;
      const double above =
          last ? 2 * format.Value(code) - format.Value(code - 1) : format.Value(code + 1);
      // Exact in float32 for each of these formats.
      const double exact = (format.Value(code) + above) / 2;
      const auto middle = static_cast<float>(exact);
      ASSERT_EQ(static_cast<double>(middle), exact) << format.name << " code " << code;
      const int next = last ? format.overflow_code : code + 1;
      const int even = code % 2 == 0 ? code : next;
      for (const int sign : {0, format.sign_code()}) {
        const float s = sign != 0 ? -1.0f : 1.0f;
        ASSERT_EQ(format.encode(s * middle), even | sign) << format.name << " code " << code;
        ASSERT_EQ(format.encode(s * std::nextafter(middle, 0.0f)), code | sign)
            << format.name << " below the middle over " << code;
        ASSERT_EQ(format.encode(s * std::nextafter(middle, infinity)), next | sign)
            << format.name << " above the middle over " << code;
      }
    }
  }
}

TEST(ScalarCodecs, EncodersAgreeWithASearchOverTheWholeRangeOfFloat32) {
  for (const Format& format : AllFormats()) {
    // Every sign, exponent and upper fraction, with lower bits around each kind of rounding.
    for (uint32_t upper = 0; upper < 0x10000; ++upper) {
      for (const uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
        const auto value = std::bit_cast<float>((upper << 16) | lower);
        if (!std::isfinite(value)) continue;
        ASSERT_EQ(format.encode(value), format.Nearest(value))
            << format.name << " " << std::hexfloat << value;
      }
    }
  }
}

TEST(ScalarCodecs, EncodersAgreeWithASearchOnRandomValuesInTheirRange) {
  std::mt19937_64 random(20240911);
  for (const Format& format : AllFormats()) {
    const double largest = 1.2 * format.Value(format.max_code);
    std::uniform_real_distribution<double> exponent(
        format.Value(1) > 1e-30 ? std::log2(format.Value(1)) - 3 : -140,
        std::min(std::log2(largest), 127.9));
    for (int i = 0; i < 200000; ++i) {
      auto value = static_cast<float>(std::exp2(exponent(random)));
      if ((random() & 1u) != 0) value = -value;
      ASSERT_EQ(format.encode(value), format.Nearest(value))
          << format.name << " " << std::hexfloat << value;
    }
  }
}

TEST(ScalarCodecs, InfinitiesOverflowAsEachFormatSays) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(FloatToBf16(infinity), 0x7f80);
  EXPECT_EQ(FloatToBf16(-infinity), 0xff80);
  EXPECT_EQ(FloatToF16(infinity), 0x7c00);
  EXPECT_EQ(FloatToF16(-infinity), 0xfc00);
  EXPECT_EQ(FloatToE4m3(infinity), 0x7f);
  EXPECT_EQ(FloatToE4m3(-infinity), 0xff);
  EXPECT_EQ(FloatToE4m3Saturating(infinity), 0x7e);
  EXPECT_EQ(FloatToE4m3Saturating(-infinity), 0xfe);
  EXPECT_EQ(FloatToE2m1(infinity), 7);
  EXPECT_EQ(FloatToE2m1(-infinity), 15);
  EXPECT_EQ(Bf16ToFloat(0x7f80), infinity);
  EXPECT_EQ(F16ToFloat(0xfc00), -infinity);
}

TEST(ScalarCodecs, EveryNanStaysANanOfItsSignAndIsQuiet) {
  for (uint32_t fraction = 1; fraction < 0x800000; fraction += fraction < 0x4000 ? 1 : 997) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const auto nan = std::bit_cast<float>(sign | 0x7f800000u | fraction);
      const unsigned bf16 = FloatToBf16(nan);
      ASSERT_EQ(bf16 & 0x7fc0u, 0x7fc0u);
      ASSERT_EQ(bf16 >> 15, sign >> 31);
      const unsigned f16 = FloatToF16(nan);
      ASSERT_EQ(f16 & 0x7e00u, 0x7e00u);
      ASSERT_EQ(f16 >> 15, sign >> 31);
      ASSERT_EQ(FloatToE4m3(nan), 0x7fu | sign >> 24);
      ASSERT_EQ(FloatToE4m3Saturating(nan), 0x7fu | sign >> 24);
      ASSERT_EQ(FloatToE2m1(nan), 7);
    }
  }
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<uint16_t>(code);
    if ((code & 0x7fffu) > 0x7f80u) {
      ASSERT_EQ(std::bit_cast<uint32_t>(Bf16ToFloat(bits)), code << 16);
    }
    if ((code & 0x7fffu) > 0x7c00u) {
      const float value = F16ToFloat(bits);
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_EQ(std::signbit(value), (code & 0x8000u) != 0) << code;
      ASSERT_EQ(FloatToF16(value), code | 0x200u) << "the payload is kept";
    }
  }
  for (const int code : {0x7f, 0xff}) {
    const float value = E4m3ToFloat(static_cast<uint8_t>(code));
    EXPECT_TRUE(std::isnan(value));
    EXPECT_EQ(std::signbit(value), code == 0xff);
  }
}

TEST(ScalarCodecs, E5m2DecodesAll256PatternsToTheFormula) {
  for (int code = 0; code < 256; ++code) {
    const float value = E5m2ToFloat(static_cast<uint8_t>(code));
    const int exponent = (code >> 2) & 31;
    const int fraction = code & 3;
    ASSERT_EQ(std::signbit(value), code >= 128) << code;
    if (exponent == 31) {
      ASSERT_EQ(fraction == 0, std::isinf(value)) << code;
      ASSERT_EQ(fraction != 0, std::isnan(value)) << code;
      continue;
    }
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -16) : std::ldexp(4 + fraction, exponent - 17);
    ASSERT_EQ(std::fabs(static_cast<double>(value)), magnitude) << code;
  }
}

TEST(ScalarCodecs, E2m1HasTheSixteenValuesOfItsDefinition) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code) {
    const float value = E2m1ToFloat(static_cast<uint8_t>(code));
    EXPECT_EQ(std::fabs(static_cast<double>(value)), values[code & 7]);
    EXPECT_EQ(std::signbit(value), code >= 8);
    EXPECT_EQ(E2m1ToFloat(static_cast<uint8_t>(code | 0xa0)), value) << "high bits are ignored";
  }
  // Ties by hand: 0.25 -> 0, 0.75 -> 1, 1.25 -> 1, 1.75 -> 2, 2.5 -> 2, 3.5 -> 4, 5 -> 4.
  const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const int codes[] = {0, 2, 2, 4, 4, 6, 6};
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(FloatToE2m1(ties[i]), codes[i]) << ties[i];
    EXPECT_EQ(FloatToE2m1(-ties[i]), codes[i] | 8) << ties[i];
  }
}

TEST(ScalarCodecs, E4m3OverflowBeginsAfter464) {
  EXPECT_EQ(FloatToE4m3(448.0f), 0x7e);
  EXPECT_EQ(FloatToE4m3(464.0f), 0x7e);
  EXPECT_EQ(FloatToE4m3(std::nextafter(464.0f, 1e9f)), 0x7f);
  EXPECT_EQ(FloatToE4m3Saturating(std::nextafter(464.0f, 1e9f)), 0x7e);
  EXPECT_EQ(FloatToE4m3Saturating(-3e38f), 0xfe);
}

TEST(ScalarCodecs, ArraysGiveTheSameAsScalarsForEveryLength) {
  std::mt19937 random(7);
  for (int64_t n = 0; n <= 67; ++n) {
    const auto size = static_cast<size_t>(n);
    // One element more than asked for stays as it was.
    std::vector<uint16_t> halves(size + 1);
    std::vector<uint8_t> bytes(size + 1);
    std::vector<float> floats(size + 1);
    for (size_t i = 0; i <= size; ++i) {
      halves[i] = static_cast<uint16_t>(random());
      bytes[i] = static_cast<uint8_t>(random());
      floats[i] = std::bit_cast<float>(static_cast<uint32_t>(random()));
    }
    const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
    const uint32_t poison = 0x7fabcdefu;
    const auto check = [&](const auto& widen, const auto& from, const auto& decode) {
      std::vector<float> to(size + 1, std::bit_cast<float>(poison));
      widen(from.data(), to.data(), n);
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(bits(to[i]), bits(decode(from[i])));
      ASSERT_EQ(bits(to[size]), poison);
    };
    check(WidenBf16, halves, Bf16ToFloat);
    check(WidenF16, halves, F16ToFloat);
    check(WidenE4m3, bytes, E4m3ToFloat);
    check(WidenE5m2, bytes, E5m2ToFloat);
    std::vector<uint16_t> narrow(size + 1, 0x1234);
    NarrowToBf16(floats.data(), narrow.data(), n);
    std::vector<float> rounded = floats;
    RoundToBf16InPlace(rounded.data(), n);
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ(narrow[i], FloatToBf16(floats[i]));
      ASSERT_EQ(bits(rounded[i]), bits(RoundToBf16(floats[i])));
    }
    ASSERT_EQ(narrow[size], 0x1234);
    ASSERT_EQ(bits(rounded[size]), bits(floats[size]));
  }
}

}  // namespace
}  // namespace h3rt
