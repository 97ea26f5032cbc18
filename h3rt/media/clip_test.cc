// What a written clip holds, read back by our reader and by ffprobe.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <thread>

#include "h3rt/base/file.h"
#include "h3rt/base/json.h"
#include "h3rt/media/clip_reader.h"
#include "h3rt/media/clip_writer.h"
#include "h3rt/media/media_test_util.h"

namespace h3rt {
namespace {

// The output of a command, empty when it fails.
std::string RunCommand(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return out;
  char buffer[4096];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0) out.append(buffer, n);
  return ::pclose(pipe) == 0 ? out : "";
}

void ExpectFfprobeAgrees(const std::string& path, int64_t frames) {
  // Where the FFmpeg part is built its tools have to be there too: a reader other than ours.
  ASSERT_NE(RunCommand("ffprobe -version"), "") << "ffprobe is not installed (package ffmpeg)";
  const std::string text =
      RunCommand("ffprobe -v error -count_frames -show_streams -of json '" + path + "'");
  const auto parsed = ParseJson(text, "ffprobe");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Json& streams = (*parsed)["streams"];
  ASSERT_EQ(streams.size(), 2u);
  const Json& video = streams[0];
  EXPECT_EQ(video["codec_name"], "h264");
  EXPECT_EQ(video["pix_fmt"], "yuv420p");
  EXPECT_EQ(video["r_frame_rate"], "24/1");
  EXPECT_EQ(video["avg_frame_rate"], "24/1");
  EXPECT_EQ(video["nb_read_frames"], std::to_string(frames));
  EXPECT_EQ(video["nb_frames"], std::to_string(frames));
  for (const char* key : {"color_space", "color_transfer", "color_primaries"}) {
    EXPECT_EQ(video[key], "bt709") << key;
  }
  EXPECT_EQ(video["color_range"], "tv");
  const Json& audio = streams[1];
  EXPECT_EQ(audio["codec_name"], "aac");
  EXPECT_EQ(audio["profile"], "LC");
  EXPECT_EQ(audio["sample_rate"], "32000");
  EXPECT_EQ(audio["channels"], 2);
  const double video_s = std::stod(video["duration"].get<std::string>());
  const double audio_s = std::stod(audio["duration"].get<std::string>());
  EXPECT_TRUE(std::fabs(video_s - static_cast<double>(frames) / 24) <= 1e-5) << video_s;
  EXPECT_TRUE(std::fabs(video_s - audio_s) < 1.0 / 24) << video_s << " and " << audio_s;
}

// The quantiser step of H.264 is 2^((QP - 4) / 6). Quality 18 means QP near 18; B pictures and
// adaptive quantisation add at most 6, so the step is at most 10.1. An encoder that minimises rate
// may zero a coefficient up to 5/6 of a step, so no sample is off by more than 8.4 in mean square:
// 10 log10(255^2 / 8.4^2) = 29.6 dB in each plane. The conversions add under half a level.
constexpr double kPlaneFloorDb = 29.6;

// Luma of RGB bytes, so that the bound of the luma plane applies (219/255 of its error).
double LumaPsnrDb(const RgbImage& a, const RgbImage& b) {
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); i += 3) {
    const auto luma = [&](const RgbImage& m) {
      return (0.2126 * m.pixels[i] + 0.7152 * m.pixels[i + 1] + 0.0722 * m.pixels[i + 2]) * 219 /
             255;
    };
    const double d = luma(a) - luma(b);
    sum += d * d;
  }
  const double mse = sum / (static_cast<double>(a.pixels.size()) / 3);
  return 10 * std::log10(255.0 * 255.0 / std::max(mse, 1e-9));
}

// Amplitudes of sin and cos at `hz` in n samples.
std::pair<double, double> ToneOf(const float* x, int64_t n, double hz) {
  double s = 0;
  double c = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double phase = 2 * std::numbers::pi * hz * static_cast<double>(i) / 32000;
    s += std::sin(phase) * static_cast<double>(x[i]);
    c += std::cos(phase) * static_cast<double>(x[i]);
  }
  return {2 * s / static_cast<double>(n), 2 * c / static_cast<double>(n)};
}

class ClipOfLength : public testing::TestWithParam<int64_t> {};

TEST_P(ClipOfLength, HoldsWhatWasPromised) {
  H3RT_NEEDS_FFMPEG();
  const int64_t frames = GetParam();
  const TempFolder folder;
  const std::string path = folder.File("clip.mp4");
  const Tensor video = SmoothVideo(frames, 64, 96);
  // As the audio VAE makes it: whole latents of 800 samples.
  const int64_t latents = std::llround(5.0 * static_cast<double>(frames) / 3.0);
  const Tensor sound = Tones(latents * 800, 440, 1000);
  const auto written = WriteClip(path, video.view(), sound.view(), {});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->files, std::vector<std::string>{path});
  EXPECT_FALSE(written->fallback);
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"clip.mp4"});

  const auto clip = ReadClip(path, {});
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->video_codec, "h264");
  EXPECT_EQ(clip->pixel_format, "yuv420p");
  EXPECT_EQ(clip->color_space, "bt709");
  EXPECT_EQ(clip->color_range, "tv");
  EXPECT_EQ(clip->audio_codec, "aac");
  EXPECT_EQ(clip->audio_profile, "LC");
  EXPECT_EQ(clip->fps_num, 24);
  EXPECT_EQ(clip->fps_den, 1);
  EXPECT_EQ(clip->source_sample_rate, 32000);
  EXPECT_EQ(clip->source_channels, 2);
  EXPECT_EQ(clip->declared_frames, frames);
  ASSERT_EQ(static_cast<int64_t>(clip->frames.size()), frames);
  EXPECT_EQ(clip->audio.shape(), (Shape{2, ClipSamples(frames)}));
  EXPECT_TRUE(std::fabs(clip->video_duration_s - clip->audio_duration_s) < 1.0 / 24);
  for (int64_t f = 0; f < frames; ++f) {
    const auto i = static_cast<size_t>(f);
    ASSERT_TRUE(std::fabs(clip->frame_times_s[i] - static_cast<double>(f) / 24) <= 1e-6) << f;
    const double psnr = LumaPsnrDb(clip->frames[i], *FrameToImage(video.view().Select(1, f), f));
    ASSERT_TRUE(psnr >= kPlaneFloorDb) << "frame " << f << ": " << psnr << " dB";
  }
  ExpectFfprobeAgrees(path, frames);
}

INSTANTIATE_TEST_SUITE_P(Frames, ClipOfLength, testing::Values(5, 22, 56, 124));

TEST(Clip, FramesAreInOrder) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  // Frame f is grey of level 10 f: a swap or a repeat is off by 10, the floor above allows 8.4.
  Tensor video = Tensor::Create(DType::kF32, Shape{3, 22, 32, 32}).value();
  for (int64_t i = 0; i < video.elements(); ++i) {
    video.as<float>()[i] = static_cast<float>(10 * (i / 1024 % 22) + 16) / 255.0f;
  }
  ASSERT_TRUE(WriteClip(folder.File("a.mp4"), video.view(), {}, {}).ok());
  const auto clip = ReadClip(folder.File("a.mp4"), {});
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_FALSE(clip->has_audio);
  ASSERT_EQ(clip->frames.size(), 22u);
  for (size_t f = 0; f < 22; ++f) {
    double mean = 0;
    for (const uint8_t p : clip->frames[f].pixels) mean += p;
    mean /= static_cast<double>(clip->frames[f].pixels.size());
    EXPECT_NEAR(mean, 10.0 * static_cast<double>(f) + 16, 5) << f;
  }
}

TEST(Clip, ColoursAreNotSwappedOrShifted) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  const uint8_t colours[6][3] = {{255, 0, 0}, {0, 255, 0},     {0, 0, 255},
                                 {0, 0, 0},   {255, 255, 255}, {128, 128, 128}};
  RgbImage image{192, 32, std::vector<uint8_t>(192 * 32 * 3)};
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = colours[i / 3 % 192 / 32][i % 3];
  }
  auto writer = ClipWriter::Create(folder.File("a.mp4"),
                                   {.width = 192, .height = 32, .frames = 5, .audio = false});
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int f = 0; f < 5; ++f) ASSERT_TRUE(writer->AddFrame(image.pixels).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto clip = ReadClip(folder.File("a.mp4"), {});
  ASSERT_TRUE(clip.ok()) << clip.status();
  // Half a quantiser step (5.05, see above) in luma and in one chroma plane, through the largest
  // factors of the matrix (1.164 and 2.112), and rounding: 16.6 + 1.7. A swap is off by 255.
  for (size_t patch = 0; patch < 6; ++patch) {
    for (size_t c = 0; c < 3; ++c) {
      const int got = clip->frames[2].pixels[(16 * 192 + patch * 32 + 16) * 3 + c];
      EXPECT_NEAR(got, colours[patch][c], 18.3) << "patch " << patch << ", channel " << c;
    }
  }
}

TEST(Clip, TonesKeepFrequencyAmplitudeChannelAndPlace) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  // T22: 328 frames, 547 latents of 800 = 437,600 samples; the clip keeps 437,333 of them.
  const int64_t frames = 328;
  ASSERT_EQ(ClipSamples(frames), 437333);
  const Tensor sound = Tones(547 * 800, 440, 1000);
  const Tensor video = Tensor::Zeros(DType::kF32, Shape{3, frames, 32, 32}).value();
  ASSERT_TRUE(WriteClip(folder.File("a.mp4"), video.view(), sound.view(), {}).ok());
  const auto clip = ReadClip(folder.File("a.mp4"), {});
  ASSERT_TRUE(clip.ok()) << clip.status();
  ASSERT_EQ(clip->audio.shape(), (Shape{2, 437333}));
  EXPECT_TRUE(std::fabs(clip->video_duration_s - clip->audio_duration_s) < 1.0 / 24);
  const int64_t n = 416000;  // whole periods of both tones
  const float* left = clip->audio.as<float>();
  const float* right = left + 437333;
  // 20 dB under the tone is 0.05. A shift by one sample moves 0.1 into the cosine at 1 kHz, the
  // encoder's own delay of 1024 samples much more.
  for (const auto& [x, hz, other] :
       {std::tuple<const float*, double, double>{left, 440, 1000}, {right, 1000, 440}}) {
    const auto [sine, cosine] = ToneOf(x, n, hz);
    EXPECT_NEAR(sine, 0.5, 0.05) << hz;
    EXPECT_NEAR(cosine, 0.0, 0.05) << hz;
    const auto [leak_sine, leak_cosine] = ToneOf(x, n, other);
    EXPECT_NEAR(std::hypot(leak_sine, leak_cosine), 0.0, 0.05) << other;
    double dc = 0;
    for (int64_t i = 0; i < n; ++i) dc += static_cast<double>(x[i]);
    EXPECT_TRUE(std::fabs(dc / static_cast<double>(n)) < 0.01);
  }
}

TEST(Clip, ShortSoundIsFilledWithSilence) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  const Tensor video = Tensor::Zeros(DType::kF32, Shape{3, 22, 32, 32}).value();
  const Tensor sound = Tones(8000, 440, 1000);
  ASSERT_TRUE(WriteClip(folder.File("a.mp4"), video.view(), sound.view(), {}).ok());
  const auto clip = ReadClip(folder.File("a.mp4"), {});
  ASSERT_TRUE(clip.ok()) << clip.status();
  ASSERT_EQ(clip->audio.shape(), (Shape{2, 29333}));
  double power = 0;
  for (int64_t i = 12000; i < 29333; ++i) power += std::fabs(clip->audio.as<float>()[i]);
  EXPECT_TRUE(power / 17333 < 1e-3) << "beyond the block in which the sound ends";
}

TEST(Clip, TheSameInputGivesTheSameBytes) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  const Tensor video = SmoothVideo(39, 64, 64);
  const Tensor sound = Tones(65 * 800, 440, 1000);
  ClipOptions options;
  options.metadata.prompt = "a cat";
  // Several at once, as in a service.
  std::vector<std::thread> threads;
  for (const char* name : {"a.mp4", "b.mp4", "c.mp4"}) {
    threads.emplace_back([&, name] {
      EXPECT_TRUE(WriteClip(folder.File(name), video.view(), sound.view(), options).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  // In portions, sound last.
  options.width = options.height = 64;
  options.frames = 39;
  auto writer = ClipWriter::Create(folder.File("d.mp4"), options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int64_t f = 0; f < 39; f += 3) {
    ASSERT_TRUE(writer->AddFrames(video.view().Slice(1, f, f + 3)).ok());
  }
  for (int64_t i = 0; i < 52000; i += 650) {
    ASSERT_TRUE(writer->AddAudio(sound.view().Slice(1, i, i + 650)).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  const std::string first = ReadFile(folder.File("a.mp4")).value();
  EXPECT_GT(first.size(), 1000u);
  for (const char* name : {"b.mp4", "c.mp4", "d.mp4"}) {
    EXPECT_TRUE(ReadFile(folder.File(name)).value() == first) << name;
  }
  const size_t index = first.find("moov");
  const size_t data = first.find("mdat");
  EXPECT_LT(index, data) << "the index stands in front";
}

ClipMetadata FullMetadata(const std::string& prompt) {
  ClipMetadata m;
  m.prompt = prompt;
  m.seed = 0xFFFFFFFFFFFFFFFFu;
  m.width = 32;
  m.height = 32;
  m.frames = 5;
  m.forwards = 4;
  m.model_hash = std::string(64, 'a');
  m.h3rt_version = "0.1.0";
  m.extra = {{"device", "cpu"}, {"note", "zwei \"Worte\"\n= ; #\\"}};
  return m;
}

TEST(Clip, MetadataComesBackWhateverThePrompt) {
  H3RT_NEEDS_FFMPEG();
  std::string words;
  for (int i = 0; i < 10000; ++i) words += "word" + std::to_string(i) + " ";
  const Tensor video = SmoothVideo(5, 32, 32);
  for (const std::string& prompt :
       {std::string(), std::string("a cat"), std::string("\"quoted\" 'single' \\ back=slash; #"),
        std::string("line one\nline two\r\n\ttab "), std::string("猫が走る 🐈 Größe – naïve"),
        words}) {
    const TempFolder folder;
    ClipOptions options;
    options.metadata = FullMetadata(prompt);
    ASSERT_TRUE(WriteClip(folder.File("a.mp4"), video.view(), {}, options).ok());
    const auto read = ReadClipMetadata(folder.File("a.mp4"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == options.metadata) << prompt.substr(0, 40) << " / " << read->prompt.size();
  }
}

TEST(Clip, PlayersSeeTitleAndComment) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  ClipOptions options;
  options.metadata = FullMetadata("a cat\nsecond line");
  ASSERT_TRUE(WriteClip(folder.File("a.mp4"), SmoothVideo(5, 32, 32).view(), {}, options).ok());
  const auto clip = ReadClip(folder.File("a.mp4"), {.video = false, .audio = false});
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_TRUE(clip->frames.empty());
  std::string title;
  std::string comment;
  for (const auto& [key, value] : clip->tags) {
    if (key == "title") title = value;
    if (key == "comment") comment = value;
  }
  EXPECT_EQ(title, "a cat");
  EXPECT_EQ(comment, "h3rt 0.1.0, 32x32, 5 frames, seed 18446744073709551615, 4 forwards");
}

TEST(Clip, ExtremeSizesAreWritten) {
  H3RT_NEEDS_FFMPEG();
  for (const auto& [w, h] :
       {std::pair<int64_t, int64_t>{32, 32}, {16, 16}, {4096, 32}, {32, 4096}, {34, 18}}) {
    const TempFolder folder;
    const Tensor video = SmoothVideo(5, h, w);
    const auto written =
        WriteClip(folder.File("a.mp4"), video.view(), Tones(6400, 440, 1000).view(), {});
    ASSERT_TRUE(written.ok()) << written.status();
    const auto clip = ReadClip(folder.File("a.mp4"), {});
    ASSERT_TRUE(clip.ok()) << clip.status();
    EXPECT_EQ(clip->width, w);
    EXPECT_EQ(clip->height, h);
    ASSERT_EQ(clip->frames.size(), 5u);
    const double psnr = LumaPsnrDb(clip->frames[4], *FrameToImage(video.view().Select(1, 4), 4));
    EXPECT_TRUE(psnr >= kPlaneFloorDb) << psnr;
  }
}

TEST(Clip, NameInCapitalsIsAnMp4) {
  H3RT_NEEDS_FFMPEG();
  for (const char* name : {"a.MP4", "a.Mov", "a.M4V"}) {
    const TempFolder folder;
    const auto written = WriteClip(folder.File(name), SmoothVideo(5, 32, 32).view(), {}, {});
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(written->files, std::vector<std::string>{folder.File(name)});
    EXPECT_EQ(ClipFiles(folder.File(name)), written->files);
    EXPECT_EQ(folder.Names(), std::vector<std::string>{name});
    EXPECT_EQ(ReadFile(folder.File(name)).value().substr(4, 4), "ftyp");
  }
}

TEST(Clip, NothingIsPrinted) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const auto written = WriteClip(folder.File("a.mp4"), SmoothVideo(5, 32, 32).view(), {}, {});
  const auto read = ReadClip(folder.File("a.mp4"), {});
  const std::string err = testing::internal::GetCapturedStderr();
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(written.ok() && read.ok());
  EXPECT_EQ(err, "");
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace h3rt
