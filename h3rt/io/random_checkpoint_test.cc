#include "h3rt/io/random_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "h3rt/io/checkpoint.h"
#include "h3rt/io/model_folder.h"
#include "h3rt/io/random_values.h"
#include "h3rt/io/tensor_list.h"
#include "h3rt/io/test_files.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFile = "diffusion_pytorch_model.safetensors";

uint64_t FolderBytes(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

TEST(RandomModel, TinyOpensAndStaysUnderEightMegabytes) {
  const TempFolder folder;
  const std::string model = folder / "tiny";
  uint64_t last = 0;
  uint64_t total = 0;
  RandomModelOptions options{.seed = 5, .name = "tiny"};
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
    return absl::OkStatus();
  };
  const absl::Status status = WriteRandomModel(model, TinyConfigs(), options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(last, total);
  EXPECT_LT(FolderBytes(model), 8'000'000u);
  const absl::StatusOr<ModelFolder> found = ModelFolder::Open(model);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->text_encoder_config.empty());
  const auto dit = OpenTransformer(found->transformer);
  ASSERT_TRUE(dit.ok()) << dit.status();
  EXPECT_EQ(dit->config.head_dim, 128);
  EXPECT_EQ(dit->weights.owned_bytes(), 0u);
  EXPECT_EQ(dit->weights.Get("proj_in.weight", {256, 96})->dtype(), DType::kF32);
  EXPECT_EQ(dit->weights.Get("norm_out.norm.weight", {256})->dtype(), DType::kBF16);
  const auto vae = OpenVideoVae(found->video_vae);
  ASSERT_TRUE(vae.ok()) << vae.status();
  EXPECT_EQ(vae->config.spatial_factor(), 16);
  EXPECT_EQ(vae->weights.entries().begin()->second.dtype(), DType::kF16);
  const auto audio = OpenAudioVae(found->audio_vae);
  ASSERT_TRUE(audio.ok()) << audio.status();
  EXPECT_EQ(audio->config.hop(), 800);
  // Nothing is left at the value that training starts from.
  for (const char* name : {"scale1", "scale2"}) {
    const auto view = vae->weights.Get("decoder.transformer_blocks.0." + std::string(name), {64});
    for (const float value : Floats(*view)) EXPECT_NE(value, 0.0f);
  }
  for (const auto& [name, view] : dit->weights.entries()) {
    for (const float value : Floats(view)) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST(RandomModel, SameSeedSameBytesAndAnotherSeedOthers) {
  const TempFolder folder;
  ModelConfigs configs = TinyConfigs();
  configs.transformer.layers = 1;
  for (const auto& [name, seed] : {std::pair("a", 1), std::pair("b", 1), std::pair("c", 2)}) {
    ASSERT_TRUE(
        WriteRandomModel(folder / name, configs, {.seed = static_cast<uint64_t>(seed)}).ok());
  }
  for (const std::string part : {"transformer/", "vae/", "audio_vae/"}) {
    const std::string a = ReadText(folder / ("a/" + part + kFile));
    EXPECT_EQ(a, ReadText(folder / ("b/" + part + kFile)));
    EXPECT_NE(a, ReadText(folder / ("c/" + part + kFile)));
  }
  const std::string a = ModelHash(ModelFolder::Open(folder / "a").value()).value();
  EXPECT_EQ(a, ModelHash(ModelFolder::Open(folder / "b").value()).value());
  EXPECT_NE(a, ModelHash(ModelFolder::Open(folder / "c").value()).value());
  EXPECT_EQ(a.size(), 64u);
}

TEST(RandomModel, ValuesDependOnSeedNameAndIndexAlone) {
  const ValueRule rule{.mean = 1.0f, .deviation = 0.5f};
  std::vector<float> whole(100'000);
  FillRandom(9, "x", rule, 0, whole);
  std::vector<float> piece(1000);
  FillRandom(9, "x", rule, 4321, piece);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 4321));
  FillRandom(9, "y", rule, 4321, piece);
  EXPECT_FALSE(std::equal(piece.begin(), piece.end(), whole.begin() + 4321));
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : whole) {
    sum += static_cast<double>(value);
    squares += std::pow(static_cast<double>(value) - 1.0, 2);
  }
  // Five standard errors of mean and variance (the excess kurtosis of four uniforms is -0.3).
  EXPECT_NEAR(sum / 1e5, 1.0, 5 * 0.5 / std::sqrt(1e5));
  EXPECT_NEAR(squares / 1e5, 0.25, 5 * 0.25 * std::sqrt(1.7 / 1e5));
}

TEST(RandomModel, FirstValuesAreThoseOfTheFormula) {
  // Computed by hand from the formula: seed 0 and an empty name start at FNV's offset basis.
  const uint64_t base = 0xcbf29ce484222325u * 0xD1B54A32D192ED03u;
  uint64_t z = base;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  const double sum =
      static_cast<double>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48)) -
      131070.0;
  float value = 0.0f;
  FillRandom(0, "", {.mean = 0.0f, .deviation = 1.0f}, 0, {&value, 1});
  const double wanted = sum / 32768.0 * std::sqrt(0.75);
  EXPECT_NEAR(static_cast<double>(value), wanted, std::fabs(wanted) * 0x1p-22);
}

TEST(RandomModel, LowPassFilterIsThatOfTheRelease) {
  const TensorMap file = ReadTensors(FixturePath("nano/audio_vae/") + kFile);
  std::vector<float> taps(12);
  FillLowPass(taps);
  int compared = 0;
  for (const auto& [name, tensor] : file) {
    if (!name.ends_with("filter")) continue;
    const std::vector<float> stored = Floats(tensor.view());
    // The public implementation computes the window in float32: a few units in the last place.
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(stored[i], taps[i], 1e-6f) << name << " " << i;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(RandomModel, RefusesAFolderWithContentAndLeavesNothingOnFailure) {
  const TempFolder folder;
  MakeFolder(folder / "full");
  WriteText(folder / "full/file", "x");
  EXPECT_EQ(WriteRandomModel(folder / "full", TinyConfigs(), {}).code(),
            absl::StatusCode::kInvalidArgument);
  RandomModelOptions stops;
  stops.progress = [](uint64_t done, uint64_t) {
    return done > 1'000'000 ? Cancelled("test") : absl::OkStatus();
  };
  EXPECT_EQ(WriteRandomModel(folder / "cancelled", TinyConfigs(), stops).code(),
            absl::StatusCode::kCancelled);
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), "full");
    ++entries;
  }
  EXPECT_EQ(entries, 1);
  ModelConfigs bad = TinyConfigs();
  bad.transformer.freq_dim = 3;
  EXPECT_EQ(WriteRandomModel(folder / "bad", bad, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ConfigsByName("huge").status().code(), absl::StatusCode::kInvalidArgument);
}

// The numbers of tensors and parameters that are published for the release: spec h3 sections 2.2,
// 2.4, 6, 6.4, 7 and 11.1.
TEST(TensorList, ReleasedModelHasThePublishedCounts) {
  const ModelConfigs c = ReleasedConfigs();
  const auto parameters = [](const std::vector<SourceTensor>& list) {
    int64_t sum = 0;
    for (const SourceTensor& tensor : list) {
      if (tensor.split != Split::kDrop) sum += tensor.shape.elements();
    }
    return sum;
  };
  const auto diffusers = TransformerTensors(c.transformer, CheckpointLayout::kDiffusers);
  EXPECT_EQ(diffusers.size(), 638u);
  EXPECT_EQ(parameters(diffusers), 33'122'992'896);
  int64_t island = 0;
  int64_t islands = 0;
  for (const SourceTensor& tensor : diffusers) {
    if (!tensor.island) continue;
    island += tensor.shape.elements();
    ++islands;
  }
  EXPECT_EQ(islands, 12);
  EXPECT_EQ(2 * parameters(diffusers) + 2 * island, 66'280'430'080);
  const auto original = TransformerTensors(c.transformer, CheckpointLayout::kOriginalInterleaved);
  EXPECT_EQ(original.size(), 535u);
  EXPECT_EQ(parameters(original), 33'122'992'896);
  DitConfig pruned = c.transformer;
  pruned.adaln_rank = 8;
  const auto curve = TransformerTensors(pruned, CheckpointLayout::kOriginalContiguous);
  EXPECT_EQ(curve.size(), 532u);
  EXPECT_EQ(parameters(curve), 20'111'438'728);
  const auto vae = VideoVaeTensors(c.video_vae, CheckpointLayout::kDiffusers);
  EXPECT_EQ(vae.size(), 703u);
  EXPECT_EQ(parameters(vae), 2'603'868'984);
  EXPECT_EQ(VideoVaeTensors(c.video_vae, CheckpointLayout::kOriginalInterleaved).size(), 560u);
  size_t audio = 0;
  for (const SourceTensor& t :
       AudioVaeTensors(c.audio_vae, [](std::string_view) { return false; })) {
    if (t.split == Split::kDrop) continue;
    audio += t.split == Split::kWeightNorm ? 2 : 1;
  }
  EXPECT_EQ(audio, 1087u);
}

}  // namespace
}  // namespace h3rt
