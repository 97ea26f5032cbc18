#include "h3rt/io/model_config.h"

#include <cmath>
#include <utility>

#include "h3rt/io/config_reader.h"

namespace h3rt {
namespace {

// Bounds far beyond any released model and far below overflow: products of three of the largest
// stay under 2^62.
constexpr int64_t kMaxWidth = 65536;
constexpr int64_t kMaxLayers = 512;
constexpr int64_t kMaxFfn = 262144;
constexpr int64_t kMaxChannels = 4096;
constexpr double kMaxEps = 0.1;
constexpr double kMaxTheta = 1e9;

template <typename Config>
absl::StatusOr<Config> Finish(const ConfigReader& reader, Config config, const std::string& where) {
  H3RT_RETURN_IF_ERROR(reader.Finish());
  const absl::Status valid = config.Validate();
  if (!valid.ok()) return WithContext(valid, where);
  return config;
}

int64_t Product(const std::vector<int64_t>& values) {
  int64_t product = 1;
  for (const int64_t value : values) product *= value;
  return product;
}

absl::Status Refuse(std::string field, std::string got, std::string wanted) {
  return InvalidArgument({.what = "config value " + std::move(field),
                          .got = std::move(got),
                          .wanted = std::move(wanted)});
}

}  // namespace

absl::Status DitConfig::Validate() const {
  H3RT_RETURN_IF_ERROR(CheckRange("num_attention_heads", num_heads, 1, 1024));
  H3RT_RETURN_IF_ERROR(CheckRange("attention_head_dim", head_dim, 2, 1024));
  H3RT_RETURN_IF_ERROR(
      CheckRange("num_attention_heads * attention_head_dim", inner(), 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("hidden_size", hidden, 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("num_layers", layers, 1, kMaxLayers));
  H3RT_RETURN_IF_ERROR(CheckRange("num_refiner_layers", refiner_layers, 0, kMaxLayers));
  H3RT_RETURN_IF_ERROR(CheckRange("ffn_dim", ffn, 1, kMaxFfn));
  H3RT_RETURN_IF_ERROR(CheckRange("in_channels", in_channels, 1, kMaxChannels));
  H3RT_RETURN_IF_ERROR(CheckRange("audio_in_channels", audio_in_channels, 1, kMaxChannels));
  H3RT_RETURN_IF_ERROR(CheckRange("text_dim", text_dim, 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("freq_dim", freq_dim, 2, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("time_embed_hidden_dim", time_embed_hidden, 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("time_embed_dim", time_embed, 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("rope_freq_dim", rope_freq_dim, 1, 1024));
  H3RT_RETURN_IF_ERROR(CheckRange("adaln_rank", adaln_rank, 0, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckPositive("rope_theta", rope_theta, kMaxTheta));
  H3RT_RETURN_IF_ERROR(CheckPositive("norm_eps", norm_eps, kMaxEps));
  H3RT_RETURN_IF_ERROR(CheckPositive("qk_norm_eps", qk_norm_eps, kMaxEps));
  H3RT_RETURN_IF_ERROR(CheckPositive("final_norm_eps", final_norm_eps, kMaxEps));
  if (patch != std::array<int64_t, 3>{1, 2, 2}) {
    return Refuse("patch_size",
                  std::to_string(patch[0]) + ", " + std::to_string(patch[1]) + ", " +
                      std::to_string(patch[2]),
                  "1, 2, 2");
  }
  if (6 * rope_freq_dim > head_dim) {
    return Refuse("rope_freq_dim", std::to_string(rope_freq_dim),
                  "at most attention_head_dim / 6 = " + std::to_string(head_dim / 6));
  }
  if (freq_dim % 2 != 0) return Refuse("freq_dim", std::to_string(freq_dim), "an even number");
  return absl::OkStatus();
}

absl::StatusOr<DitConfig> DitConfig::FromJson(const Json& json, const std::string& where) {
  DitConfig c;
  ConfigReader reader(json, kTransformerClass, where);
  reader.Read("num_attention_heads", c.num_heads);
  reader.Read("attention_head_dim", c.head_dim);
  reader.Read("hidden_size", c.hidden);
  reader.Read("num_layers", c.layers);
  reader.Read("num_refiner_layers", c.refiner_layers);
  reader.Read("ffn_dim", c.ffn);
  reader.Read("in_channels", c.in_channels);
  reader.Read("audio_in_channels", c.audio_in_channels);
  reader.Read("text_dim", c.text_dim);
  reader.Read("freq_dim", c.freq_dim);
  reader.Read("time_embed_hidden_dim", c.time_embed_hidden);
  reader.Read("time_embed_dim", c.time_embed);
  reader.Read("rope_freq_dim", c.rope_freq_dim);
  reader.ReadOptional("rope_theta", c.rope_theta);
  reader.ReadOptional("norm_eps", c.norm_eps);
  reader.ReadOptional("qk_norm_eps", c.qk_norm_eps);
  reader.ReadOptional("final_norm_eps", c.final_norm_eps);
  reader.ReadOptional("adaln_rank", c.adaln_rank);  // h3rt's own, for pruned models
  std::vector<int64_t> patch(c.patch.begin(), c.patch.end());
  reader.ReadOptional("patch_size", patch);
  if (patch.size() != 3) {
    reader.Fail(InvalidArgument({.what = "config key \"patch_size\"",
                                 .got = std::to_string(patch.size()) + " entries",
                                 .wanted = "3",
                                 .where = where}));
  } else {
    c.patch = {patch[0], patch[1], patch[2]};
  }
  return Finish(reader, c, where);
}

Json DitConfig::ToJson() const {
  Json json = {{"_class_name", kTransformerClass},
               {"attention_head_dim", head_dim},
               {"audio_in_channels", audio_in_channels},
               {"ffn_dim", ffn},
               {"final_norm_eps", final_norm_eps},
               {"freq_dim", freq_dim},
               {"hidden_size", hidden},
               {"in_channels", in_channels},
               {"norm_eps", norm_eps},
               {"num_attention_heads", num_heads},
               {"num_layers", layers},
               {"num_refiner_layers", refiner_layers},
               {"patch_size", {patch[0], patch[1], patch[2]}},
               {"qk_norm_eps", qk_norm_eps},
               {"rope_freq_dim", rope_freq_dim},
               {"rope_theta", rope_theta},
               {"text_dim", text_dim},
               {"time_embed_dim", time_embed},
               {"time_embed_hidden_dim", time_embed_hidden}};
  if (adaln_rank > 0) json["adaln_rank"] = adaln_rank;
  return json;
}

int64_t VideoVaeConfig::spatial_factor() const { return Product(spatial_factors); }
int64_t VideoVaeConfig::temporal_factor() const { return Product(temporal_factors); }

absl::Status VideoVaeConfig::Validate() const {
  H3RT_RETURN_IF_ERROR(CheckRange("in_channels", in_channels, 3, 3));
  H3RT_RETURN_IF_ERROR(CheckRange("out_channels", out_channels, 3, 3));
  H3RT_RETURN_IF_ERROR(CheckRange("latent_channels", latent_channels, 1, kMaxChannels));
  H3RT_RETURN_IF_ERROR(CheckList("block_out_channels", block_out_channels, 1, 16, 1, 16384));
  const size_t levels = block_out_channels.size();
  H3RT_RETURN_IF_ERROR(
      CheckList("spatial_downsample_factors", spatial_factors, levels, levels, 1, 2));
  H3RT_RETURN_IF_ERROR(
      CheckList("temporal_downsample_factors", temporal_factors, levels, levels, 1, 2));
  H3RT_RETURN_IF_ERROR(
      CheckRange("product of spatial_downsample_factors", spatial_factor(), 1, 64));
  H3RT_RETURN_IF_ERROR(
      CheckRange("product of temporal_downsample_factors", temporal_factor(), 1, 64));
  for (size_t level = 0; level < levels; ++level) {
    // The padding in front of a strided convolution follows from its spatial factor, and no
    // reference defines one that strides in time alone.
    if (temporal_factors[level] == 1 || spatial_factors[level] > 1) continue;
    return Refuse("temporal_downsample_factors, level " + std::to_string(level),
                  std::to_string(temporal_factors[level]) + " with spatial factor 1",
                  "a level that shrinks in time to shrink in space too");
  }
  H3RT_RETURN_IF_ERROR(CheckRange("layers_per_block", layers_per_block, 1, 64));
  H3RT_RETURN_IF_ERROR(CheckRange("norm_num_groups", norm_groups, 1, 1024));
  for (const int64_t channels : block_out_channels) {
    if (channels % norm_groups != 0) {
      return Refuse("block_out_channels", std::to_string(channels),
                    "a multiple of norm_num_groups = " + std::to_string(norm_groups));
    }
  }
  H3RT_RETURN_IF_ERROR(CheckPositive("norm_eps", norm_eps, kMaxEps));
  H3RT_RETURN_IF_ERROR(CheckPositive("decoder_norm_eps", decoder_norm_eps, kMaxEps));
  H3RT_RETURN_IF_ERROR(CheckRange("decoder_num_layers", decoder_layers, 1, kMaxLayers));
  H3RT_RETURN_IF_ERROR(CheckRange("decoder_num_attention_heads", decoder_heads, 1, 1024));
  H3RT_RETURN_IF_ERROR(CheckRange("decoder_attention_head_dim", decoder_head_dim, 2, 1024));
  H3RT_RETURN_IF_ERROR(CheckRange("decoder width", decoder_width(), 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("decoder_num_register_tokens", decoder_registers, 0, 1024));
  H3RT_RETURN_IF_ERROR(CheckRange("decoder_ffn_mult", decoder_ffn_mult, 1, 64));
  H3RT_RETURN_IF_ERROR(CheckPositive("decoder_rope_dim_ratio", decoder_rope_ratio, 1.0));
  H3RT_RETURN_IF_ERROR(CheckPositive("decoder_rope_theta", decoder_rope_theta, kMaxTheta));
  const double rotary = static_cast<double>(decoder_head_dim) * decoder_rope_ratio;
  if (rotary != std::floor(rotary) || static_cast<int64_t>(rotary) % 6 != 0) {
    return Refuse("decoder_rope_dim_ratio", std::to_string(decoder_rope_ratio),
                  "a multiple of 6 rotated dimensions of " + std::to_string(decoder_head_dim));
  }
  H3RT_RETURN_IF_ERROR(CheckRange("clip_length", clip_length, 1, 4096));
  if ((clip_length - 1) % temporal_factor() != 0) {
    return Refuse("clip_length", std::to_string(clip_length),
                  "one more than a multiple of " + std::to_string(temporal_factor()));
  }
  H3RT_RETURN_IF_ERROR(
      CheckRange("token_drop", token_drop, 0, (clip_length - 1) / temporal_factor()));
  H3RT_RETURN_IF_ERROR(CheckChannelValues("latents_mean", latents_mean, latent_channels, false));
  return CheckChannelValues("latents_std", latents_std, latent_channels, true);
}

absl::StatusOr<VideoVaeConfig> VideoVaeConfig::FromJson(const Json& json,
                                                        const std::string& where) {
  VideoVaeConfig c;
  ConfigReader reader(json, kVideoVaeClass, where);
  reader.Read("in_channels", c.in_channels);
  reader.Read("out_channels", c.out_channels);
  reader.Read("latent_channels", c.latent_channels);
  reader.Read("block_out_channels", c.block_out_channels);
  reader.Read("layers_per_block", c.layers_per_block);
  reader.Read("spatial_downsample_factors", c.spatial_factors);
  reader.Read("temporal_downsample_factors", c.temporal_factors);
  reader.Read("norm_num_groups", c.norm_groups);
  reader.Read("decoder_num_layers", c.decoder_layers);
  reader.Read("decoder_num_attention_heads", c.decoder_heads);
  reader.Read("decoder_attention_head_dim", c.decoder_head_dim);
  reader.Read("decoder_num_register_tokens", c.decoder_registers);
  reader.Read("decoder_ffn_mult", c.decoder_ffn_mult);
  reader.ReadOptional("norm_eps", c.norm_eps);
  reader.ReadOptional("decoder_rope_dim_ratio", c.decoder_rope_ratio);
  reader.ReadOptional("decoder_rope_theta", c.decoder_rope_theta);
  reader.ReadOptional("decoder_norm_eps", c.decoder_norm_eps);
  reader.ReadOptional("clip_length", c.clip_length);
  reader.ReadOptional("token_drop", c.token_drop);
  std::string padding = "reflect";
  reader.ReadOptional("spatial_padding_mode", padding);
  if (padding != "reflect") {
    reader.Fail(InvalidArgument({.what = "config key \"spatial_padding_mode\"",
                                 .got = "\"" + padding.substr(0, 80) + "\"",
                                 .wanted = "\"reflect\"",
                                 .where = where}));
  }
  c.latents_mean = ReleasedVideoLatentsMean();
  c.latents_std = ReleasedVideoLatentsStd();
  reader.ReadOptional("latents_mean", c.latents_mean);
  reader.ReadOptional("latents_std", c.latents_std);
  return Finish(reader, std::move(c), where);
}

Json VideoVaeConfig::ToJson() const {
  return {{"_class_name", kVideoVaeClass},
          {"block_out_channels", block_out_channels},
          {"clip_length", clip_length},
          {"decoder_attention_head_dim", decoder_head_dim},
          {"decoder_ffn_mult", decoder_ffn_mult},
          {"decoder_norm_eps", decoder_norm_eps},
          {"decoder_num_attention_heads", decoder_heads},
          {"decoder_num_layers", decoder_layers},
          {"decoder_num_register_tokens", decoder_registers},
          {"decoder_rope_dim_ratio", decoder_rope_ratio},
          {"decoder_rope_theta", decoder_rope_theta},
          {"in_channels", in_channels},
          {"latent_channels", latent_channels},
          {"latents_mean", latents_mean},
          {"latents_std", latents_std},
          {"layers_per_block", layers_per_block},
          {"norm_eps", norm_eps},
          {"norm_num_groups", norm_groups},
          {"out_channels", out_channels},
          {"spatial_downsample_factors", spatial_factors},
          {"spatial_padding_mode", "reflect"},
          {"temporal_downsample_factors", temporal_factors},
          {"token_drop", token_drop}};
}

int64_t AudioVaeConfig::hop() const { return Product(encoder_rates); }

absl::Status AudioVaeConfig::Validate() const {
  H3RT_RETURN_IF_ERROR(CheckRange("encoder_dim", encoder_dim, 1, 16384));
  H3RT_RETURN_IF_ERROR(CheckList("encoder_rates", encoder_rates, 1, 12, 1, 64));
  H3RT_RETURN_IF_ERROR(
      CheckRange("encoder_dim * 2^levels", encoder_dim << encoder_rates.size(), 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("latent_dim", latent_dim, 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckRange("latent_channels", latent_channels, 1, kMaxChannels));
  H3RT_RETURN_IF_ERROR(CheckRange("num_attention_heads", num_heads, 1, 1024));
  if (latent_dim % num_heads != 0 || (latent_dim / num_heads) % latent_channels != 0) {
    return Refuse("latent_dim", std::to_string(latent_dim),
                  "a multiple of num_attention_heads * latent_channels");
  }
  H3RT_RETURN_IF_ERROR(CheckRange("decoder_dim", decoder_dim, 1, kMaxWidth));
  H3RT_RETURN_IF_ERROR(CheckList("decoder_rates", decoder_rates, 1, 12, 1, 64));
  const size_t stages = decoder_rates.size();
  H3RT_RETURN_IF_ERROR(CheckList("decoder_kernel_sizes", decoder_kernels, stages, stages, 1, 128));
  for (size_t i = 0; i < stages; ++i) {
    const int64_t spare = decoder_kernels[i] - decoder_rates[i];
    if (spare < 0 || spare % 2 != 0) {
      return Refuse("decoder_kernel_sizes", std::to_string(decoder_kernels[i]),
                    "the rate " + std::to_string(decoder_rates[i]) + " plus an even number");
    }
  }
  if (decoder_dim % (int64_t{1} << stages) != 0) {
    return Refuse("decoder_dim", std::to_string(decoder_dim),
                  "a multiple of " + std::to_string(int64_t{1} << stages));
  }
  // Each factor is at most 64 and there are at most 12: the products stay below 2^62 only with the
  // bound on the running product that hop needs anyway.
  for (const std::vector<int64_t>* rates : {&encoder_rates, &decoder_rates}) {
    int64_t product = 1;
    for (const int64_t rate : *rates) {
      product *= rate;
      H3RT_RETURN_IF_ERROR(CheckRange("product of rates", product, 1, 1 << 20));
    }
  }
  if (Product(decoder_rates) != hop()) {
    return Refuse("product of decoder_rates", std::to_string(Product(decoder_rates)),
                  "the product of encoder_rates, " + std::to_string(hop()));
  }
  H3RT_RETURN_IF_ERROR(CheckList("resblock_kernel_sizes", resblock_kernels, 1, 16, 1, 127));
  for (const int64_t kernel : resblock_kernels) {
    if (kernel % 2 == 0) return Refuse("resblock_kernel_sizes", std::to_string(kernel), "odd");
  }
  if (resblock_dilations.size() != resblock_kernels.size()) {
    return Refuse("resblock_dilation_sizes", std::to_string(resblock_dilations.size()) + " lists",
                  std::to_string(resblock_kernels.size()) + ", one a kernel");
  }
  for (const std::vector<int64_t>& dilations : resblock_dilations) {
    H3RT_RETURN_IF_ERROR(CheckList("resblock_dilation_sizes", dilations, 1, 16, 1, 1024));
  }
  H3RT_RETURN_IF_ERROR(CheckRange("sampling_rate", sampling_rate, 1000, 1'000'000));
  H3RT_RETURN_IF_ERROR(CheckChannelValues("latents_mean", latents_mean, latent_channels, false));
  return CheckChannelValues("latents_std", latents_std, latent_channels, true);
}

absl::StatusOr<AudioVaeConfig> AudioVaeConfig::FromJson(const Json& json,
                                                        const std::string& where) {
  AudioVaeConfig c;
  ConfigReader reader(json, kAudioVaeClass, where);
  reader.Read("encoder_dim", c.encoder_dim);
  reader.Read("encoder_rates", c.encoder_rates);
  reader.Read("latent_dim", c.latent_dim);
  reader.Read("latent_channels", c.latent_channels);
  reader.Read("num_attention_heads", c.num_heads);
  reader.Read("decoder_dim", c.decoder_dim);
  reader.Read("decoder_rates", c.decoder_rates);
  reader.Read("decoder_kernel_sizes", c.decoder_kernels);
  reader.Read("resblock_kernel_sizes", c.resblock_kernels);
  reader.Read("resblock_dilation_sizes", c.resblock_dilations);
  reader.ReadOptional("sampling_rate", c.sampling_rate);
  c.latents_mean = ReleasedAudioLatentsMean();
  c.latents_std = ReleasedAudioLatentsStd();
  reader.ReadOptional("latents_mean", c.latents_mean);
  reader.ReadOptional("latents_std", c.latents_std);
  return Finish(reader, std::move(c), where);
}

Json AudioVaeConfig::ToJson() const {
  return {{"_class_name", kAudioVaeClass},
          {"decoder_dim", decoder_dim},
          {"decoder_kernel_sizes", decoder_kernels},
          {"decoder_rates", decoder_rates},
          {"encoder_dim", encoder_dim},
          {"encoder_rates", encoder_rates},
          {"latent_channels", latent_channels},
          {"latent_dim", latent_dim},
          {"latents_mean", latents_mean},
          {"latents_std", latents_std},
          {"num_attention_heads", num_heads},
          {"resblock_dilation_sizes", resblock_dilations},
          {"resblock_kernel_sizes", resblock_kernels},
          {"sampling_rate", sampling_rate}};
}

absl::Status SchedulerConfig::Validate() const { return CheckPositive("shift", shift, 1000.0); }

absl::StatusOr<SchedulerConfig> SchedulerConfig::FromJson(const Json& json,
                                                          const std::string& where) {
  SchedulerConfig c;
  ConfigReader reader(json, kSchedulerClass, where);
  reader.ReadOptional("shift", c.shift);
  if (!reader.Has("shift")) {
    // Video and audio have different shifts, so there is no released default to fall back to.
    reader.Fail(InvalidArgument({.what = "missing key \"shift\"", .where = where}));
  }
  return Finish(reader, c, where);
}

Json SchedulerConfig::ToJson() const {
  return {{"_class_name", kSchedulerClass}, {"shift", shift}};
}

absl::Status ConditionerConfig::Validate() const {
  if (class_name.empty() || class_name.size() > 200) {
    return Refuse("_class_name", std::to_string(class_name.size()) + " characters", "1 to 200");
  }
  return CheckRange("text_dim", text_dim, 1, kMaxWidth);
}

absl::StatusOr<ConditionerConfig> ConditionerConfig::FromJson(const Json& json,
                                                              const std::string& where) {
  ConditionerConfig c;
  if (json.is_object() && !json.contains("_class_name") && json.contains("architectures")) {
    // A transformers config (Qwen3-VL): recognised by name; its many keys are not h3rt's.
    const Json& names = json["architectures"];
    if (!names.is_array() || names.empty() || !names[0].is_string()) {
      return InvalidArgument({.what = "config key \"architectures\"",
                              .got = JsonSnippet(names),
                              .wanted = "a list with a class name",
                              .where = where});
    }
    c.class_name = names[0].get<std::string>();
    const absl::Status valid = c.Validate();
    if (!valid.ok()) return WithContext(valid, where);
    return c;
  }
  if (json.is_object() && json.contains("_class_name") && json["_class_name"].is_string() &&
      json["_class_name"] != kHashConditionerClass) {
    // Another conditioner: its keys are its own, and whether it is built is not decided here.
    c.class_name = json["_class_name"].get<std::string>();
    const absl::Status valid = c.Validate();
    if (!valid.ok()) return WithContext(valid, where);
    return c;
  }
  ConfigReader reader(json, kHashConditionerClass, where);
  reader.Read("text_dim", c.text_dim);
  reader.Read("seed", c.seed);
  return Finish(reader, std::move(c), where);
}

Json ConditionerConfig::ToJson() const {
  return {{"_class_name", class_name}, {"text_dim", text_dim}, {"seed", seed}};
}

}  // namespace h3rt
