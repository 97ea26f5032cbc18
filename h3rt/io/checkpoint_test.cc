#include "h3rt/io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "h3rt/io/inspect.h"
#include "h3rt/io/test_files.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kFile = "/diffusion_pytorch_model.safetensors";

class Models : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Part(const std::string& part) const { return FixturePath(GetParam()) + "/" + part; }
  TransformerCheckpoint Reference() const {
    absl::StatusOr<TransformerCheckpoint> opened = OpenTransformer(Part("transformer"));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return std::move(opened).value();
  }
  // Opens `tensors` as a single file and compares every canonical weight.
  void ExpectSame(const TensorMap& tensors, CheckpointLayout layout) {
    const std::string path = folder_ / "model.safetensors";
    WriteTensors(path, tensors);
    const absl::StatusOr<TransformerCheckpoint> opened = OpenTransformer(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->layout, layout);
    EXPECT_EQ(Difference(Reference().weights, opened->weights), "");
    EXPECT_EQ(opened->weights.owned_bytes(), 0u);
    EXPECT_GT(opened->weights.mapped_bytes(), 0u);
  }
  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Fixtures, Models, ::testing::Values("nano", "mini"));

TEST_P(Models, DiffusersFolderOpensWithoutCopies) {
  const TransformerCheckpoint dit = Reference();
  EXPECT_EQ(dit.layout, CheckpointLayout::kDiffusers);
  EXPECT_EQ(dit.weights.owned_bytes(), 0u);
  const absl::StatusOr<VideoVaeCheckpoint> vae = OpenVideoVae(Part("vae"));
  ASSERT_TRUE(vae.ok()) << vae.status();
  EXPECT_EQ(vae->weights.owned_bytes(), 0u);
  EXPECT_EQ(vae->config.latents_mean.size(), static_cast<size_t>(vae->config.latent_channels));
}

TEST_P(Models, CanonicalWeightsAreThoseOfTheFile) {
  const TransformerCheckpoint dit = Reference();
  const TensorMap file = ReadTensors(Part("transformer") + kFile);
  const std::string block = "transformer_blocks.1.";
  const std::string fused = Bytes(file.at(block + "ff.net.0.proj.weight").view());
  const int64_t ffn = dit.config.ffn;
  const int64_t hidden = dit.config.hidden;
  EXPECT_EQ(Bytes(*dit.weights.Get(block + "ff.value.weight", {ffn, hidden})),
            fused.substr(0, fused.size() / 2));
  EXPECT_EQ(Bytes(*dit.weights.Get(block + "ff.gate.weight", {ffn, hidden})),
            fused.substr(fused.size() / 2));
  EXPECT_EQ(Bytes(*dit.weights.Get(block + "attn.to_k.weight", {dit.config.inner(), hidden})),
            Bytes(file.at(block + "attn.to_k.weight").view()));
  const absl::Status shape = dit.weights.Get(block + "norm1.weight", {hidden + 1}).status();
  EXPECT_EQ(shape.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(dit.weights.Get("no.such", {1}).status().code(), absl::StatusCode::kDataLoss);
}

TEST_P(Models, SingleFileGivesTheSameBytes) {
  const TensorMap file = ReadTensors(Part("transformer") + kFile);
  const TransformerCheckpoint dit = Reference();
  const TensorMap original = OriginalTransformer(file, dit.config.num_heads, false);
  ExpectSame(original, CheckpointLayout::kOriginalContiguous);
}

TEST_P(Models, PrefixedSingleFileWithFrequenciesGivesTheSameBytes) {
  const TensorMap file = ReadTensors(Part("transformer") + kFile);
  const TransformerCheckpoint dit = Reference();
  TensorMap original = OriginalTransformer(file, dit.config.num_heads, false);
  std::vector<float> frequencies;
  for (int64_t j = 0; j < dit.config.rope_freq_dim; ++j) {
    // As the public implementation computes them, in float32.
    const float exponent = static_cast<float>(j) / static_cast<float>(dit.config.rope_freq_dim);
    frequencies.push_back(1.0f / std::pow(10000.0f, exponent));
  }
  original["rope.inv_freq"] = FloatTensor({dit.config.rope_freq_dim}, frequencies);
  ExpectSame(WithPrefix(original, "model.diffusion_model."), CheckpointLayout::kOriginalContiguous);
}

TEST_P(Models, InterleavedShardsGiveTheSameBytes) {
  const TensorMap file = ReadTensors(Part("transformer") + kFile);
  const TransformerCheckpoint dit = Reference();
  WriteShards(folder_ / "shards", OriginalTransformer(file, dit.config.num_heads, true), 3);
  const absl::StatusOr<TransformerCheckpoint> opened = OpenTransformer(folder_ / "shards");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->layout, CheckpointLayout::kOriginalInterleaved);
  EXPECT_EQ(Difference(dit.weights, opened->weights), "");
  EXPECT_EQ(opened->weights.owned_bytes(), 0u);
  const ConstTensorView q = *opened->weights.Get("transformer_blocks.0.attn.to_q.weight",
                                                 {dit.config.inner(), dit.config.hidden});
  EXPECT_EQ(q.shape(), Shape({dit.config.num_heads, dit.config.head_dim, dit.config.hidden}));
  EXPECT_EQ(q.stride(0), 3 * dit.config.head_dim * dit.config.hidden);
}

TEST_P(Models, LayoutCanBeOverridden) {
  const TensorMap file = ReadTensors(Part("transformer") + kFile);
  const TransformerCheckpoint dit = Reference();
  // Interleaved rows in one file: the keys say contiguous, and only the user can know.
  const std::string path = folder_ / "model.safetensors";
  WriteTensors(path, OriginalTransformer(file, dit.config.num_heads, true));
  const auto guessed = OpenTransformer(path);
  ASSERT_TRUE(guessed.ok()) << guessed.status();
  EXPECT_NE(Difference(dit.weights, guessed->weights), "");
  const auto told = OpenTransformer(path, {.layout = CheckpointLayout::kOriginalInterleaved});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(Difference(dit.weights, told->weights), "");
}

TEST_P(Models, PrunedModelOpensInBothLayouts) {
  TensorMap file = ReadTensors(Part("transformer") + kFile);
  const TransformerCheckpoint full = Reference();
  TensorMap pruned = ReadTensors(FixturePath(GetParam()) + "/pruned_f32.safetensors");
  pruned.erase("out.video");
  pruned.erase("out.audio");
  TensorMap original = OriginalTransformer(file, full.config.num_heads, false);
  for (const char* name : {"proj_in", "proj_out"}) {
    original.erase("time_embedder." + std::string(name) + ".weight");
    original.erase("time_embedder." + std::string(name) + ".bias");
  }
  for (auto& [name, tensor] : pruned) original[name] = CopyOf(tensor);
  const std::string path = folder_ / "pruned.safetensors";
  WriteTensors(path, original);
  const absl::StatusOr<TransformerCheckpoint> opened = OpenTransformer(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->config.adaln_rank, 8);
  EXPECT_FALSE(opened->weights.Has("time_embedder.linear_1.weight"));
  EXPECT_EQ(Bytes(*opened->weights.Get("adaln_t_table", {1025, 8})),
            Bytes(pruned.at("adaln_t_table").view()));
  EXPECT_EQ(Bytes(*opened->weights.Get("norm_out.linear.weight", {2 * full.config.hidden, 8})),
            Bytes(pruned.at("final_layer.adaln_proj.linear.weight").view()));
  EXPECT_EQ(opened->weights.owned_bytes(), 0u);
}

TEST_P(Models, VideoVaeOriginalNamesGiveTheSameBytes) {
  const absl::StatusOr<VideoVaeCheckpoint> vae = OpenVideoVae(Part("vae"));
  ASSERT_TRUE(vae.ok()) << vae.status();
  TensorMap original =
      OriginalVideoVae(ReadTensors(Part("vae") + kFile), vae->config.decoder_heads);
  original["decoder.mask_token"] =
      FloatTensor({1, 1, vae->config.decoder_width()},
                  std::vector<float>(static_cast<size_t>(vae->config.decoder_width()), 0.0f));
  MakeFolder(folder_ / "vae");
  WriteTensors(folder_ / "vae/model.safetensors", original);
  // The strides of these small models are not in the shapes, so they need their config.json.
  CopyFile(Part("vae") + "/config.json", folder_ / "vae/config.json");
  const absl::StatusOr<VideoVaeCheckpoint> opened = OpenVideoVae(folder_ / "vae");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->layout, CheckpointLayout::kOriginalInterleaved);
  EXPECT_EQ(Difference(vae->weights, opened->weights), "");
  EXPECT_EQ(opened->weights.owned_bytes(), 0u);
}

TEST_P(Models, AudioVaeFoldsWeightNormInDouble) {
  const absl::StatusOr<AudioVaeCheckpoint> audio = OpenAudioVae(Part("audio_vae"));
  ASSERT_TRUE(audio.ok()) << audio.status();
  const TensorMap file = ReadTensors(Part("audio_vae") + kFile);
  TensorMap folded;
  int64_t pairs = 0;
  for (const auto& [name, tensor] : file) {
    if (name.ends_with(".weight_g")) continue;
    if (!name.ends_with(".weight_v")) {
      folded[name] = CopyOf(tensor);
      continue;
    }
    ++pairs;
    const std::string stem = name.substr(0, name.size() - 2);
    const std::vector<float> v = Floats(tensor.view());
    const std::vector<float> g = Floats(file.at(stem + "_g").view());
    const size_t inner = v.size() / g.size();
    std::vector<float> w(v.size());
    for (size_t row = 0; row < g.size(); ++row) {
      double sum = 0.0;
      for (size_t i = 0; i < inner; ++i)
        sum += std::pow(static_cast<double>(v[row * inner + i]), 2);
      for (size_t i = 0; i < inner; ++i) {
        w[row * inner + i] = static_cast<float>(
            static_cast<double>(g[row]) * static_cast<double>(v[row * inner + i]) / std::sqrt(sum));
      }
    }
    folded[stem] = FloatTensor(tensor.shape(), w);
  }
  EXPECT_GT(pairs, 0);
  const std::vector<double>& mean = audio->config.latents_mean;
  folded["latents_mean"] =
      FloatTensor({audio->config.latent_channels}, std::vector<float>(mean.begin(), mean.end()));
  MakeFolder(folder_ / "audio");
  WriteTensors(folder_ / "audio/model.safetensors", folded);
  CopyFile(Part("audio_vae") + "/config.json", folder_ / "audio/config.json");
  const absl::StatusOr<AudioVaeCheckpoint> opened = OpenAudioVae(folder_ / "audio");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(Difference(audio->weights, opened->weights), "");
  EXPECT_EQ(opened->weights.owned_bytes(), 0u);
  EXPECT_GT(audio->weights.owned_bytes(), 0u);
}

TEST(Checkpoint, PublicSingleFileGivesTheBytesOfTheFolder) {
  const auto folder = OpenTransformer(FixturePath("nano/transformer"));
  const auto single = OpenTransformer(FixturePath("nano/single_file.safetensors"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_TRUE(single.ok()) << single.status();
  EXPECT_EQ(single->layout, CheckpointLayout::kOriginalContiguous);
  EXPECT_EQ(Difference(folder->weights, single->weights), "");
  EXPECT_EQ(single->weights.owned_bytes(), 0u);
  // What the shapes say is what config.json says.
  EXPECT_EQ(single->config.ToJson().dump(), folder->config.ToJson().dump());
}

// Opens nano's single file after a change and expects a refusal that names everything listed.
absl::Status OpenChanged(const std::function<void(TensorMap&)>& change) {
  const TempFolder folder;
  TensorMap tensors = ReadTensors(FixturePath("nano/single_file.safetensors"));
  change(tensors);
  WriteTensors(folder / "model.safetensors", tensors);
  return OpenTransformer(folder / "model.safetensors").status();
}

// rope.inv_freq is not used but computed, so a file of another theta may not pass.
TEST(CheckpointErrors, FrequenciesOfAnotherModelAreNamed) {
  const TempFolder folder;
  const std::string path = folder / "model.safetensors";
  TensorMap tensors = ReadTensors(FixturePath("nano/single_file.safetensors"));
  const auto n = OpenTransformer(FixturePath("nano/transformer"))->config.rope_freq_dim;
  std::vector<float> right;
  for (int64_t j = 0; j < n; ++j) {
    right.push_back(
        static_cast<float>(std::pow(10000.0, -static_cast<double>(j) / static_cast<double>(n))));
  }
  ASSERT_GE(n, 2);
  const auto open = [&](std::vector<float> values, int ulps) {
    const auto towards = ulps > 0 ? 2.0f : 0.0f;
    for (int i = 0; i < std::abs(ulps); ++i) values[1] = std::nextafter(values[1], towards);
    tensors["rope.inv_freq"] = FloatTensor({n}, values);
    WriteTensors(path, tensors);
    return OpenTransformer(path).status();
  };
  EXPECT_TRUE(open(right, 0).ok());
  EXPECT_TRUE(open(right, 1).ok());
  EXPECT_TRUE(open(right, -1).ok());
  for (const int ulps : {4, -4}) EXPECT_EQ(open(right, ulps).code(), absl::StatusCode::kDataLoss);
  std::vector<float> wrong = right;
  wrong.back() = 0.5f;
  const absl::Status status = open(wrong, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("rope.inv_freq"), HasSubstr("element " + std::to_string(n - 1)),
                    HasSubstr("got 0.5"), HasSubstr(path)));
  wrong.back() = std::nanf("");
  EXPECT_EQ(open(wrong, 0).code(), absl::StatusCode::kDataLoss);
  // A narrowed repack is as good as its type.
  std::string halves;
  for (const float value : right) {
    const uint16_t bits = FloatToBf16(value);
    halves.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  tensors["rope.inv_freq"] = ByteTensor(DType::kBF16, {n}, halves);
  WriteTensors(path, tensors);
  EXPECT_TRUE(OpenTransformer(path).ok());
}

TEST(CheckpointErrors, MaskTokenOtherThanZeroIsNamed) {
  const TempFolder folder;
  const std::string nano = FixturePath("nano/vae");
  const absl::StatusOr<VideoVaeCheckpoint> vae = OpenVideoVae(nano);
  ASSERT_TRUE(vae.ok()) << vae.status();
  TensorMap original = OriginalVideoVae(ReadTensors(nano + kFile), vae->config.decoder_heads);
  CopyFile(nano + "/config.json", folder / "config.json");
  std::vector<float> values(static_cast<size_t>(vae->config.decoder_width()), 0.0f);
  values[0] = -0.0f;
  for (const float value : {0.0f, 1e-30f, std::nanf("")}) {
    values[3] = value;
    original["decoder.mask_token"] = FloatTensor({1, 1, vae->config.decoder_width()}, values);
    WriteTensors(folder / "model.safetensors", original);
    const absl::Status status = OpenVideoVae(folder.path()).status();
    if (value == 0.0f) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("decoder.mask_token"), HasSubstr("element 3"),
                                         HasSubstr("wanted 0")));
  }
}

TEST(CheckpointErrors, MissingKeyIsNamed) {
  const absl::Status status = OpenChanged([](TensorMap& t) { t.erase("blocks.1.mlp.fc2.weight"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("missing 1"), HasSubstr("blocks.1.mlp.fc2.weight"),
                                       HasSubstr("model.safetensors")));
}

TEST(CheckpointErrors, UnknownKeysAreCountedAndFiveAreNamed) {
  const absl::Status status = OpenChanged([](TensorMap& t) {
    for (int i = 0; i < 7; ++i) t["zz.extra" + std::to_string(i)] = FloatTensor({1}, {0});
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  const std::string message = MessageOf(status);
  EXPECT_THAT(message,
              AllOf(HasSubstr("unknown 7"), HasSubstr("zz.extra0"), HasSubstr("zz.extra4")));
  EXPECT_EQ(message.find("zz.extra5"), std::string::npos);
}

TEST(CheckpointErrors, KeyOutsideThePrefixIsUnknown) {
  const absl::Status status = OpenChanged([](TensorMap& t) {
    t = WithPrefix(t, "model.diffusion_model.");
    t["first_stage_model.x"] = FloatTensor({1}, {0});
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("first_stage_model.x"));
}

TEST(CheckpointErrors, WrongShapeAndDTypeAreNamed) {
  absl::Status status = OpenChanged([](TensorMap& t) {
    t["blocks.0.norm1.weight"] = FloatTensor({23}, std::vector<float>(23, 1.0f));
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("blocks.0.norm1.weight"), HasSubstr("[23]"),
                                       HasSubstr("[24]"), HasSubstr("model.safetensors")));
  status = OpenChanged([](TensorMap& t) {
    t["blocks.0.norm1.weight"] = ByteTensor(DType::kI8, {24}, std::string(24, 'x'));
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("I8"), HasSubstr("BF16")));
}

TEST(CheckpointErrors, MissingAndCutShardsLoadNothing) {
  const TempFolder folder;
  const TensorMap tensors = ReadTensors(FixturePath("nano/transformer") + kFile);
  for (const bool cut : {false, true}) {
    WriteShards(folder.path(), OriginalTransformer(tensors, 2, true), 3);
    ASSERT_TRUE(SafetensorsSet::Open(folder.path()).ok());
    const std::string shard = folder / "model-2.safetensors";
    if (cut) {
      const std::string whole = ReadText(shard);
      WriteText(shard, whole.substr(0, whole.size() - 1));
    } else {
      ASSERT_EQ(std::remove(shard.c_str()), 0);
    }
    const auto code = cut ? absl::StatusCode::kDataLoss : absl::StatusCode::kNotFound;
    for (const absl::Status& status :
         {OpenTransformer(folder.path()).status(), Inspect(folder.path()).status()}) {
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(MessageOf(status), HasSubstr("model-2.safetensors"));
    }
  }
}

TEST(CheckpointErrors, HugeBlockNumberIsRefused) {
  const absl::Status status = OpenChanged([](TensorMap& t) {
    t["blocks.2000000000.norm1.weight"] = FloatTensor({24}, std::vector<float>(24, 1.0f));
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("num_layers"));
}

TEST(CheckpointErrors, AnotherNetworkIsNamed) {
  const absl::Status status = OpenTransformer(FixturePath("nano/vae")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("video VAE"), HasSubstr("transformer")));
  EXPECT_EQ(OpenVideoVae(FixturePath("nano/audio_vae")).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(OpenAudioVae(FixturePath("nano/transformer")).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(CheckpointErrors, ZeroWeightNormRowIsNamed) {
  const TempFolder folder;
  TensorMap tensors = ReadTensors(FixturePath("nano/audio_vae") + kFile);
  Tensor& v = tensors.at("decoder.conv_post.weight_v");
  v = FloatTensor(v.shape(), std::vector<float>(static_cast<size_t>(v.elements()), 0.0f));
  WriteTensors(folder / "model.safetensors", tensors);
  CopyFile(FixturePath("nano/audio_vae") + "/config.json", folder / "config.json");
  const absl::Status status = OpenAudioVae(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("decoder.conv_post.weight_v"));
}

TEST(CheckpointErrors, ConfigThatContradictsTheTensorsIsRefused) {
  const TempFolder folder;
  CopyFile(FixturePath("nano/transformer") + kFile, folder / "model.safetensors");
  std::string config = ReadText(FixturePath("nano/transformer/config.json"));
  config.replace(config.find("\"ffn_dim\": 32"), 13, "\"ffn_dim\": 64");
  WriteText(folder / "config.json", config);
  const absl::Status status = OpenTransformer(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("[64, 24]"), HasSubstr("[128, 24]")));
}

TEST(Checkpoint, MisalignedTensorsAreCopiedAndTheRestIsNot) {
  // 19 bytes of text in front, as an unsorted writer may leave them, misalign what follows.
  const TempFolder folder;
  const std::string file = ReadText(FixturePath("nano/single_file.safetensors"));
  const TransformerCheckpoint reference =
      OpenTransformer(FixturePath("nano/single_file.safetensors")).value();
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i)
    length |= static_cast<uint64_t>(static_cast<uint8_t>(file[i])) << (8 * i);
  const std::string header = file.substr(8, length) + " ";  // one blank: all data moves by one
  WriteText(folder / "model.safetensors", RawSafetensors(header, file.substr(8 + length)));
  const auto opened = OpenTransformer(folder / "model.safetensors");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(Difference(reference.weights, opened->weights), "");
  EXPECT_EQ(opened->weights.mapped_bytes(), 0u);
  for (const auto& [name, view] : opened->weights.entries()) EXPECT_TRUE(IsAligned(view)) << name;
}

TEST(Checkpoint, RefusesAnotherDTypeForDequantisedWeights) {
  EXPECT_EQ(OpenTransformer(FixturePath("nano/transformer"), {.dequantized = DType::kF16})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
