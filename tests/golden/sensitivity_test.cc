// What the golden comparisons would see. Every fault is planted in the reference; the comparison
// that guards against it must then fail, by its own bound.
#include <gtest/gtest.h>

#include <string>

#include "h3rt/io/model_config.h"
#include "tests/golden/fixture.h"
#include "tests/golden/inputs.h"
#include "tests/golden/ref64/audio_vae.h"
#include "tests/golden/ref64/dit.h"
#include "tests/golden/ref64/layout.h"
#include "tests/golden/ref64/video_vae.h"

namespace h3rt::golden {
namespace {

using ref64::Array;
using ref64::Weights;

// The loosest bound that any of the golden tests of these tensors uses.
constexpr double kTransformerBound = 3e-6;
constexpr double kVideoVaeBound = 3e-6;
constexpr double kAudioVaeBound = 2e-5;

// NaN and arrays of another size count as a difference that was not measured: they fail here.
#define EXPECT_SEEN(name, faulty, right, bound)                        \
  do {                                                                 \
    const double error_ = Report(name, faulty, right);                 \
    EXPECT_TRUE(error_ > (bound)) << (name) << " hides at " << error_; \
  } while (false)

class Sensitivity : public testing::TestWithParam<std::string> {};

TEST_P(Sensitivity, TransformerFaultsAreSeen) {
  const Fixture fixture(GetParam(), "transformer_forward_f32.safetensors");
  const auto config = LoadConfig<DitConfig>(GetParam(), "transformer");
  const Weights weights = LoadDiffusers(GetParam(), "transformer");
  const ref64::DitInput input = FixtureInput(fixture);
  const auto expect_seen = [&](const std::string& name, const ref64::DitInput& in,
                               const ref64::DitFaults& faults) {
    const ref64::DitOutput out = ref64::DitForward(config, weights, in, faults);
    EXPECT_SEEN(GetParam() + "/video, " + name, out.video, fixture.Get("video"), kTransformerBound);
    EXPECT_SEEN(GetParam() + "/audio, " + name, out.audio, fixture.Get("audio"), kTransformerBound);
  };
  ref64::DitFaults pairing;
  pairing.adjacent_rope_pairs = true;
  expect_seen("rope pairs (2j, 2j+1)", input, pairing);
  ref64::DitFaults halves;
  halves.swapped_ffn_halves = true;
  expect_seen("fc1 halves swapped", input, halves);
  ref64::DitFaults thirds;
  thirds.swapped_qkv = true;
  expect_seen("k and v swapped", input, thirds);

  // The media clock one row early: the text keeps its positions and everything else moves.
  ref64::DitInput early = input;
  for (int64_t r = 0; r < early.positions.dim(0); ++r) {
    if (early.tags[static_cast<size_t>(r)] != 1) early.positions.p()[3 * r] -= 1.0;
  }
  expect_seen("media clock off by one", early, {});
}

TEST_P(Sensitivity, VideoDecodeFaultsAreSeen) {
  const Fixture fixture(GetParam(), "vae.safetensors");
  const auto config = LoadConfig<VideoVaeConfig>(GetParam(), "vae");
  const Weights weights = LoadDiffusers(GetParam(), "vae");
  const Array z = WithoutBatch(fixture.Get("z"));
  const Array tiled_z = WithoutBatch(fixture.Get("tiled_z"));
  const Array long_z = WithoutBatch(fixture.Get("long_z"));
  const ref64::Tiling small = FixtureTiling(config);

  ref64::VideoVaeFaults faults;
  faults.adjacent_rope_pairs = true;
  EXPECT_SEEN(GetParam() + "/decode, rope pairs (2j, 2j+1)",
              ref64::VideoDecode(config, weights, z, {}, faults), fixture.Get("decode"),
              kVideoVaeBound);
  faults = {};
  faults.swapped_ffn_halves = true;
  EXPECT_SEEN(GetParam() + "/decode, fc1 halves swapped",
              ref64::VideoDecode(config, weights, z, {}, faults), fixture.Get("decode"),
              kVideoVaeBound);
  faults = {};
  faults.token_drop = true;
  EXPECT_SEEN(GetParam() + "/decode, frame dropped at the wrong end",
              ref64::VideoDecode(config, weights, z, {}, faults), fixture.Get("decode"),
              kVideoVaeBound);
  EXPECT_SEEN(GetParam() + "/long_decode, frame dropped at the wrong end",
              ref64::VideoDecode(config, weights, long_z, small, faults),
              fixture.Get("long_decode"), kVideoVaeBound);
  faults = {};
  faults.hard_seams = true;
  EXPECT_SEEN(GetParam() + "/tiled_decode, hard seams",
              ref64::VideoDecode(config, weights, tiled_z, small, faults),
              fixture.Get("tiled_decode"), kVideoVaeBound);
  faults = {};
  faults.rope_over_canvas = true;
  EXPECT_SEEN(GetParam() + "/tiled_decode, rope over the canvas",
              ref64::VideoDecode(config, weights, tiled_z, small, faults),
              fixture.Get("tiled_decode"), kVideoVaeBound);
}

TEST_P(Sensitivity, VideoEncodeFaultsAreSeen) {
  const Fixture fixture(GetParam(), "vae.safetensors");
  const auto config = LoadConfig<VideoVaeConfig>(GetParam(), "vae");
  ref64::VideoVaeFaults faults;
  faults.token_drop = true;
  const Array moments = ref64::VideoEncode(config, LoadDiffusers(GetParam(), "vae"),
                                           WithoutBatch(fixture.Get("pixels")), {}, faults);
  EXPECT_SEEN(GetParam() + "/encode_mode, latents dropped at the front",
              ref64::Slice(moments, 0, 0, config.latent_channels), fixture.Get("encode_mode"),
              kVideoVaeBound);
}

TEST_P(Sensitivity, AudioFaultsAreSeen) {
  const Fixture fixture(GetParam(), "audio_vae.safetensors");
  const auto config = LoadConfig<AudioVaeConfig>(GetParam(), "audio_vae");
  const Weights weights = LoadDiffusers(GetParam(), "audio_vae");
  ref64::AudioVaeFaults faults;
  faults.filter_off_by_one = true;
  EXPECT_SEEN(GetParam() + "/audio decode, filters off by one",
              ref64::AudioDecode(config, weights, fixture.Get("z"), faults), fixture.Get("decode"),
              kAudioVaeBound);
  faults = {};
  faults.not_causal = true;
  const Array wave = fixture.Get("wave");
  EXPECT_SEEN(GetParam() + "/audio encode, attention not causal",
              ref64::AudioEncode(config, weights, ref64::Reshaped(wave, {wave.dim(0), wave.dim(2)}),
                                 faults),
              fixture.Get("encode_mode"), kAudioVaeBound);
}

INSTANTIATE_TEST_SUITE_P(Models, Sensitivity, testing::Values("nano", "mini"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace h3rt::golden
