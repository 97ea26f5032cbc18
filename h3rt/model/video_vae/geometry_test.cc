#include "h3rt/model/video_vae/geometry.h"

#include <gtest/gtest.h>

namespace h3rt::video_vae {
namespace {

ClipGeometry Released() { return ClipGeometry::Of(VideoVaeConfig{}); }

TEST(Tiles, ReleasedPositionsOf1344AreThoseOfTheSpecification) {
  const AxisTiles tiles = TileAxis(1344 / 16, 16, 4).Scaled(16);
  EXPECT_EQ(tiles.start, (std::vector<int64_t>{0, 176, 352, 528, 704, 896, 1088}));
  const std::vector<int64_t> overlaps = {0, 80, 80, 80, 80, 64, 64};
  for (int64_t i = 0; i < tiles.count(); ++i) {
    EXPECT_EQ(tiles.Overlap(i), overlaps[static_cast<size_t>(i)]) << i;
  }
}

TEST(Tiles, ReleasedPositionsOf768AreThoseOfTheSpecification) {
  const AxisTiles tiles = TileAxis(768 / 16, 16, 4).Scaled(16);
  EXPECT_EQ(tiles.start, (std::vector<int64_t>{0, 160, 336, 512}));
  EXPECT_EQ(tiles.Overlap(1), 96);
  EXPECT_EQ(tiles.Overlap(2), 80);
  EXPECT_EQ(tiles.Overlap(3), 80);
  EXPECT_EQ(tiles.MaxOverlap(), 96);
}

TEST(Tiles, CanonicalJobIs196DecoderCalls) {
  const int64_t a_chunk = TileAxis(84, 16, 4).count() * TileAxis(48, 16, 4).count();
  EXPECT_EQ(a_chunk * Released().DecodeChunks(37), 196);
}

TEST(Tiles, CoverEveryExtentOnceWithTheFewestTiles) {
  for (int64_t tile = 1; tile <= 9; ++tile) {
    for (int64_t overlap = 0; overlap < tile; ++overlap) {
      for (int64_t extent = 1; extent <= 60; ++extent) {
        const AxisTiles tiles = TileAxis(extent, tile, overlap);
        ASSERT_EQ(tiles.tile, std::min(extent, tile));
        ASSERT_EQ(tiles.Start(0), 0);
        ASSERT_EQ(tiles.start.back() + tiles.tile, extent);
        for (int64_t i = 1; i < tiles.count(); ++i) {
          ASSERT_GE(tiles.Overlap(i), overlap);
          ASSERT_LT(tiles.Overlap(i), tile);
          ASSERT_EQ(tiles.KeptEnd(i - 1), tiles.Start(i));
        }
        const int64_t fewer = tiles.count() - 1;
        const int64_t reach = fewer == 0 ? 0 : fewer * tile - (fewer - 1) * overlap;
        ASSERT_LT(reach, extent);
      }
    }
  }
}

TEST(Tiles, SettingsThatDoNotFitTheGridAreRefused) {
  const VideoVaeConfig config;
  EXPECT_TRUE(ValidateTiling(config, {}).ok());
  EXPECT_TRUE(ValidateTiling(config, {.tile = 32, .overlap = 16}).ok());
  for (const VaeTiling bad : {VaeTiling{.tile = 0, .overlap = 0},
                              {.tile = 256, .overlap = 256},
                              {.tile = 256, .overlap = -16},
                              {.tile = 250, .overlap = 64},
                              {.tile = 256, .overlap = 60}}) {
    const absl::Status status = ValidateTiling(config, bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.tile << " " << bad.overlap;
  }
}

TEST(Clips, ReleasedNumbersFollowFromTheConfiguration) {
  const ClipGeometry clip = Released();
  EXPECT_EQ(clip.factor, 4);
  EXPECT_EQ(clip.latents, 5);
  EXPECT_EQ(clip.overlap, 2);
  EXPECT_EQ(clip.skipped, 3);
  EXPECT_EQ(clip.fade, 5);
  EXPECT_EQ(clip.decoded_latents(), 7);
  EXPECT_EQ(clip.RawFrame(0), 3);
  EXPECT_EQ(clip.RawFrame(16), 19);
  EXPECT_EQ(clip.RawFrame(17), 23);
  EXPECT_EQ(clip.RawFrame(21), 27);
}

// T18: the rule as section 6.5 and C10 word it (whole clips, then what padding added is trimmed),
// against the closed form, for 2 to 37 latents.
TEST(Clips, DecodedFramesOf2To37LatentsFollowTheTrimmingRule) {
  const ClipGeometry clip = Released();
  for (int64_t t = 2; t <= 37; ++t) {
    int64_t n = t + 3;
    while (n % 5 != 0) ++n;
    int64_t chunks = n / 5 - 1;
    int64_t padded = n - 3;  // latents that the chunks see
    if (chunks == 0) {
      chunks = 1;
      padded += 5;
    }
    int64_t frames = 17 * chunks + 5;
    for (int64_t i = t; i < padded; ++i) frames -= i % 5 == 0 ? 1 : 4;
    EXPECT_EQ(clip.DecodedFrames(t), frames) << t;
    EXPECT_EQ(clip.DecodeChunks(t), chunks) << t;
  }
  EXPECT_EQ(clip.DecodedFrames(2), 5);
  EXPECT_EQ(clip.DecodedFrames(3), 9);
  EXPECT_EQ(clip.DecodedFrames(4), 13);
  EXPECT_EQ(clip.DecodedFrames(7), 22);
  EXPECT_EQ(clip.DecodedFrames(37), 124);
}

TEST(Clips, EncodedLatentsAreThoseOfC10) {
  const ClipGeometry clip = Released();
  EXPECT_EQ(clip.EncodedLatents(1), 1);
  EXPECT_EQ(clip.EncodedLatents(5), 2);
  EXPECT_EQ(clip.EncodedLatents(17), 2);
  EXPECT_EQ(clip.EncodedLatents(18), 7);
  for (int64_t k = 0; k < 8; ++k) {
    EXPECT_EQ(clip.EncodedLatents(17 * k + 5), 5 * k + 2);
    EXPECT_EQ(clip.DecodedFrames(5 * k + 2), 17 * k + 5);
  }
  EXPECT_EQ(clip.FramesFor(1), 1);
  EXPECT_EQ(clip.FramesFor(2), 5);
  EXPECT_EQ(clip.FramesFor(5), 17);
}

}  // namespace
}  // namespace h3rt::video_vae
