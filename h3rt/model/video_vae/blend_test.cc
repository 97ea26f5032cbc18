#include "h3rt/model/video_vae/blend.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

namespace h3rt::video_vae {
namespace {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

// value(tile row, tile column, plane, y in the tile, x in the tile).
using TileValue = std::function<float(int64_t, int64_t, int64_t, int64_t, int64_t)>;

std::vector<float> Join(int64_t planes, const AxisTiles& rows, const AxisTiles& columns,
                        const TileValue& value, int threads = 1) {
  ThreadPool pool(threads);
  const ExecContext context = {.pool = &pool};
  TileBlender blender = TileBlender::Create(planes, rows, columns).value();
  std::vector<float> out(static_cast<size_t>(planes * rows.extent * columns.extent), kPoison);
  for (int64_t i = 0; i < rows.count(); ++i) {
    for (int64_t j = 0; j < columns.count(); ++j) {
      const auto read = [&](int64_t plane, int64_t y, float* row) {
        for (int64_t x = 0; x < columns.tile; ++x) row[x] = value(i, j, plane, y, x);
      };
      const auto write = [&](int64_t plane, int64_t y, int64_t x, std::span<const float> row) {
        const int64_t at = (plane * rows.extent + y) * columns.extent + x;
        std::copy(row.begin(), row.end(), out.begin() + at);
      };
      EXPECT_TRUE(blender.Add(i, j, planes, read, write, context).ok());
    }
  }
  return out;
}

float Noise(int64_t i, int64_t j, int64_t plane, int64_t y, int64_t x) {
  uint64_t z = static_cast<uint64_t>((((i * 31 + j) * 31 + plane) * 97 + y) * 97 + x + 1) *
               0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  return static_cast<float>(z >> 40) * 0x1p-24f - 0.5f;
}

TEST(Blend, ConstantFieldStaysConstant) {
  const AxisTiles rows = TileAxis(11, 4, 1);
  const AxisTiles columns = TileAxis(9, 5, 3);
  // 1 - w and w are rounded on their own, so that each of two ramps is off by at most an ulp of 1.
  for (const float v : Join(2, rows, columns, [](auto...) { return 1.0f; })) {
    EXPECT_NEAR(v, 1.0f, 2 * 0x1p-23f);
  }
  for (const float v : Join(2, rows, columns, [](auto...) { return 0.0f; })) EXPECT_EQ(v, 0.0f);
}

TEST(Blend, RampGoesFromTheEarlierTileInSteps) {
  const AxisTiles columns = TileAxis(6, 4, 2);  // tiles at 0 and 2
  const std::vector<float> out =
      Join(1, TileAxis(1, 4, 2), columns,
           [](int64_t, int64_t j, auto...) { return static_cast<float>(j); });
  EXPECT_EQ(out, (std::vector<float>{0.0f, 0.0f, 0.0f, 0.5f, 1.0f, 1.0f}));
}

// Section 6.6 as it is worded, with every raw tile held: vertical with the raw tile above, then
// horizontal with the raw tile to the left, then the trailing overlap is cut off.
TEST(Blend, EqualsTheRuleWithEveryRawTileHeld) {
  for (const auto& [extent, tile, overlap] :
       std::vector<std::array<int64_t, 3>>{{13, 5, 2}, {17, 16, 4}, {29, 16, 4}, {10, 5, 4}}) {
    const AxisTiles rows = TileAxis(extent, tile, overlap);
    const AxisTiles columns = TileAxis(extent + 3, tile, overlap);
    const std::vector<float> out = Join(2, rows, columns, Noise);
    for (int64_t p = 0; p < 2; ++p) {
      for (int64_t y = 0; y < rows.extent; ++y) {
        for (int64_t x = 0; x < columns.extent; ++x) {
          int64_t i = 0;
          int64_t j = 0;
          while (i + 1 < rows.count() && y >= rows.Start(i + 1)) ++i;
          while (j + 1 < columns.count() && x >= columns.Start(j + 1)) ++j;
          const int64_t ty = y - rows.Start(i);
          const int64_t tx = x - columns.Start(j);
          double v = static_cast<double>(Noise(i, j, p, ty, tx));
          if (ty < rows.Overlap(i)) {
            const double w = static_cast<double>(ty) / static_cast<double>(rows.Overlap(i));
            v = w * v +
                (1 - w) * static_cast<double>(Noise(i - 1, j, p, y - rows.Start(i - 1), tx));
          }
          if (tx < columns.Overlap(j)) {
            const double w = static_cast<double>(tx) / static_cast<double>(columns.Overlap(j));
            v = w * v +
                (1 - w) * static_cast<double>(Noise(i, j - 1, p, ty, x - columns.Start(j - 1)));
          }
          const float got = out[static_cast<size_t>((p * rows.extent + y) * columns.extent + x)];
          // Values are below 1/2; six roundings of at most half an ulp of 1/2 each.
          ASSERT_TRUE(std::abs(static_cast<double>(got) - v) <= 6 * 0x1p-26)
              << extent << " at " << y << ", " << x;
        }
      }
    }
  }
}

// A blender made for five planes that gets two: the others are neither read nor written, and the
// two become what a blender of their own makes of them.
TEST(Blend, OnlyLivePlanesAreReadAndWritten) {
  const AxisTiles rows = TileAxis(11, 4, 1);
  const AxisTiles columns = TileAxis(9, 5, 3);
  constexpr int64_t kLive = 2;
  ThreadPool pool(2);
  const ExecContext context = {.pool = &pool};
  TileBlender blender = TileBlender::Create(5, rows, columns).value();
  std::vector<float> out(static_cast<size_t>(kLive * rows.extent * columns.extent), kPoison);
  std::atomic<int64_t> others = 0;
  for (int64_t i = 0; i < rows.count(); ++i) {
    for (int64_t j = 0; j < columns.count(); ++j) {
      const auto read = [&](int64_t plane, int64_t y, float* row) {
        others += plane < kLive ? 0 : 1;
        for (int64_t x = 0; x < columns.tile; ++x) row[x] = Noise(i, j, plane, y, x);
      };
      const auto write = [&](int64_t plane, int64_t y, int64_t x, std::span<const float> row) {
        others += plane < kLive ? 0 : 1;
        if (plane >= kLive) return;
        const int64_t at = (plane * rows.extent + y) * columns.extent + x;
        std::copy(row.begin(), row.end(), out.begin() + at);
      };
      ASSERT_TRUE(blender.Add(i, j, kLive, read, write, context).ok());
    }
  }
  EXPECT_EQ(others, 0);
  EXPECT_EQ(out, Join(kLive, rows, columns, Noise));
}

TEST(Blend, BytesDoNotDependOnThreads) {
  const AxisTiles rows = TileAxis(21, 8, 3);
  const AxisTiles columns = TileAxis(19, 8, 2);
  const std::vector<float> one = Join(9, rows, columns, Noise, 1);
  EXPECT_EQ(one, Join(9, rows, columns, Noise, 2));
  EXPECT_EQ(one, Join(9, rows, columns, Noise, 3));
}

}  // namespace
}  // namespace h3rt::video_vae
