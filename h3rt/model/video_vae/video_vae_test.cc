#include "h3rt/model/video_vae/video_vae.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <thread>

#include "h3rt/cpu/chunks.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/model/video_vae/encoder.h"
#include "h3rt/num/compare.h"

namespace h3rt {
namespace {

// Issue: relative L2 of the video VAE.
constexpr double kBound = 3e-6;

struct Model {
  VideoVaeCheckpoint checkpoint;
  SafetensorsFile fixture;
  VideoVae vae;
  VaeTiling small;  // of the fixtures tiled_* and long_*: two latents, overlap of one

  static std::unique_ptr<Model> Open(const std::string& name) {
    const std::string folder = std::string(H3RT_TEST_DATA) + "/h3/" + name + "/";
    auto checkpoint = OpenVideoVae(folder + "vae");
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto fixture = SafetensorsFile::Open(folder + "vae.safetensors");
    EXPECT_TRUE(fixture.ok()) << fixture.status();
    auto vae = VideoVae::Create(checkpoint->config, checkpoint->weights);
    EXPECT_TRUE(vae.ok()) << vae.status();
    const int64_t factor = checkpoint->config.spatial_factor();
    return std::unique_ptr<Model>(new Model{*std::move(checkpoint),
                                            *std::move(fixture),
                                            *std::move(vae),
                                            {.tile = 2 * factor, .overlap = factor}});
  }
  // A tensor of the fixture without its batch dimension of 1.
  ConstTensorView Get(const std::string& name) const {
    return fixture.Get(name).value().Select(0, 0);
  }
};

std::span<const float> Values(const ConstTensorView& view) {
  return {view.as<float>(), static_cast<size_t>(view.elements())};
}

std::string BytesOf(const ConstTensorView& view) {
  return {reinterpret_cast<const char*>(view.data()), static_cast<size_t>(view.bytes())};
}

CompareResult Compare(const ConstTensorView& got, const ConstTensorView& want) {
  return CompareFloats(Values(got), got.shape().dims(), Values(want), want.shape().dims());
}

class VideoVaeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { nano_ = Model::Open("nano").release(); }
  static void TearDownTestSuite() {
    delete nano_;
    nano_ = nullptr;
  }
  // Repeats the fixture's latents to `t` frames, each frame changed a little.
  static Tensor Latents(int64_t t, int64_t h = 2, int64_t w = 3) {
    const ConstTensorView z = nano_->Get("z");
    Tensor out = Tensor::Create(DType::kF32, {z.dim(0), t, h, w}).value();
    for (int64_t c = 0; c < z.dim(0); ++c) {
      for (int64_t i = 0; i < t * h * w; ++i) {
        const int64_t frame = i / (h * w);
        out.as<float>()[c * t * h * w + i] =
            z.as<float>()[c * z.stride(0) + i % z.stride(0)] + 0.01f * static_cast<float>(frame);
      }
    }
    return out;
  }
  static Tensor Pixels(int64_t f, int64_t h = 8, int64_t w = 8) {
    const ConstTensorView p = nano_->Get("pixels");
    Tensor out = Tensor::Create(DType::kF32, {3, f, h, w}).value();
    for (int64_t i = 0; i < out.elements(); ++i) {
      out.as<float>()[i] = p.as<float>()[i % p.elements()];
    }
    return out;
  }

  static Model* nano_;
  ThreadPool pool_{2};
  ExecContext context_{.pool = &pool_};
};
Model* VideoVaeTest::nano_ = nullptr;

class VideoVaeParity : public ::testing::TestWithParam<const char*> {
 protected:
  ThreadPool pool_{2};
  ExecContext context_{.pool = &pool_};
};

void ExpectWithin(const absl::StatusOr<Tensor>& got, const ConstTensorView& want,
                  const std::string& name) {
  ASSERT_TRUE(got.ok()) << got.status();
  const CompareResult result = Compare(got->view(), want);
  EXPECT_TRUE(Within(result, kBound)) << name << ": " << Describe(result);
  ::testing::Test::RecordProperty(name, Describe(result));
}

TEST_P(VideoVaeParity, DecodeEqualsThePublicImplementation) {
  const auto model = Model::Open(GetParam());
  ExpectWithin(model->vae.Decode(model->Get("z"), {}, context_), model->Get("decode"), "decode");
}

TEST_P(VideoVaeParity, TiledDecodeEqualsThePublicImplementation) {
  const auto model = Model::Open(GetParam());
  ExpectWithin(model->vae.Decode(model->Get("tiled_z"), model->small, context_),
               model->Get("tiled_decode"), "tiled_decode");
}

TEST_P(VideoVaeParity, LongDecodeEqualsThePublicImplementation) {
  const auto model = Model::Open(GetParam());
  ExpectWithin(model->vae.Decode(model->Get("long_z"), model->small, context_),
               model->Get("long_decode"), "long_decode");
}

TEST_P(VideoVaeParity, EncodedMeansEqualThePublicImplementation) {
  const auto model = Model::Open(GetParam());
  for (const char* input : {"pixels", "image"}) {
    auto moments = model->vae.Encode(model->Get(input), {}, context_);
    ASSERT_TRUE(moments.ok()) << moments.status();
    const std::string name = input == std::string("image") ? "encode_image_mode" : "encode_mode";
    const ConstTensorView want = model->Get(name);
    ASSERT_EQ(moments->shape()[0], 2 * want.dim(0));
    ExpectWithin(Tensor::Copy(moments->view().Slice(0, 0, want.dim(0))), want, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, VideoVaeParity, ::testing::Values("nano", "mini"));

// T18: every length decodes to the promised frames, and the frames that two lengths share are the
// same bytes as long as neither saw repeated latents.
TEST_F(VideoVaeTest, LengthsShareTheBodyOfTheirFirstClips) {
  const Tensor longest = Latents(37);
  const auto want = nano_->vae.Decode(longest.view(), {}, context_);
  ASSERT_TRUE(want.ok()) << want.status();
  for (int64_t t = 2; t <= 37; ++t) {
    const ConstTensorView z = longest.view().Slice(1, 0, t);
    const auto got = nano_->vae.Decode(z, {}, context_);
    ASSERT_TRUE(got.ok()) << got.status();
    const int64_t frames = VideoVae::DecodedFrames(nano_->vae.config(), t);
    ASSERT_EQ(got->shape(), Shape({3, frames, 8, 12}));
    // Clips that lie wholly inside t latents, up to where the next one fades in.
    const int64_t whole = t < 7 ? 0 : (t - 2) / 5 * 17;
    if (whole == 0) continue;
    const Tensor a = Tensor::Copy(got->view().Slice(1, 0, whole)).value();
    const Tensor b = Tensor::Copy(want->view().Slice(1, 0, whole)).value();
    ASSERT_EQ(BytesOf(a.view()), BytesOf(b.view())) << t;
  }
}

TEST_F(VideoVaeTest, ShortClipIsOnePaddedChunkCutOff) {
  // Repeating the last latent by hand to a whole chunk gives the same first frames.
  const Tensor z = Latents(7);
  for (int64_t t = 2; t < 7; ++t) {
    Tensor padded = Tensor::Copy(z.view()).value();
    for (int64_t k = t; k < 7; ++k) {
      ASSERT_TRUE(CopyElements(z.view().Slice(1, t - 1, t), padded.view().Slice(1, k, k + 1)).ok());
    }
    const auto whole = nano_->vae.Decode(padded.view(), {}, context_);
    const auto part = nano_->vae.Decode(z.view().Slice(1, 0, t), {}, context_);
    ASSERT_TRUE(whole.ok() && part.ok()) << whole.status() << part.status();
    const Tensor first = Tensor::Copy(whole->view().Slice(1, 0, part->shape()[1])).value();
    EXPECT_EQ(BytesOf(first.view()), BytesOf(part->view())) << t;
  }
}

TEST_F(VideoVaeTest, EncodeRepeatsTheLastFrame) {
  for (const int64_t f : {2, 5, 17, 18, 22}) {
    const int64_t whole = (f + 16) / 17 * 17;
    const Tensor pixels = Pixels(whole);
    Tensor repeated = Tensor::Copy(pixels.view()).value();
    for (int64_t k = f; k < whole; ++k) {
      ASSERT_TRUE(
          CopyElements(pixels.view().Slice(1, f - 1, f), repeated.view().Slice(1, k, k + 1)).ok());
    }
    const auto part = nano_->vae.Encode(pixels.view().Slice(1, 0, f), {}, context_);
    const auto full = nano_->vae.Encode(repeated.view(), {}, context_);
    ASSERT_TRUE(part.ok() && full.ok()) << part.status() << full.status();
    EXPECT_EQ(part->shape(), Shape({8, (f + 16) / 17 * 5 - 3, 2, 2}));
    EXPECT_EQ(BytesOf(part->view()), BytesOf(full->view())) << f;
  }
}

// Tiles of four latents with an overlap of two, so that the weights of a ramp are 0 and 1/2:
// vertical first, then horizontal with the raw tile to the left, for an image, one clip and two
// clips.
TEST_F(VideoVaeTest, TiledEncodeBlendsTheMomentsOfTiles) {
  constexpr int64_t kTile = 4;  // latents
  constexpr int64_t kStep = 2;
  const int64_t s = nano_->vae.config().spatial_factor();
  const VaeTiling tiling = {.tile = kTile * s, .overlap = (kTile - kStep) * s};
  for (const auto& [f, h, w] :
       {std::array<int64_t, 3>{1, 4, 6}, {1, 6, 4}, {1, 6, 6}, {17, 6, 6}, {22, 4, 6}}) {
    const Tensor pixels = Pixels(f, h * s, w * s);
    const auto tiled = nano_->vae.Encode(pixels.view(), tiling, context_);
    ASSERT_TRUE(tiled.ok()) << tiled.status();
    std::array<std::array<Tensor, 2>, 2> raw;
    for (size_t i = 0; i < (h > kTile ? 2u : 1u); ++i) {
      for (size_t j = 0; j < (w > kTile ? 2u : 1u); ++j) {
        const int64_t y = static_cast<int64_t>(i) * kStep * s;
        const int64_t x = static_cast<int64_t>(j) * kStep * s;
        auto tile = nano_->vae.Encode(
            pixels.view().Slice(2, y, y + kTile * s).Slice(3, x, x + kTile * s), {}, context_);
        ASSERT_TRUE(tile.ok()) << tile.status();
        raw[i][j] = *std::move(tile);
      }
    }
    const int64_t planes = 4 * tiled->shape()[1];  // means only: variances are clamped afterwards
    const auto at = [&](size_t i, size_t j, int64_t plane, int64_t y, int64_t x) {
      return raw[i][j].as<float>()[(plane * kTile + y) * kTile + x];
    };
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) {
          const size_t i = h > kTile && y >= kStep ? 1 : 0;
          const size_t j = w > kTile && x >= kStep ? 1 : 0;
          const int64_t ty = y - static_cast<int64_t>(i) * kStep;
          const int64_t tx = x - static_cast<int64_t>(j) * kStep;
          float want = at(i, j, plane, ty, tx);
          if (i == 1 && ty < kStep) {
            const float b = 0.5f * static_cast<float>(ty);
            want = at(0, j, plane, y, tx) * (1.0f - b) + want * b;
          }
          if (j == 1 && tx < kStep) {
            const float b = 0.5f * static_cast<float>(tx);
            want = at(i, 0, plane, ty, x) * (1.0f - b) + want * b;
          }
          ASSERT_EQ(tiled->as<float>()[(plane * h + y) * w + x], want)
              << f << ": " << plane << ", " << y << ", " << x;
        }
      }
    }
  }
}

TEST_F(VideoVaeTest, LogVarianceIsClamped) {
  // The same weights with the log variance's bias moved far out.
  for (const float bias : {1000.0f, -1000.0f}) {
    WeightStore weights;
    Tensor moved = Tensor::Copy(nano_->checkpoint.weights.entries().at("quant_conv.bias")).value();
    for (int64_t i = 4; i < 8; ++i) moved.as<float>()[i] = bias;
    for (const auto& [name, view] : nano_->checkpoint.weights.entries()) {
      if (name != "quant_conv.bias") weights.AddView(name, view);
    }
    weights.AddView("quant_conv.bias", moved.view());
    const auto vae = VideoVae::Create(nano_->checkpoint.config, weights);
    ASSERT_TRUE(vae.ok()) << vae.status();
    const auto moments = vae->Encode(Pixels(1).view(), {}, context_);
    ASSERT_TRUE(moments.ok()) << moments.status();
    for (int64_t i = moments->elements() / 2; i < moments->elements(); ++i) {
      EXPECT_EQ(moments->as<float>()[i], bias > 0 ? 20.0f : -30.0f);
    }
  }
}

TEST_F(VideoVaeTest, NormalisationIsPerChannelAndGoesBack) {
  const Tensor z = Latents(3);
  Tensor changed = Tensor::Copy(z.view()).value();
  nano_->vae.Normalize(changed.view());
  const int64_t n = z.elements() / 4;
  for (int64_t i = 0; i < z.elements(); ++i) {
    const auto c = static_cast<size_t>(i / n);
    const VideoVaeConfig& config = nano_->vae.config();
    const double want =
        (static_cast<double>(z.as<float>()[i]) - config.latents_mean[c]) / config.latents_std[c];
    ASSERT_NEAR(static_cast<double>(changed.as<float>()[i]), want, 1e-6 * (1 + std::abs(want)));
  }
  const Tensor normalized = Tensor::Copy(changed.view()).value();
  nano_->vae.Denormalize(changed.view());
  EXPECT_TRUE(Within(Compare(changed.view(), z.view()), 1e-6));
  // On threads the bytes are the same.
  Tensor other = Tensor::Copy(z.view()).value();
  ASSERT_TRUE(nano_->vae.Normalize(other.view(), context_).ok());
  EXPECT_EQ(BytesOf(other.view()), BytesOf(normalized.view()));
  ASSERT_TRUE(nano_->vae.Denormalize(other.view(), context_).ok());
  EXPECT_EQ(BytesOf(other.view()), BytesOf(changed.view()));
}

// Several chunks, of which some hold the end of a channel and the begin of the next.
TEST_F(VideoVaeTest, PixelNormalisationOnThreadsGivesTheSameBytesAndCanBeCancelled) {
  Tensor one = Pixels(7, 100, 100);
  Tensor many = Tensor::Copy(one.view()).value();
  const std::string before = BytesOf(one.view());
  NormalizePixels(one.view());
  ASSERT_NE(BytesOf(one.view()), before);
  ASSERT_TRUE(NormalizePixels(many.view(), context_).ok());
  EXPECT_EQ(BytesOf(many.view()), BytesOf(one.view()));
  DenormalizePixels(one.view());
  ASSERT_TRUE(DenormalizePixels(many.view(), context_).ok());
  EXPECT_EQ(BytesOf(many.view()), BytesOf(one.view()));
  CancelToken cancel;
  cancel.Cancel();
  ExecContext context = context_;
  context.cancel = &cancel;
  EXPECT_EQ(NormalizePixels(many.view(), context).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(nano_->vae.Normalize(Latents(3).view(), context).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(BytesOf(many.view()), BytesOf(one.view()));
}

TEST_F(VideoVaeTest, PixelNormalisationGoesBackAndClamps) {
  Tensor p = Tensor::Create(DType::kF32, {3, 1, 1, 4}).value();
  for (int64_t i = 0; i < 12; ++i) p.as<float>()[i] = static_cast<float>(i % 4) / 3.0f;
  NormalizePixels(p.view());
  EXPECT_FLOAT_EQ(p.as<float>()[0], (0.0f - 0.485f) / 0.229f);
  EXPECT_FLOAT_EQ(p.as<float>()[11], (1.0f - 0.406f) / 0.225f);
  DenormalizePixels(p.view());
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(p.as<float>()[i], static_cast<float>(i % 4) / 3.0f, 1e-6f);
  }
  for (int64_t i = 0; i < 12; ++i) p.as<float>()[i] = i % 2 == 0 ? 9.0f : -9.0f;
  DenormalizePixels(p.view());
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(p.as<float>()[i], i % 2 == 0 ? 1.0f : 0.0f);
}

void ExpectRefused(const absl::StatusOr<Tensor>& got, absl::StatusCode code,
                   const std::string& part) {
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), code) << got.status();
  EXPECT_NE(got.status().message().find(part), std::string::npos) << got.status();
}

TEST_F(VideoVaeTest, WrongLatentsAreRefused) {
  const Tensor z = Latents(7);
  const auto decode = [&](const ConstTensorView& view) {
    return nano_->vae.Decode(view, {}, context_);
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  ExpectRefused(decode(z.view().Slice(1, 0, 1)), bad, "at least 2");
  ExpectRefused(decode(z.view().Slice(0, 0, 3)), bad, "[4, t, h, w]");
  ExpectRefused(decode(z.view().Slice(2, 0, 0)), bad, "video VAE decode");
  ExpectRefused(decode(z.view().Select(1, 0)), bad, "video VAE decode");
  ExpectRefused(decode(ConstTensorView()), bad, "video VAE decode");
  ExpectRefused(decode(Tensor::Zeros(DType::kF64, z.shape()).value().view()), bad, "F64");
  ExpectRefused(nano_->vae.Decode(z.view(), {.tile = 10, .overlap = 4}, context_), bad, "tile 10");
}

TEST_F(VideoVaeTest, TilingIsCheckedWithoutAModel) {
  const VideoVaeConfig& config = nano_->vae.config();
  EXPECT_TRUE(ValidateTiling(config, {}).ok());
  EXPECT_TRUE(ValidateTiling(config, {.tile = 4, .overlap = 0}).ok());
  for (const VaeTiling& bad : {VaeTiling{.tile = 10, .overlap = 4},
                               {.tile = 8, .overlap = 2},
                               {.tile = 8, .overlap = 8},
                               {.tile = 8, .overlap = -4},
                               {.tile = 0, .overlap = 0},
                               {.tile = -8, .overlap = -12}}) {
    EXPECT_EQ(ValidateTiling(config, bad).code(), absl::StatusCode::kInvalidArgument)
        << bad.tile << " " << bad.overlap;
  }
}

// VideoVae refuses such a configuration; the network itself must not hand out a tile of another
// extent than its factors promise.
TEST_F(VideoVaeTest, LevelThatShrinksInTimeAloneIsAnInternalError) {
  VideoVaeConfig config = nano_->checkpoint.config;
  config.spatial_factors = {1, 2};
  const auto encoder = video_vae::TileEncoder::Create(config, nano_->checkpoint.weights);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  auto scratch = video_vae::TileEncoder::MakeScratch(config, 5, 8, 8);
  ASSERT_TRUE(scratch.ok()) << scratch.status();
  const TensorView input = video_vae::TileEncoder::Input(config, *scratch, 5, 8, 8);
  std::fill_n(input.as<float>(), input.elements(), 0.5f);
  const auto moments = encoder->Run(*scratch, 5, 8, 8, context_);
  ASSERT_EQ(moments.status().code(), absl::StatusCode::kInternal) << moments.status();
  EXPECT_NE(moments.status().message().find("[8, 2, 4, 4]"), std::string::npos) << moments.status();
}

TEST_F(VideoVaeTest, WrongPixelsAreRefused) {
  const auto encode = [&](const Shape& shape) {
    return nano_->vae.Encode(Tensor::Zeros(DType::kF32, shape).value().view(), {}, context_);
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  ExpectRefused(encode({4, 1, 8, 8}), bad, "video VAE encode");
  ExpectRefused(encode({3, 0, 8, 8}), bad, "video VAE encode");
  ExpectRefused(encode({3, 1, 9, 8}), bad, "[3, 1, 9, 8]");
  ExpectRefused(encode({3, 1, 8, 6}), bad, "[3, 1, 8, 6]");
  // One row at the last level has nothing to be mirrored into it.
  ExpectRefused(encode({3, 1, 4, 8}), bad, "reflect");
  ExpectRefused(encode({3, 1, 8, 4}), bad, "reflect");
  EXPECT_TRUE(encode({3, 1, 8, 8}).ok());
  // The same for tiles of one latent.
  ExpectRefused(nano_->vae.Encode(Pixels(1).view(), {.tile = 4, .overlap = 0}, context_), bad,
                "reflect");
}

TEST_F(VideoVaeTest, ValuesThatAreNotFiniteAreReportedWithStageAndPlace) {
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Tensor z = Latents(7);
    z.as<float>()[z.elements() - 1] = value;
    ExpectRefused(nano_->vae.Decode(z.view(), {}, context_), absl::StatusCode::kInvalidArgument,
                  "[3, 6, 1, 2]");
    Tensor pixels = Pixels(2);
    pixels.as<float>()[0] = value;
    ExpectRefused(nano_->vae.Encode(pixels.view(), {}, context_),
                  absl::StatusCode::kInvalidArgument, "[0, 0, 0, 0]");
    // The last value of the first chunk, of a strided view, with another one far behind it.
    Tensor large = Pixels(8, 128, 128);
    const auto last = kElementChunk / (128 * 64) * 128 * 128 - 64 - 1;
    large.as<float>()[last] = value;
    large.as<float>()[large.elements() - 100] = value;
    ExpectRefused(nano_->vae.Encode(large.view().Slice(3, 0, 64), {}, context_),
                  absl::StatusCode::kInvalidArgument, "[0, 7, 127, 63]");
  }
}

TEST_F(VideoVaeTest, BrokenWeightsAreReportedNotDecoded) {
  for (const char* broken : {"decoder.proj_out.bias", "encoder.conv_out.bias"}) {
    WeightStore weights;
    Tensor bias = Tensor::Copy(nano_->checkpoint.weights.entries().at(broken)).value();
    bias.as<float>()[bias.elements() - 1] = std::nanf("");
    for (const auto& [name, view] : nano_->checkpoint.weights.entries()) {
      weights.AddView(name, name == broken ? bias.view() : view);
    }
    const auto vae = VideoVae::Create(nano_->checkpoint.config, weights);
    ASSERT_TRUE(vae.ok()) << vae.status();
    if (broken[0] == 'd') {
      ExpectRefused(vae->Decode(Latents(2).view(), {}, context_), absl::StatusCode::kDataLoss,
                    "video VAE decode");
    } else {
      ExpectRefused(vae->Encode(Pixels(1).view(), {}, context_), absl::StatusCode::kDataLoss,
                    "video VAE encode");
    }
  }
}

TEST_F(VideoVaeTest, MissingWeightIsNamed) {
  for (const char* missing : {"decoder.transformer_blocks.1.scale2", "encoder.conv_in.bias"}) {
    WeightStore weights;
    for (const auto& [name, view] : nano_->checkpoint.weights.entries()) {
      if (name != missing) weights.AddView(name, view);
    }
    const auto vae = VideoVae::Create(nano_->checkpoint.config, weights);
    ASSERT_FALSE(vae.ok());
    EXPECT_EQ(vae.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(vae.status().message().find(missing), std::string::npos) << vae.status();
  }
}

TEST_F(VideoVaeTest, BytesDoNotDependOnThreads) {
  const Tensor z = Latents(8, 3, 4);
  const Tensor pixels = Pixels(18, 12, 12);
  std::string decoded;
  std::string encoded;
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    const ExecContext context = {.pool = &pool};
    const auto out = nano_->vae.Decode(z.view(), nano_->small, context);
    const auto moments = nano_->vae.Encode(pixels.view(), nano_->small, context);
    ASSERT_TRUE(out.ok() && moments.ok()) << out.status() << moments.status();
    if (threads == 1) {
      decoded = BytesOf(out->view());
      encoded = BytesOf(moments->view());
    }
    EXPECT_EQ(BytesOf(out->view()), decoded) << threads;
    EXPECT_EQ(BytesOf(moments->view()), encoded) << threads;
  }
}

TEST_F(VideoVaeTest, ProgressCountsEveryTileAndAnErrorStops) {
  const Tensor z = Latents(8, 3, 4);  // two chunks of 2 x 3 tiles
  int64_t calls = 0;
  const auto count = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, 12);
    return absl::OkStatus();
  };
  EXPECT_TRUE(nano_->vae.Decode(z.view(), nano_->small, context_, count).ok());
  EXPECT_EQ(calls, 12);
  calls = 0;
  const auto encode = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, 8);  // two clips of 2 x 2 tiles
    return absl::OkStatus();
  };
  EXPECT_TRUE(nano_->vae.Encode(Pixels(18, 12, 12).view(), nano_->small, context_, encode).ok());
  EXPECT_EQ(calls, 8);
  const auto stop = [](int64_t done, int64_t) {
    return done < 3 ? absl::OkStatus() : absl::ResourceExhaustedError("enough");
  };
  ExpectRefused(nano_->vae.Decode(z.view(), nano_->small, context_, stop),
                absl::StatusCode::kResourceExhausted, "enough");
}

// T21: a cancel between tiles ends the work; the same object then gives the same bytes.
TEST_F(VideoVaeTest, CancelIsHonouredBetweenTilesAndLeavesNothingBehind) {
  const Tensor z = Latents(8, 3, 4);
  const auto want = nano_->vae.Decode(z.view(), nano_->small, context_);
  ASSERT_TRUE(want.ok());
  CancelToken cancel;
  ExecContext context = context_;
  context.cancel = &cancel;
  int64_t last = 0;
  const auto progress = [&](int64_t done, int64_t) {
    last = done;
    if (done == 5) cancel.Cancel();
    return absl::OkStatus();
  };
  ExpectRefused(nano_->vae.Decode(z.view(), nano_->small, context, progress),
                absl::StatusCode::kCancelled, "video VAE decode");
  EXPECT_EQ(last, 5);
  ExpectRefused(nano_->vae.Encode(Pixels(1).view(), {}, context), absl::StatusCode::kCancelled,
                "video VAE encode");
  cancel.Reset();
  const auto again = nano_->vae.Decode(z.view(), nano_->small, context);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(BytesOf(again->view()), BytesOf(want->view()));
}

// T21: one tile is all there is to decode, so that only a look at the token inside it can stop the
// work. When the second thread comes too late, or before the work began, another try is made.
TEST_F(VideoVaeTest, CancelFromAnotherThreadStopsInsideATile) {
  const Tensor z = Latents(7, 24, 24);
  const auto start = std::chrono::steady_clock::now();
  const auto want = nano_->vae.Decode(z.view(), {}, context_);
  const auto whole = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(want.ok()) << want.status();
  CancelToken cancel;
  ExecContext context = context_;
  context.cancel = &cancel;
  int64_t tiles = 0;
  const auto progress = [&](int64_t, int64_t) {
    ++tiles;
    return absl::OkStatus();
  };
  bool stopped = false;
  for (int attempt = 0; attempt < 20 && !stopped; ++attempt) {
    cancel.Reset();
    tiles = 0;
    std::thread other([&] {
      std::this_thread::sleep_for(whole / 3);
      cancel.Cancel();
    });
    const auto got = nano_->vae.Decode(z.view(), {}, context, progress);
    other.join();
    if (got.ok()) continue;
    ExpectRefused(got, absl::StatusCode::kCancelled, "video VAE decode");
    stopped = tiles == 0;
  }
  EXPECT_TRUE(stopped);
  cancel.Reset();
  const auto again = nano_->vae.Decode(z.view(), {}, context);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(BytesOf(again->view()), BytesOf(want->view()));
}

}  // namespace
}  // namespace h3rt
