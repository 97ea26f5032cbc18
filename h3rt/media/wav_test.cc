#include "h3rt/media/wav.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "h3rt/media/media_test_util.h"

namespace h3rt {
namespace {

TEST(Wav, Pcm16HoldsEveryValueAndClamps) {
  const TempFolder folder;
  std::vector<float> in;
  for (int i = -32768; i < 32768; i += 7) in.push_back(static_cast<float>(i) / 32768.0f);
  in.push_back(1.0f);
  in.push_back(1.5f);
  in.push_back(-1.5f);
  const auto n = static_cast<int64_t>(in.size());
  std::vector<float> both = in;
  for (const float x : in) both.push_back(-x);
  const auto view = ConstTensorView::Of(both.data(), Shape{2, n});
  ASSERT_TRUE(WriteWav(folder.File("a.wav"), view, 32000, WavFormat::kPcm16).ok());
  const auto wav = ReadWav(folder.File("a.wav"));
  ASSERT_TRUE(wav.ok()) << wav.status();
  EXPECT_EQ(wav->sample_rate, 32000);
  ASSERT_EQ(wav->samples.shape(), (Shape{2, n}));
  for (size_t i = 0; i < both.size(); ++i) {
    const float expected = std::clamp(both[i], -1.0f, 32767.0f / 32768.0f);
    ASSERT_EQ(wav->samples.as<float>()[i], expected) << i;
  }
}

TEST(Wav, TheHeaderIsTheDocumentedOne) {
  const TempFolder folder;
  const float samples[4] = {0.0f, 0.5f, -0.5f, 0.25f};
  ASSERT_TRUE(WriteWav(folder.File("a.wav"), ConstTensorView::Of(samples, Shape{2, 2}), 32000,
                       WavFormat::kPcm16)
                  .ok());
  const std::string expected(
      "RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x00\x7d\0\0\x00\xf4\x01\0\x04\0\x10\0"
      "data\x08\0\0\0\0\0\x00\xc0\x00\x40\x00\x20",
      52);
  EXPECT_EQ(ReadFile(folder.File("a.wav")).value(), expected);
}

TEST(Wav, Float32KeepsTheBitsAndTheNote) {
  const TempFolder folder;
  const Tensor tones = Tones(999, 440, 660);
  WavSpec spec{WavFormat::kFloat32, 2, 44100, 999, "{\"a\":\"odd\"}"};
  auto writer = WavWriter::Create(folder.File("f.wav"), spec);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Append(tones.view().Slice(1, 0, 500)).ok());
  ASSERT_TRUE(writer->Append(tones.view().Slice(1, 500, 999)).ok());
  ASSERT_TRUE(writer->Commit().ok());
  const auto wav = ReadWav(folder.File("f.wav"));
  ASSERT_TRUE(wav.ok()) << wav.status();
  EXPECT_EQ(wav->format, WavFormat::kFloat32);
  EXPECT_EQ(wav->note, spec.note);
  EXPECT_EQ(std::memcmp(wav->samples.as<float>(), tones.as<float>(), 999 * 2 * 4), 0);
}

TEST(Wav, NanIsRefusedWithItsPlaceAndLeavesNothing) {
  const TempFolder folder;
  Tensor tones = Tones(100, 440, 660);
  tones.as<float>()[100 + 37] = std::nanf("");
  const auto status = WriteWav(folder.File("n.wav"), tones.view(), 32000, WavFormat::kPcm16);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(status).find("channel 1, sample 37"), std::string::npos) << status;
  EXPECT_TRUE(folder.Names().empty());
}

TEST(Wav, MoreThan4GiBIsATypedErrorBeforeAnythingIsWritten) {
  const TempFolder folder;
  WavSpec spec;
  spec.samples = int64_t{1} << 30;  // 4 bytes each: exactly 4 GiB
  EXPECT_EQ(WavWriter::Create(folder.File("big.wav"), spec).status().code(),
            absl::StatusCode::kUnimplemented);
  spec.samples = INT64_MAX;
  EXPECT_EQ(WavWriter::Create(folder.File("big.wav"), spec).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(folder.Names().empty());
}

TEST(Wav, TooFewOrTooManySamplesAreRefused) {
  const TempFolder folder;
  const Tensor tones = Tones(10, 440, 660);
  WavSpec spec;
  spec.samples = 9;
  auto writer = WavWriter::Create(folder.File("a.wav"), spec);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->Append(tones.view()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->Commit().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Wav, DamagedFilesAreTypedErrorsAtEveryLength) {
  const TempFolder folder;
  const Tensor tones = Tones(8, 440, 660);
  ASSERT_TRUE(WriteWav(folder.File("a.wav"), tones.view(), 32000, WavFormat::kFloat32).ok());
  const std::string whole = ReadFile(folder.File("a.wav")).value();
  ASSERT_TRUE(ParseWav(whole, "whole").ok());
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(ParseWav(whole.substr(0, n), "cut").status().code(), absl::StatusCode::kDataLoss)
        << n;
  }
  std::string eight_bits = whole;
  eight_bits[34] = 8;
  EXPECT_EQ(ParseWav(eight_bits, "8").status().code(), absl::StatusCode::kUnimplemented);
  std::string no_channels = whole;
  no_channels[22] = 0;
  EXPECT_EQ(ParseWav(no_channels, "0").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace h3rt
