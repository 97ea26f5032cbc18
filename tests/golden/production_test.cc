// Production against the float64 reference where the public fixtures do not look: tiles with slack,
// clips of odd lengths, encoding in tiles, and the loader's weights themselves.
#include "tests/golden/production.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/golden/fixture.h"
#include "tests/golden/inputs.h"
#include "tests/golden/ref64/audio_vae.h"
#include "tests/golden/ref64/dit.h"
#include "tests/golden/ref64/video_vae.h"

namespace h3rt::golden {
namespace {

using ref64::Array;
using ref64::Weights;

// The bounds against the public tensors hold against the reference too.
constexpr double kTransformerBound = 2e-6;
constexpr double kVideoVaeBound = 3e-6;
constexpr double kAudioVaeBound = 2e-5;

#define EXPECT_CLOSE(name, got, want, bound)                    \
  do {                                                          \
    const double error_ = Report(name, got, want);              \
    EXPECT_TRUE(error_ <= (bound)) << (name) << ": " << error_; \
  } while (false)

class ProductionModel : public testing::TestWithParam<std::string> {
 protected:
  const Production production_{GetParam()};
};

// What the recorded forwards do not have: vision rows in the text, condition rows, three timesteps.
TEST_P(ProductionModel, TransformerEqualsTheReference) {
  const DitConfig& config = production_.dit_config();
  const Weights weights = LoadDiffusers(GetParam(), "transformer");
  for (const int keyframes : {0, 1, 2, 3}) {
    RequestOptions options;
    options.frames = 39;
    options.height = 6;
    options.width = 10;
    options.seed = 11;
    options.first_frame = (keyframes & 1) != 0;
    options.last_frame = (keyframes & 2) != 0;
    options.vision_rows = keyframes == 0 ? 0 : 5;
    const ref64::DitInput input = RandomRequest(config, options);
    const ref64::DitOutput want = ref64::DitForward(config, weights, input);
    const MediaRows got = production_.Forward(input);
    const std::string at = GetParam() + "/keyframes " + std::to_string(keyframes);
    EXPECT_CLOSE(at + ", video", got.video, want.video, kTransformerBound);
    EXPECT_CLOSE(at + ", audio", got.audio, want.audio, kTransformerBound);
  }
}

// The fixture's timesteps are grid points of the curve; these are not, or lie at its end.
TEST_P(ProductionModel, PrunedTransformerEqualsTheReference) {
  const DitConfig& config = production_.dit_config();
  const Weights weights = LoadPruned(GetParam());
  for (const std::vector<double>& timesteps :
       {std::vector<double>{0.31298828125, 0.70037841796875, 0.0}, {0.99951171875, 1.0, 0.0}}) {
    RequestOptions options;
    options.seed = 17;
    options.timesteps = timesteps;
    const ref64::DitInput input = RandomRequest(config, options);
    const ref64::DitOutput want = ref64::DitForward(config, weights, input);
    const MediaRows got = production_.PrunedForward(input);
    EXPECT_CLOSE(GetParam() + "/pruned video", got.video, want.video, kTransformerBound);
    EXPECT_CLOSE(GetParam() + "/pruned audio", got.audio, want.audio, kTransformerBound);
  }
}

// Tiles of 4 x 4 latents that overlap by one: 9 latents leave a slack of 1 (of 3 tiles) and 6 a
// slack of 1 (of 2), 11 leave 2 (of 4).
TEST_P(ProductionModel, TiledDecodeEqualsTheReference) {
  const VideoVaeConfig& config = production_.video_config();
  const Weights weights = LoadDiffusers(GetParam(), "vae");
  const int64_t s = FixtureTiling(config).overlap;
  const ref64::Tiling tiling{4 * s, s};
  for (const int64_t latents : {2, 3, 4, 12, 14}) {
    const Array z = RandomNormal(static_cast<uint64_t>(latents),
                                 {config.latent_channels, latents, 6, latents == 12 ? 11 : 9});
    const Array want = ref64::VideoDecode(config, weights, z, tiling);
    EXPECT_CLOSE(GetParam() + "/tiled decode of " + std::to_string(latents) + " latents",
                 production_.VideoDecode(z, tiling), want, kVideoVaeBound);
  }
}

TEST_P(ProductionModel, TiledEncodeEqualsTheReference) {
  const VideoVaeConfig& config = production_.video_config();
  const Weights weights = LoadDiffusers(GetParam(), "vae");
  const int64_t s = FixtureTiling(config).overlap;
  const ref64::Tiling tiling{4 * s, s};
  for (const int64_t frames : {1, 5, 18, 22}) {
    const Array pixels = RandomNormal(static_cast<uint64_t>(frames), {3, frames, 6 * s, 5 * s});
    const Array want = ref64::VideoEncode(config, weights, pixels, tiling);
    const Array got = production_.VideoEncode(pixels, tiling);
    ASSERT_EQ(got.shape, want.shape);
    const std::string at = GetParam() + "/encode of " + std::to_string(frames) + " frames, ";
    const int64_t c = config.latent_channels;
    EXPECT_CLOSE(at + "mean", ref64::Slice(got, 0, 0, c), ref64::Slice(want, 0, 0, c),
                 kVideoVaeBound);
    EXPECT_CLOSE(at + "log variance", ref64::Slice(got, 0, c, 2 * c),
                 ref64::Slice(want, 0, c, 2 * c), kVideoVaeBound);
  }
}

TEST_P(ProductionModel, AudioVaeEqualsTheReference) {
  const AudioVaeConfig& config = production_.audio_config();
  const Weights weights = LoadDiffusers(GetParam(), "audio_vae");
  for (const int64_t latents : {1, 2, 8}) {
    const Array z =
        RandomNormal(static_cast<uint64_t>(latents), {2, config.latent_channels, latents});
    EXPECT_CLOSE(GetParam() + "/decode of " + std::to_string(latents) + " latents",
                 production_.AudioDecode(z), ref64::AudioDecode(config, weights, z),
                 kAudioVaeBound);
  }
  for (const int64_t samples : {1, 801, 4000}) {
    const Array wave = RandomNormal(static_cast<uint64_t>(samples), {2, samples});
    EXPECT_CLOSE(GetParam() + "/encode of " + std::to_string(samples) + " samples",
                 production_.AudioEncode(wave), ref64::AudioEncode(config, weights, wave),
                 kAudioVaeBound);
  }
}

// The loader's weights, name by name: equal but for weight norm, which it folds in float32: four
// roundings (square sum, root, quotient, product), each of at most 2^-24.
TEST_P(ProductionModel, LoaderAgreesWithAnIndependentReading) {
  const auto compare = [](const WeightStore& store, const Weights& want, double bound) {
    const Weights got = Weights::From(store);
    ASSERT_FALSE(store.entries().empty());
    for (const auto& [name, view] : store.entries()) {
      ASSERT_TRUE(want.Has(name)) << name;
      EXPECT_EQ(got.Get(name).elements(), want.Get(name).elements()) << name;
      for (int64_t i = 0; i < got.Get(name).elements(); ++i) {
        const double a = got.Get(name).p()[i];
        const double b = want.Get(name).p()[i];
        ASSERT_TRUE(std::abs(a - b) <= bound * std::abs(b)) << name << "[" << i << "]";
      }
    }
  };
  compare(production_.dit_weights(), LoadDiffusers(GetParam(), "transformer"), 0.0);
  compare(production_.video_weights(), LoadDiffusers(GetParam(), "vae"), 0.0);
  compare(production_.audio_weights(), LoadDiffusers(GetParam(), "audio_vae"), 4 * 0x1p-24);
}

INSTANTIATE_TEST_SUITE_P(Models, ProductionModel, testing::Values("nano", "mini"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace h3rt::golden
