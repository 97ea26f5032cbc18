#include "h3rt/media/image.h"

#include <gtest/gtest.h>

#include <cmath>

#include "h3rt/base/file.h"
#include "h3rt/media/image_header.h"
#include "h3rt/media/image_test_data.h"
#include "h3rt/media/media_test_util.h"

namespace h3rt {
namespace {

template <size_t kSize>
std::string_view Bytes(const unsigned char (&data)[kSize]) {
  return {reinterpret_cast<const char*>(data), kSize};
}

// Big-endian CRC-less patch of a PNG's declared size; the header is read before any decoding.
std::string WithPngSize(uint32_t width, uint32_t height) {
  std::string png(Bytes(kRgbaPng));
  for (size_t i = 0; i < 4; ++i) {
    png[16 + i] = static_cast<char>(width >> (24 - 8 * i) & 255);
    png[20 + i] = static_cast<char>(height >> (24 - 8 * i) & 255);
  }
  return png;
}

TEST(Image, EveryExifOrientationTurnsAsPillowDoes) {
  // Red samples of ImageOps.exif_transpose (Pillow 13.0.0) on the formula picture 3x2.
  const std::vector<std::vector<uint8_t>> expected = {
      {0, 37, 74, 91, 141, 191}, {74, 37, 0, 191, 141, 91}, {191, 141, 91, 74, 37, 0},
      {91, 141, 191, 0, 37, 74}, {0, 91, 37, 141, 74, 191}, {91, 0, 141, 37, 191, 74},
      {191, 74, 141, 37, 91, 0}, {74, 191, 37, 141, 0, 91}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const RgbImage out = ApplyOrientation(FormulaImage(3, 2), orientation);
    EXPECT_EQ(out.width, orientation < 5 ? 3 : 2);
    std::vector<uint8_t> red;
    for (size_t i = 0; i < out.pixels.size(); i += 3) red.push_back(out.pixels[i]);
    EXPECT_EQ(red, expected[static_cast<size_t>(orientation - 1)]) << orientation;
  }
  EXPECT_EQ(ApplyOrientation(FormulaImage(3, 2), 0), FormulaImage(3, 2));
  EXPECT_EQ(ApplyOrientation(FormulaImage(3, 2), 9), FormulaImage(3, 2));
}

TEST(Image, HeadersGiveKindSizeAndOrientation) {
  const auto png = ReadImageHeader(Bytes(kTurnedPng), "p");
  ASSERT_TRUE(png.ok()) << png.status();
  EXPECT_EQ(png->kind, ImageKind::kPng);
  EXPECT_EQ(png->width, 3);
  EXPECT_EQ(png->height, 2);
  EXPECT_EQ(png->orientation, 6);
  const auto jpeg = ReadImageHeader(Bytes(kTurnedJpeg), "j");
  ASSERT_TRUE(jpeg.ok()) << jpeg.status();
  EXPECT_EQ(jpeg->kind, ImageKind::kJpeg);
  EXPECT_EQ(jpeg->width, 16);
  EXPECT_EQ(jpeg->height, 8);
  EXPECT_EQ(jpeg->orientation, 8);
}

TEST(Image, WhatIsNoPictureIsRefusedByName) {
  const TempFolder folder;
  for (const std::string content : {"", "GIF89a", "this is a text", "\x89PNG"}) {
    ASSERT_TRUE(WriteFileAtomically(folder.File("x.png"), content).ok());
    const auto image = ReadImage(folder.File("x.png"));
    EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument) << content;
    EXPECT_NE(MessageOf(image.status()).find("x.png"), std::string::npos) << image.status();
  }
  EXPECT_EQ(ReadImage(folder.File("absent.png")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadImage(folder.path()).status().code(), absl::StatusCode::kUnavailable);
}

TEST(Image, TooManyPixelsAreRefusedBeforeDecoding) {
  for (const auto& [w, h] :
       {std::pair<uint32_t, uint32_t>{20000, 20000}, {0, 5}, {0xFFFFFFFFu, 1}, {65501, 1}}) {
    EXPECT_EQ(DecodeImage(WithPngSize(w, h), "bomb.png").status().code(),
              absl::StatusCode::kInvalidArgument)
        << w << "x" << h;
  }
}

TEST(Image, CutFilesAreTypedErrorsAtEveryLength) {
  H3RT_NEEDS_FFMPEG();
  for (const std::string_view whole : {Bytes(kRgbaPng), Bytes(kTurnedJpeg), Bytes(kWebp)}) {
    ASSERT_TRUE(DecodeImage(whole, "whole").ok()) << DecodeImage(whole, "whole").status();
    for (size_t n = 0; n < whole.size(); ++n) {
      const auto code = DecodeImage(whole.substr(0, n), "cut").status().code();
      EXPECT_TRUE(code == absl::StatusCode::kDataLoss || code == absl::StatusCode::kInvalidArgument)
          << n << " of " << whole.size() << ": " << DecodeImage(whole.substr(0, n), "cut").status();
    }
  }
}

TEST(Image, FlippedBytesNeverCrashAndADamagedPngIsSeen) {
  H3RT_NEEDS_FFMPEG();
  for (size_t i = 0; i < sizeof(kRgbaPng); ++i) {
    std::string png(Bytes(kRgbaPng));
    png[i] = static_cast<char>(png[i] ^ 0x55);
    // Every byte of a PNG is a signature or covered by a length or a checksum.
    EXPECT_FALSE(DecodeImage(png, "damaged").ok()) << "byte " << i;
  }
}

TEST(Image, AlphaIsDroppedNotBlended) {
  H3RT_NEEDS_FFMPEG();
  const auto rgba = DecodeImage(Bytes(kRgbaPng), "rgba");
  ASSERT_TRUE(rgba.ok()) << rgba.status();
  EXPECT_EQ(*rgba, FormulaImage(3, 2));
  const auto palette = DecodeImage(Bytes(kPalettePng), "palette");
  ASSERT_TRUE(palette.ok()) << palette.status();
  EXPECT_EQ(palette->pixels, std::vector<uint8_t>(std::begin(kPaletteRgb), std::end(kPaletteRgb)));
}

TEST(Image, GreyBitsAndDeepSamplesBecomeRgb) {
  H3RT_NEEDS_FFMPEG();
  const auto bits = DecodeImage(Bytes(kBitPng), "bits");
  ASSERT_TRUE(bits.ok()) << bits.status();
  const RgbImage formula = FormulaImage(9, 2);
  for (size_t i = 0; i < 18; ++i) {
    const uint8_t expected = formula.pixels[3 * i] > 100 ? 255 : 0;
    EXPECT_EQ(bits->pixels[3 * i], expected) << i;
  }
  const auto grey = DecodeImage(Bytes(kGray16Png), "grey");
  ASSERT_TRUE(grey.ok()) << grey.status();
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(grey->pixels[3 * i + 1], (300 + 9999 * i) >> 8);
}

TEST(Image, OrientationIsAppliedOnReading) {
  H3RT_NEEDS_FFMPEG();
  EXPECT_EQ(*DecodeImage(Bytes(kTurnedPng), "png"), ApplyOrientation(FormulaImage(3, 2), 6));
  // Orientation 8 turns a quarter to the left: the right (blue) half comes up.
  const auto jpeg = DecodeImage(Bytes(kTurnedJpeg), "jpeg");
  ASSERT_TRUE(jpeg.ok()) << jpeg.status();
  ASSERT_EQ(jpeg->width, 8);
  ASSERT_EQ(jpeg->height, 16);
  // Quality 95 divides by at most 10 in these 8x8 blocks; flat blocks keep only the mean, so a
  // level is off by at most 10/8/2 in each plane and 2.8 times that in RGB, with rounding under 4.
  const auto pixel = [&](size_t y, size_t c) {
    return static_cast<int>(jpeg->pixels[(y * 8 + 4) * 3 + c]);
  };
  for (const size_t y : {0u, 7u}) {
    EXPECT_NEAR(pixel(y, 0), 0, 4);
    EXPECT_NEAR(pixel(y, 2), 255, 4);
  }
  for (const size_t y : {8u, 15u}) {
    EXPECT_NEAR(pixel(y, 0), 255, 4);
    EXPECT_NEAR(pixel(y, 2), 0, 4);
  }
}

TEST(Image, PngAndWebpAreLossless) {
  H3RT_NEEDS_FFMPEG();
  const auto webp = DecodeImage(Bytes(kWebp), "webp");
  ASSERT_TRUE(webp.ok()) << webp.status();
  EXPECT_EQ(*webp, FormulaImage(4, 3));
  const TempFolder folder;
  for (const auto& [w, h] : {std::pair<int64_t, int64_t>{1, 1}, {37, 23}, {4000, 1}, {1, 999}}) {
    const RgbImage image = FormulaImage(w, h);
    ASSERT_TRUE(WritePng(folder.File("a.png"), image).ok());
    ASSERT_TRUE(WritePng(folder.File("b.png"), image).ok());
    const auto read = ReadImage(folder.File("a.png"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, image);
    EXPECT_EQ(ReadFile(folder.File("a.png")).value(), ReadFile(folder.File("b.png")).value());
  }
  EXPECT_EQ(EncodePng({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Image, FramesGoIntoAFolderAndNothingStaysOnFailure) {
  H3RT_NEEDS_FFMPEG();
  TempFolder folder;
  Tensor video = SmoothVideo(3, 16, 16);
  const auto paths = WritePngFrames(folder.path(), video.view(), nullptr);
  ASSERT_TRUE(paths.ok()) << paths.status();
  ASSERT_EQ(paths->size(), 3u);
  EXPECT_EQ(paths->at(2), folder.File("frame_00002.png"));
  EXPECT_EQ(*ReadImage(paths->at(1)), *FrameToImage(video.view().Select(1, 1), 1));

  // A second clip into the same folder would be mixed with the first.
  EXPECT_EQ(WritePngFrames(folder.path(), video.view(), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckPngFolder(folder.File("frame_00000.png")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CheckPngFolder(folder.File("new")).ok());

  const std::string made = folder.File("new");
  video.as<float>()[2 * 256] = std::nanf("");
  const auto bad = WritePngFrames(made, video.view(), nullptr);
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(bad.status()).find("frame 2"), std::string::npos) << bad.status();
  EXPECT_NE(::access(made.c_str(), F_OK), 0) << "the folder of this call is removed";
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(WritePngFrames(made, video.view(), &cancel).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_NE(::access(made.c_str(), F_OK), 0);
  EXPECT_EQ(WritePngFrames(folder.File("no/such"), video.view(), nullptr).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Image, FolderForFramesIsCheckedBeforeTheWork) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  EXPECT_TRUE(CheckPngFolder(folder.path()).ok());
  EXPECT_TRUE(CheckPngFolder(folder.File("new")).ok());
  EXPECT_TRUE(CheckPngFolder(folder.File("new/")).ok());
  EXPECT_TRUE(folder.Names().empty()) << "the check leaves nothing";
  EXPECT_EQ(CheckPngFolder(folder.File("no/such")).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(CheckPngFolder("/proc/self/new").ok()) << "takes no folders, whoever asks";
  // An empty folder that was there stays after a failure.
  Tensor video = SmoothVideo(2, 16, 16);
  video.as<float>()[256] = std::nanf("");
  EXPECT_EQ(WritePngFrames(folder.path(), video.view(), nullptr).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(::access(folder.path().c_str(), F_OK), 0);
  EXPECT_TRUE(folder.Names().empty());
  EXPECT_EQ(WritePngFrames(folder.path(), video.view().Slice(1, 0, 0), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  // The frames of an earlier, longer clip stay as they were.
  const auto old = WritePngFrames(folder.path(), SmoothVideo(3, 16, 16).view(), nullptr);
  ASSERT_TRUE(old.ok()) << old.status();
  const std::string first = ReadFile(old->at(0)).value();
  EXPECT_EQ(WritePngFrames(folder.path(), video.view(), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(old->at(0)).value(), first);
  EXPECT_EQ(folder.Names().size(), 3u);
  const ScopedEnv none("H3RT_MEDIA_LIBRARY", "none");
  EXPECT_EQ(CheckPngFolder(folder.File("new")).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Image, WithoutFfmpegTheReasonIsGiven) {
  const ScopedEnv none("H3RT_MEDIA_LIBRARY", "none");
  const auto status = EncodePng(FormulaImage(2, 2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(status).find("FFmpeg"), std::string::npos) << status;
  EXPECT_EQ(DecodeImage(Bytes(kRgbaPng), "x").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace h3rt
