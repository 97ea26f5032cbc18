// Clips without FFmpeg: Y4M and WAV, read back by a parser of this test.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "h3rt/base/file.h"
#include "h3rt/media/clip_reader.h"
#include "h3rt/media/clip_writer.h"
#include "h3rt/media/media_test_util.h"
#include "h3rt/media/wav.h"

namespace h3rt {
namespace {

constexpr std::string_view kHeader =
    "YUV4MPEG2 W64 H32 F24:1 Ip A1:1 C420mpeg2 XYSCSS=420MPEG2 XCOLORRANGE=LIMITED\n";

ClipOptions Options() {
  ClipOptions options;
  options.metadata.prompt = "two\nlines, \"quotes\" and 猫";
  options.metadata.seed = 7;
  options.metadata.forwards = 4;
  options.metadata.h3rt_version = "0.1.0";
  options.metadata.extra = {{"device", "cpu"}};
  return options;
}

TEST(ClipFallback, WritesY4mAndWavAndSaysWhy) {
  const ScopedEnv none("H3RT_MEDIA_LIBRARY", "none");
  const TempFolder folder;
  const Tensor video = SmoothVideo(22, 32, 64);
  const Tensor sound = Tones(37 * 800, 440, 1000);
  const auto written = WriteClip(folder.File("clip.mp4"), video.view(), sound.view(), Options());
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_TRUE(written->fallback);
  EXPECT_NE(written->note.find("FFmpeg"), std::string::npos) << written->note;
  EXPECT_EQ(written->files,
            (std::vector<std::string>{folder.File("clip.y4m"), folder.File("clip.wav")}));
  EXPECT_EQ(folder.Names().size(), 2u);

  const std::string y4m = ReadFile(written->files[0]).value();
  ASSERT_EQ(y4m.substr(0, kHeader.size()), kHeader);
  constexpr size_t kFrame = 64 * 32 * 3 / 2;
  ASSERT_EQ(y4m.size(), kHeader.size() + 22 * (6 + kFrame));
  for (int64_t f = 0; f < 22; ++f) {
    const size_t at = kHeader.size() + static_cast<size_t>(f) * (6 + kFrame);
    ASSERT_EQ(y4m.substr(at, 6), "FRAME\n") << f;
    const RgbImage frame = *FrameToImage(video.view().Select(1, f), f);
    std::vector<uint8_t> planes(kFrame);
    const std::span<uint8_t> all(planes);
    RgbToYuv420(frame.pixels, 64, 32,
                {all.subspan(0, 2048), all.subspan(2048, 512), all.subspan(2560, 512)});
    ASSERT_EQ(y4m.substr(at + 6, kFrame), std::string(planes.begin(), planes.end())) << f;
  }

  const auto wav = ReadWav(written->files[1]);
  ASSERT_TRUE(wav.ok()) << wav.status();
  EXPECT_EQ(wav->sample_rate, 32000);
  ASSERT_EQ(wav->samples.shape(), (Shape{2, ClipSamples(22)}));
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t i = 0; i < ClipSamples(22); ++i) {
      const float got = wav->samples.as<float>()[c * ClipSamples(22) + i];
      const float want = sound.as<float>()[c * 29600 + i];
      ASSERT_TRUE(std::fabs(got - want) <= 0.5f / 32768) << c << ", " << i;
    }
  }
}

TEST(ClipFallback, FilesAreKnownBeforeTheyAreWritten) {
  const ScopedEnv none("H3RT_MEDIA_LIBRARY", "none");
  for (const char* name : {"clip.mp4", "clip.MOV", "clip.y4m", "clip.Y4M", "a.b.mp4"}) {
    const TempFolder folder;
    const std::string path = folder.File(name);
    EXPECT_TRUE(CheckClipTarget(path, {.width = 64, .height = 32, .frames = 5}).ok());
    EXPECT_TRUE(folder.Names().empty()) << "the check leaves nothing";
    const auto written =
        WriteClip(path, SmoothVideo(5, 32, 64).view(), Tones(6400, 440, 1000).view(), Options());
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(written->files, ClipFiles(path)) << name;
    for (const std::string& file : written->files) ASSERT_EQ(::unlink(file.c_str()), 0) << file;
    EXPECT_TRUE(folder.Names().empty());
  }
}

TEST(ClipFallback, MetadataIsInTheWav) {
  const ScopedEnv none("H3RT_MEDIA_LIBRARY", "none");
  const TempFolder folder;
  const ClipOptions options = Options();
  const auto written = WriteClip(folder.File("clip.mp4"), SmoothVideo(5, 32, 64).view(),
                                 Tones(6400, 440, 1000).view(), options);
  ASSERT_TRUE(written.ok()) << written.status();
  const auto read = ReadClipMetadata(written->files[1]);
  ASSERT_TRUE(read.ok()) << read.status();
  ClipMetadata expected = options.metadata;
  expected.width = 64;
  expected.height = 32;
  expected.frames = 5;
  EXPECT_TRUE(*read == expected);
  ASSERT_EQ(std::rename(written->files[1].c_str(), folder.File("CLIP.WAV").c_str()), 0);
  EXPECT_TRUE(ReadClipMetadata(folder.File("CLIP.WAV")).ok());
  EXPECT_EQ(ReadClipMetadata(written->files[0]).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(
      WriteWav(folder.File("plain.wav"), Tones(9, 440, 1000).view(), 32000, WavFormat::kPcm16)
          .ok());
  EXPECT_EQ(ReadClipMetadata(folder.File("plain.wav")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ClipFallback, SoundIsFilledOrCutToThePictures) {
  const TempFolder folder;
  for (const int64_t samples : {int64_t{0}, int64_t{100}, int64_t{50000}}) {
    const Tensor sound = Tones(std::max<int64_t>(samples, 1), 440, 1000);
    const auto written = WriteClip(folder.File("clip.y4m"), SmoothVideo(22, 32, 64).view(),
                                   sound.view().Slice(1, 0, samples), Options());
    ASSERT_TRUE(written.ok()) << written.status();
    const auto wav = ReadWav(folder.File("clip.wav"));
    ASSERT_TRUE(wav.ok()) << wav.status();
    ASSERT_EQ(wav->samples.shape(), (Shape{2, 29333}));
    for (int64_t i = samples; i < 29333; ++i) ASSERT_EQ(wav->samples.as<float>()[i], 0.0f);
  }
  EXPECT_EQ(ClipSamples(1), 1333);
  EXPECT_EQ(ClipSamples(5), 6667);
  EXPECT_EQ(ClipSamples(24), 32000);
  EXPECT_EQ(ClipSamples(124), 165333);
  EXPECT_EQ(ClipSamples(328), 437333);
}

TEST(ClipFallback, WithoutSoundThereIsOnlyY4mAndFfmpegReadsIt) {
  const TempFolder folder;
  const Tensor video = SmoothVideo(22, 32, 64);
  const auto written = WriteClip(folder.File("clip.y4m"), video.view(), {}, Options());
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->files, std::vector<std::string>{folder.File("clip.y4m")});
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"clip.y4m"});
  H3RT_NEEDS_FFMPEG();
  const auto clip = ReadClip(folder.File("clip.y4m"), {});
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->fps_num, 24);
  EXPECT_EQ(clip->fps_den, 1);
  EXPECT_EQ(clip->frames.size(), 22u);
  EXPECT_EQ(clip->width, 64);
}

TEST(ClipFallback, AnUnreadableWavBesideRemovesBothHalves) {
  // The WAV's name is taken by a folder: the clip fails as a whole.
  const TempFolder folder;
  ASSERT_EQ(::mkdir(folder.File("clip.wav").c_str(), 0700), 0);
  const auto written = WriteClip(folder.File("clip.y4m"), SmoothVideo(5, 32, 64).view(),
                                 Tones(6400, 440, 1000).view(), {});
  EXPECT_EQ(written.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"clip.wav"});
  ::rmdir(folder.File("clip.wav").c_str());
}

TEST(ClipReader, SoundFilesAreResampledToStereo) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  // Mono at 48 kHz, 750 Hz at amplitude 0.5: 32000/48000 of the samples, repeated in both channels
  // at full level.
  Tensor mono = Tensor::Create(DType::kF32, Shape{1, 48000}).value();
  for (int64_t i = 0; i < 48000; ++i) {
    mono.as<float>()[i] = static_cast<float>(
        0.5 * std::sin(2 * std::numbers::pi * 750 * static_cast<double>(i) / 48000));
  }
  ASSERT_TRUE(WriteWav(folder.File("m.wav"), mono.view(), 48000, WavFormat::kFloat32).ok());
  const auto clip = ReadClip(folder.File("m.wav"), {});
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_FALSE(clip->has_video);
  EXPECT_EQ(clip->source_channels, 1);
  ASSERT_EQ(clip->audio.shape(), (Shape{2, 32000}));
  double sine = 0;
  for (int64_t i = 0; i < 32000; ++i) {
    const float left = clip->audio.as<float>()[i];
    ASSERT_EQ(left, clip->audio.as<float>()[32000 + i]);
    sine += std::sin(2 * std::numbers::pi * 750 * static_cast<double>(i) / 32000) *
            static_cast<double>(left);
  }
  // The filter's edges at both ends reach some 32 samples of 32,000 and its passband is flat to 1
  // %.
  EXPECT_NEAR(2 * sine / 32000, 0.5, 0.01);
}

}  // namespace
}  // namespace h3rt
