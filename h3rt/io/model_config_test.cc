#include "h3rt/io/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "h3rt/io/random_checkpoint.h"
#include "h3rt/io/test_files.h"

namespace h3rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json Fixture(const std::string& name) {
  absl::StatusOr<Json> json = ReadJsonFile(FixturePath(name));
  EXPECT_TRUE(json.ok()) << json.status();
  return *json;
}

template <typename Config>
void ExpectRoundTrip(const std::string& name) {
  Json json = Fixture(name);
  const absl::StatusOr<Config> config = Config::FromJson(json, name);
  ASSERT_TRUE(config.ok()) << config.status();
  json.erase("_diffusers_version");
  EXPECT_EQ(config->ToJson().dump(2), json.dump(2));
}

TEST(ModelConfig, FixturesAreReadAndWrittenBack) {
  for (const std::string model : {"nano/", "mini/"}) {
    ExpectRoundTrip<DitConfig>(model + "transformer/config.json");
    ExpectRoundTrip<VideoVaeConfig>(model + "vae/config.json");
    ExpectRoundTrip<AudioVaeConfig>(model + "audio_vae/config.json");
    ExpectRoundTrip<SchedulerConfig>(model + "scheduler/scheduler_config.json");
    ExpectRoundTrip<SchedulerConfig>(model + "audio_scheduler/scheduler_config.json");
  }
}

TEST(ModelConfig, MiniPresetIsTheFixture) {
  const ModelConfigs mini = MiniConfigs();
  const std::string folder = "mini/";
  EXPECT_EQ(mini.transformer.ToJson(),
            DitConfig::FromJson(Fixture(folder + "transformer/config.json"), "f")->ToJson());
  EXPECT_EQ(mini.video_vae.ToJson(),
            VideoVaeConfig::FromJson(Fixture(folder + "vae/config.json"), "f")->ToJson());
  EXPECT_EQ(mini.audio_vae.ToJson(),
            AudioVaeConfig::FromJson(Fixture(folder + "audio_vae/config.json"), "f")->ToJson());
}

TEST(ModelConfig, ReleasedConfigsAreValid) {
  const ModelConfigs released = ReleasedConfigs();
  EXPECT_TRUE(released.transformer.Validate().ok());
  EXPECT_TRUE(released.video_vae.Validate().ok());
  EXPECT_TRUE(released.audio_vae.Validate().ok());
  EXPECT_EQ(released.transformer.inner(), 7168);
  EXPECT_EQ(released.transformer.video_row(), 96);
  EXPECT_EQ(released.video_vae.spatial_factor(), 16);
  EXPECT_EQ(released.video_vae.temporal_factor(), 4);
  EXPECT_EQ(released.audio_vae.hop(), 800);
  EXPECT_EQ(released.video_vae.latents_mean.size(), 24u);
  EXPECT_EQ(released.video_vae.latents_mean[0], 0.858090341);
  EXPECT_EQ(released.video_vae.latents_std[23], 2.612784386);
  EXPECT_EQ(released.audio_vae.latents_mean.size(), 32u);
  EXPECT_EQ(released.audio_vae.latents_mean[31], 0.3979258376);
  EXPECT_EQ(released.audio_vae.latents_std[0], 1.6895524230);
}

TEST(ModelConfig, UnknownKeyIsNamedAndUnderscoreKeysAreNot) {
  Json json = Fixture("nano/transformer/config.json");
  json["_name_or_path"] = "somewhere";
  EXPECT_TRUE(DitConfig::FromJson(json, "f").ok());
  json["num_experts"] = 4;
  const absl::Status status = DitConfig::FromJson(json, "some/config.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("num_experts"), HasSubstr("4"), HasSubstr("some/config.json")));
}

TEST(ModelConfig, AnotherClassIsNamed) {
  const Json json = Fixture("nano/transformer/config.json");
  const absl::Status status = VideoVaeConfig::FromJson(json, "f").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("MiniMaxH3Transformer3DModel"), HasSubstr("AutoencoderKLMiniMaxH3")));
}

TEST(ModelConfig, ConstantsHaveDefaultsAndShapesHaveNot) {
  Json json = Fixture("nano/transformer/config.json");
  for (const char* key :
       {"norm_eps", "qk_norm_eps", "final_norm_eps", "rope_theta", "patch_size"}) {
    json.erase(key);
  }
  const absl::StatusOr<DitConfig> config = DitConfig::FromJson(json, "f");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->norm_eps, 1e-5);
  for (const char* key : {"num_attention_heads", "hidden_size", "num_layers", "rope_freq_dim"}) {
    Json lacking = json;
    lacking.erase(key);
    const absl::Status status = DitConfig::FromJson(lacking, "f").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr(key));
  }
  Json vae = Fixture("mini/vae/config.json");
  vae.erase("latents_mean");
  EXPECT_EQ(VideoVaeConfig::FromJson(vae, "f")->latents_mean, ReleasedVideoLatentsMean());
  Json small = Fixture("nano/vae/config.json");
  small.erase("latents_std");  // 24 released values do not fit 4 channels
  EXPECT_EQ(VideoVaeConfig::FromJson(small, "f").status().code(),
            absl::StatusCode::kInvalidArgument);
}

struct BadValue {
  const char* file;
  const char* key;
  const char* value;  // JSON
};

class BadValues : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadValues, AreRefusedByName) {
  const BadValue& bad = GetParam();
  Json json = Fixture(bad.file);
  json[bad.key] = *ParseJson(bad.value, "value");
  const std::string file = bad.file;
  absl::Status status;
  if (file.find("/transformer/") != std::string::npos) {
    status = DitConfig::FromJson(json, file).status();
  } else if (file.find("/vae/") != std::string::npos) {
    status = VideoVaeConfig::FromJson(json, file).status();
  } else if (file.find("/audio_vae/") != std::string::npos) {
    status = AudioVaeConfig::FromJson(json, file).status();
  } else {
    status = SchedulerConfig::FromJson(json, file).status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(bad.key), HasSubstr(file)));
}

constexpr const char* kDit = "mini/transformer/config.json";
constexpr const char* kVae = "mini/vae/config.json";
constexpr const char* kAudio = "mini/audio_vae/config.json";
INSTANTIATE_TEST_SUITE_P(
    ModelConfig, BadValues,
    ::testing::Values(
        BadValue{kDit, "num_layers", "0"}, BadValue{kDit, "num_layers", "1000000000"},
        BadValue{kDit, "num_layers", "9223372036854775807"}, BadValue{kDit, "num_layers", "-1"},
        BadValue{kDit, "num_layers", "2.5"}, BadValue{kDit, "num_layers", "\"2\""},
        BadValue{kDit, "num_attention_heads", "1024"}, BadValue{kDit, "hidden_size", "65537"},
        BadValue{kDit, "ffn_dim", "9999999999"}, BadValue{kDit, "patch_size", "[1,2,3]"},
        BadValue{kDit, "patch_size", "[1,2]"}, BadValue{kDit, "rope_freq_dim", "22"},
        BadValue{kDit, "freq_dim", "15"}, BadValue{kDit, "norm_eps", "0"},
        BadValue{kDit, "norm_eps", "-1e-5"}, BadValue{kDit, "rope_theta", "0"},
        BadValue{kVae, "in_channels", "4"}, BadValue{kVae, "block_out_channels", "[]"},
        BadValue{kVae, "block_out_channels", "[8,16,16,16,16,33]"},
        BadValue{kVae, "spatial_downsample_factors", "[2,2]"},
        BadValue{kVae, "temporal_downsample_factors", "[1,2,2,1,1,0]"},
        BadValue{kVae, "spatial_padding_mode", "\"zeros\""}, BadValue{kVae, "clip_length", "18"},
        BadValue{kVae, "token_drop", "5"}, BadValue{kVae, "decoder_rope_dim_ratio", "0.7"},
        BadValue{kVae, "latents_std", "[1]"}, BadValue{kVae, "norm_num_groups", "0"},
        BadValue{kAudio, "encoder_rates", "[2,4,4,5,4]"},
        BadValue{kAudio, "decoder_kernel_sizes", "[9,9,4,4,4,4,5]"},
        BadValue{kAudio, "decoder_kernel_sizes", "[9]"}, BadValue{kAudio, "decoder_dim", "100"},
        BadValue{kAudio, "resblock_kernel_sizes", "[3,7,8]"},
        BadValue{kAudio, "resblock_dilation_sizes", "[[1]]"},
        BadValue{kAudio, "resblock_dilation_sizes", "[1,3,5]"},
        BadValue{kAudio, "latent_dim", "65"}, BadValue{kAudio, "sampling_rate", "0"},
        BadValue{"mini/scheduler/scheduler_config.json", "shift", "0"},
        BadValue{"mini/scheduler/scheduler_config.json", "shift", "\"12\""}));

// The encoder pads a strided convolution in space, so a stride in time alone is not defined.
TEST(ModelConfig, LevelThatShrinksInTimeAloneIsRefusedByNumber) {
  VideoVaeConfig config = VideoVaeConfig::FromJson(Fixture("mini/vae/config.json"), "f").value();
  int refused = 0;
  for (size_t level = 0; level < config.block_out_channels.size(); ++level) {
    for (const int64_t space : {1, 2}) {
      for (const int64_t time : {1, 2}) {
        VideoVaeConfig c = config;
        c.spatial_factors.assign(config.block_out_channels.size(), 1);
        c.temporal_factors.assign(config.block_out_channels.size(), 1);
        c.spatial_factors[level] = space;
        c.temporal_factors[level] = time;
        const absl::Status status = c.Validate();
        if (space == 2 || time == 1) {
          EXPECT_TRUE(status.ok()) << status;
          continue;
        }
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(MessageOf(status), HasSubstr("level " + std::to_string(level)));
        ++refused;
      }
    }
  }
  EXPECT_EQ(refused, 6);
}

TEST(ModelConfig, SchedulerNeedsItsShift) {
  EXPECT_EQ(SchedulerConfig::FromJson(Json::object(), "f").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ModelConfig, ConditionersAreRecognisedByName) {
  const auto own = ConditionerConfig::FromJson(
      *ParseJson(R"({"_class_name":"H3rtHashConditioner","text_dim":64,"seed":7})", "f"), "f");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->seed, 7);
  const auto qwen = ConditionerConfig::FromJson(
      *ParseJson(R"({"architectures":["Qwen3VLForConditionalGeneration"],"hidden_size":1})", "f"),
      "f");
  ASSERT_TRUE(qwen.ok()) << qwen.status();
  EXPECT_EQ(qwen->class_name, "Qwen3VLForConditionalGeneration");
  EXPECT_FALSE(ConditionerConfig::FromJson(*ParseJson(R"({"text_dim":64})", "f"), "f").ok());
}

}  // namespace
}  // namespace h3rt
