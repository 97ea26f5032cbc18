// The float64 reference against the tensors that the public implementation recorded in float32.
//
// Bounds: a float32 tensor stores its values to 2^-24 = 6e-8, and the public run rounds after every
// operation of a network of some 20 to 60 dependent stages, whose errors add like a random walk:
// 6e-8 * sqrt(60) = 5e-7 for well-conditioned stages, so 1e-6 bounds the transformer and the video
// VAE. The audio VAE is some 130 convolutions and periodic activations deep, each of which
// amplifies what it is given: its bound is 1e-5, half of what the issue allows production. A wrong
// formula is far off these bounds (sensitivity_test.cc).
#include <gtest/gtest.h>

#include <string>

#include "h3rt/io/model_config.h"
#include "tests/golden/fixture.h"
#include "tests/golden/inputs.h"
#include "tests/golden/ref64/audio_vae.h"
#include "tests/golden/ref64/dit.h"
#include "tests/golden/ref64/video_vae.h"

namespace h3rt::golden {
namespace {

using ref64::Array;
using ref64::Weights;

constexpr double kTransformerBound = 1e-6;
constexpr double kVideoVaeBound = 1e-6;
constexpr double kAudioVaeBound = 1e-5;

// NaN fails, which EXPECT_LE(NaN, bound) also does, but this says what was compared.
#define EXPECT_CLOSE(name, got, want, bound)                    \
  do {                                                          \
    const double error_ = Report(name, got, want);              \
    EXPECT_TRUE(error_ <= (bound)) << (name) << ": " << error_; \
  } while (false)

class Ref64 : public testing::TestWithParam<std::string> {
 protected:
  const std::string model_ = GetParam();
};

TEST_P(Ref64, TransformerEqualsThePublicForward) {
  const Fixture fixture(model_, "transformer_forward_f32.safetensors");
  const auto config = LoadConfig<DitConfig>(model_, "transformer");
  const ref64::DitOutput out =
      ref64::DitForward(config, LoadDiffusers(model_, "transformer"), FixtureInput(fixture));
  const std::string at = model_ + "/";
  EXPECT_CLOSE(at + "token_refiner", out.token_refiner, fixture.Get("token_refiner"),
               kTransformerBound);
  EXPECT_CLOSE(at + "temb", out.temb, fixture.Get("temb"), kTransformerBound);
  EXPECT_CLOSE(at + "block_0.attn", out.block_attn[0], fixture.Get("block_0.attn"),
               kTransformerBound);
  EXPECT_CLOSE(at + "block_0.ff", out.block_ff[0], fixture.Get("block_0.ff"), kTransformerBound);
  for (size_t b = 0; b < out.block.size(); ++b) {
    const std::string name = "block_" + std::to_string(b);
    EXPECT_CLOSE(at + name, out.block[b], fixture.Get(name), kTransformerBound);
  }
  EXPECT_CLOSE(at + "norm_out", out.norm_out, fixture.Get("norm_out"), kTransformerBound);
  EXPECT_CLOSE(at + "video", out.video, fixture.Get("video"), kTransformerBound);
  EXPECT_CLOSE(at + "audio", out.audio, fixture.Get("audio"), kTransformerBound);
}

TEST_P(Ref64, PrunedTransformerEqualsThePublicForward) {
  const Fixture inputs(model_, "transformer_forward_f32.safetensors");
  const Fixture fixture(model_, "pruned_f32.safetensors");
  const auto config = LoadConfig<DitConfig>(model_, "transformer");
  const ref64::DitOutput out = ref64::DitForward(config, LoadPruned(model_), FixtureInput(inputs));
  EXPECT_CLOSE(model_ + "/pruned.video", out.video, fixture.Get("out.video"), kTransformerBound);
  EXPECT_CLOSE(model_ + "/pruned.audio", out.audio, fixture.Get("out.audio"), kTransformerBound);
}

TEST_P(Ref64, VideoDecodeEqualsThePublicOne) {
  const Fixture fixture(model_, "vae.safetensors");
  const auto config = LoadConfig<VideoVaeConfig>(model_, "vae");
  const Weights weights = LoadDiffusers(model_, "vae");
  const auto decode = [&](const std::string& z, const ref64::Tiling& tiling) {
    return ref64::VideoDecode(config, weights, WithoutBatch(fixture.Get(z)), tiling);
  };
  const ref64::Tiling small = FixtureTiling(config);
  EXPECT_CLOSE(model_ + "/decode", decode("z", {}), fixture.Get("decode"), kVideoVaeBound);
  EXPECT_CLOSE(model_ + "/tiled_decode", decode("tiled_z", small), fixture.Get("tiled_decode"),
               kVideoVaeBound);
  EXPECT_CLOSE(model_ + "/long_decode", decode("long_z", small), fixture.Get("long_decode"),
               kVideoVaeBound);
}

TEST_P(Ref64, VideoEncodeEqualsThePublicOne) {
  const Fixture fixture(model_, "vae.safetensors");
  const auto config = LoadConfig<VideoVaeConfig>(model_, "vae");
  const Weights weights = LoadDiffusers(model_, "vae");
  const auto encode = [&](const std::string& pixels) {
    const Array moments =
        ref64::VideoEncode(config, weights, WithoutBatch(fixture.Get(pixels)), {});
    return ref64::Slice(moments, 0, 0, config.latent_channels);
  };
  EXPECT_CLOSE(model_ + "/encode_mode", encode("pixels"), fixture.Get("encode_mode"),
               kVideoVaeBound);
  EXPECT_CLOSE(model_ + "/encode_image_mode", encode("image"), fixture.Get("encode_image_mode"),
               kVideoVaeBound);
}

TEST_P(Ref64, AudioVaeEqualsThePublicOne) {
  const Fixture fixture(model_, "audio_vae.safetensors");
  const auto config = LoadConfig<AudioVaeConfig>(model_, "audio_vae");
  const Weights weights = LoadDiffusers(model_, "audio_vae");
  const Array wave = fixture.Get("wave");
  EXPECT_CLOSE(model_ + "/audio decode", ref64::AudioDecode(config, weights, fixture.Get("z")),
               fixture.Get("decode"), kAudioVaeBound);
  EXPECT_CLOSE(
      model_ + "/audio encode_mode",
      ref64::AudioEncode(config, weights, ref64::Reshaped(wave, {wave.dim(0), wave.dim(2)})),
      fixture.Get("encode_mode"), kAudioVaeBound);
}

INSTANTIATE_TEST_SUITE_P(Models, Ref64, testing::Values("nano", "mini"),
                         [](const auto& model) { return model.param; });

// The filters of the checkpoint are float32 copies of the formula: half an ulp of the largest tap
// (0.443, ulp 3e-8) plus what the public float32 formula rounded on its way.
TEST(Ref64Filters, EqualTheKaiserSincFormula) {
  const Array want = ref64::KaiserSincFilter();
  for (const char* model : {"nano", "mini"}) {
    const Weights weights = LoadDiffusers(model, "audio_vae");
    for (const char* name : {"decoder.activation_post.upsample.filter",
                             "decoder.activation_post.downsample.lowpass.filter"}) {
      EXPECT_CLOSE(std::string(model) + "/" + name, weights.Get(name), want, 3e-7);
    }
  }
}

}  // namespace
}  // namespace h3rt::golden
