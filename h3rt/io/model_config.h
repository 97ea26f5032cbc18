// Configurations of the three networks, as the released config.json files spell them.
//
// FromJson reads the diffusers form. Keys that begin with "_" are ignored, except that _class_name,
// where present, has to be the network's; every other key has to be known. Keys that decide shapes
// are required. Missing numeric constants (eps, theta, patch size, clip length, sampling rate,
// latent mean and std) take the released value, as they do in diffusers, whose from_config fills in
// what an older file lacks. The result is validated. Errors: kInvalidArgument with key, value, what
// was wanted and `where`.
//
// Validate bounds every extent and the products that loaders and kernels form of them, so that a
// hostile file can neither overflow 64 bits nor ask for absurd memory. Errors: kInvalidArgument.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "h3rt/base/json.h"
#include "h3rt/base/status.h"

namespace h3rt {

// Class names of the diffusers form.
inline constexpr const char* kTransformerClass = "MiniMaxH3Transformer3DModel";
inline constexpr const char* kVideoVaeClass = "AutoencoderKLMiniMaxH3";
inline constexpr const char* kAudioVaeClass = "AutoencoderKLMiniMaxH3Audio";
inline constexpr const char* kSchedulerClass = "MiniMaxH3Scheduler";
inline constexpr const char* kHashConditionerClass = "H3rtHashConditioner";

// Latent mean and std of the released VAEs (spec h3 sections 6.1 and 7), for files that carry none.
const std::vector<double>& ReleasedVideoLatentsMean();  // 24
const std::vector<double>& ReleasedVideoLatentsStd();
const std::vector<double>& ReleasedAudioLatentsMean();  // 32
const std::vector<double>& ReleasedAudioLatentsStd();

// Spec h3 section 2.1; defaults are the released model.
struct DitConfig {
  int64_t num_heads = 56;
  int64_t head_dim = 128;
  int64_t hidden = 5376;
  int64_t layers = 50;
  int64_t refiner_layers = 2;
  int64_t ffn = 14336;
  int64_t in_channels = 24;
  int64_t audio_in_channels = 32;
  std::array<int64_t, 3> patch = {1, 2, 2};  // only (1, 2, 2) is accepted
  int64_t text_dim = 5120;
  int64_t freq_dim = 256;
  int64_t time_embed_hidden = 5376;
  int64_t time_embed = 2688;
  int64_t rope_freq_dim = 16;
  double rope_theta = 10000.0;
  double norm_eps = 1e-5;
  double qk_norm_eps = 1e-5;
  double final_norm_eps = 1e-5;
  int64_t adaln_rank = 0;  // pruned variant: width of the AdaLN curve table; 0: full

  int64_t inner() const { return num_heads * head_dim; }
  int64_t video_row() const { return in_channels * patch[0] * patch[1] * patch[2]; }
  // Positive extents within sane limits, 6 * rope_freq_dim <= head_dim, even freq_dim...
  absl::Status Validate() const;
  static absl::StatusOr<DitConfig> FromJson(const Json& json, const std::string& where);
  Json ToJson() const;  // the released config.json, class name included
};

// Spec h3 section 6.
struct VideoVaeConfig {
  int64_t in_channels = 3;
  int64_t out_channels = 3;
  int64_t latent_channels = 24;
  std::vector<int64_t> block_out_channels = {128, 256, 256, 512, 512, 1024};
  int64_t layers_per_block = 2;
  std::vector<int64_t> spatial_factors = {2, 2, 2, 2, 1, 1};
  std::vector<int64_t> temporal_factors = {1, 2, 2, 1, 1, 1};
  int64_t norm_groups = 32;
  double norm_eps = 1e-6;
  int64_t decoder_layers = 36;
  int64_t decoder_heads = 32;
  int64_t decoder_head_dim = 64;
  int64_t decoder_registers = 4;
  int64_t decoder_ffn_mult = 4;
  double decoder_rope_ratio = 0.75;
  double decoder_rope_theta = 100.0;
  double decoder_norm_eps = 1e-5;
  int64_t clip_length = 17;
  int64_t token_drop = 3;
  std::vector<double> latents_mean;
  std::vector<double> latents_std;

  int64_t spatial_factor() const;   // 16
  int64_t temporal_factor() const;  // 4
  int64_t decoder_width() const { return decoder_heads * decoder_head_dim; }
  absl::Status Validate() const;
  static absl::StatusOr<VideoVaeConfig> FromJson(const Json& json, const std::string& where);
  Json ToJson() const;
};

// Spec h3 section 7.
struct AudioVaeConfig {
  int64_t encoder_dim = 64;
  std::vector<int64_t> encoder_rates = {2, 4, 4, 5, 5};
  int64_t latent_dim = 2048;
  int64_t latent_channels = 32;
  int64_t num_heads = 8;
  int64_t decoder_dim = 1024;
  std::vector<int64_t> decoder_rates = {5, 5, 2, 2, 2, 2, 2};
  std::vector<int64_t> decoder_kernels = {9, 9, 4, 4, 4, 4, 4};
  std::vector<int64_t> resblock_kernels = {3, 7, 11};
  std::vector<std::vector<int64_t>> resblock_dilations = {{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  int64_t sampling_rate = 32000;
  std::vector<double> latents_mean;
  std::vector<double> latents_std;

  int64_t hop() const;  // samples a latent, 800
  absl::Status Validate() const;
  static absl::StatusOr<AudioVaeConfig> FromJson(const Json& json, const std::string& where);
  Json ToJson() const;
};

// Scheduler: sigma shift (12 for video, 3 for audio).
struct SchedulerConfig {
  double shift = 12.0;
  absl::Status Validate() const;
  static absl::StatusOr<SchedulerConfig> FromJson(const Json& json, const std::string& where);
  Json ToJson() const;
};

// Text conditioner of the model folder (text_encoder/config.json). h3rt's own small one hashes
// words to rows; the released encoder (Qwen3-VL) is recognised by name and not yet run.
struct ConditionerConfig {
  std::string class_name = "H3rtHashConditioner";
  int64_t text_dim = 5120;
  int64_t seed = 0;  // of the word hash
  absl::Status Validate() const;
  static absl::StatusOr<ConditionerConfig> FromJson(const Json& json, const std::string& where);
  Json ToJson() const;
};

}  // namespace h3rt
