#include "h3rt/io/infer_config.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "h3rt/base/json.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {
namespace {

constexpr const char* kComfyPrefix = "model.diffusion_model.";

// Shapes of a file by key, with the first missing or odd one kept as the error.
class Shapes {
 public:
  Shapes(const SafetensorsSet& set, std::string prefix) : set_(set), prefix_(std::move(prefix)) {}

  bool Has(const std::string& key) const { return set_.Has(prefix_ + key); }

  // Extent d of a tensor; 1 after an error, so that a caller may divide by it.
  int64_t Dim(const std::string& key, int d) {
    const SafetensorsEntry* entry = set_.Find(prefix_ + key);
    // An empty tensor may claim any other extent; far below overflow is far beyond any model.
    if (entry != nullptr && d < entry->shape.rank() && entry->shape[d] > 0 &&
        entry->shape[d] <= INT32_MAX) {
      return entry->shape[d];
    }
    Fail(key, entry == nullptr ? "nothing" : entry->shape.ToString(),
         "a tensor of which the configuration can be read");
    return 1;
  }

  // Columns of a matrix that may be packed two to a byte.
  int64_t Cols(const std::string& key) {
    const SafetensorsEntry* entry = set_.Find(prefix_ + key);
    const bool packed = entry != nullptr && entry->dtype == DType::kU8;
    return Dim(key, 1) * (packed ? 2 : 1);
  }

  // One more than the largest N of keys `stem`N.*, 0 when there is none.
  int64_t Count(const std::string& stem) const {
    const std::string full = prefix_ + stem;
    int64_t count = 0;
    const auto& items = set_.items();
    for (auto it = items.lower_bound(full); it != items.end() && it->first.starts_with(full);
         ++it) {
      const char* const begin = it->first.data() + full.size();
      const char* const end = it->first.data() + it->first.size();
      int64_t index = -1;
      const auto [rest, error] = std::from_chars(begin, end, index);
      if (error == std::errc() && rest != end && *rest == '.' && index >= 0 && index < INT32_MAX) {
        count = std::max(count, index + 1);
      }
    }
    return count;
  }

  void Fail(const std::string& key, std::string got, std::string wanted) {
    if (!status_.ok()) return;
    status_ = DataLoss({.what = "no config.json, and key \"" + prefix_ + key + "\"",
                        .got = std::move(got),
                        .wanted = std::move(wanted),
                        .where = set_.path()});
  }
  const absl::Status& status() const { return status_; }

 private:
  const SafetensorsSet& set_;
  std::string prefix_;
  absl::Status status_;
};

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The config.json beside the weights: nothing when there is none, or when it describes another
// network beside a single file.
absl::StatusOr<std::optional<Json>> FindConfig(const std::string& path, const char* class_name,
                                               std::string& config_path) {
  const bool folder = IsFolder(path);
  const size_t slash = path.rfind('/');
  const std::string base = folder                       ? path
                           : slash == std::string::npos ? "."
                           : slash == 0                 ? "/"
                                                        : path.substr(0, slash);
  config_path = base + "/config.json";
  struct stat info = {};
  if (::stat(config_path.c_str(), &info) != 0) return std::optional<Json>();
  absl::StatusOr<Json> json = ReadJsonFile(config_path);
  const bool ours = json.ok() && json->is_object() && json->contains("_class_name") &&
                    (*json)["_class_name"] == class_name;
  if (!folder && !ours) return std::optional<Json>();
  H3RT_RETURN_IF_ERROR(json.status());
  return std::optional<Json>(*std::move(json));
}

// The original configuration spells the same extents by other names (spec 2.1). It is not needed,
// the shapes say everything, but it may not contradict them.
absl::Status CheckOriginalConfig(const Json& json, const DitConfig& c, const std::string& where) {
  const std::pair<const char*, int64_t> rows[] = {
      {"num_attention_heads", c.num_heads},
      {"attention_head_dim", c.head_dim},
      {"hidden_size", c.hidden},
      {"num_layers", c.layers},
      {"token_refiner_num_layers", c.refiner_layers},
      {"ffn_hidden_size", c.ffn},
      {"latents_dim", c.in_channels},
      {"audio_latents_dim", c.audio_in_channels},
      {"text_dim", c.text_dim},
      {"timestep_input_dim", c.adaln_rank > 0 ? -1 : c.freq_dim},
      {"time_embed_hidden_size", c.adaln_rank > 0 ? -1 : c.time_embed_hidden},
      {"time_embed_dim", c.adaln_rank > 0 ? -1 : c.time_embed},
      {"rope_inv_freq_len", c.rope_freq_dim},
  };
  for (const auto& [key, value] : rows) {
    if (value < 0 || !json.is_object() || !json.contains(key)) continue;
    const Json& found = json[key];
    if (found.is_number_integer() && found.get<int64_t>() == value) continue;
    return DataLoss({.what = std::string("config key \"") + key + "\"",
                     .got = JsonSnippet(found),
                     .wanted = std::to_string(value) + ", as the tensors say",
                     .where = where});
  }
  return absl::OkStatus();
}

absl::StatusOr<DitConfig> InferDit(const SafetensorsSet& set, const std::string& prefix,
                                   CheckpointLayout layout) {
  Shapes s(set, prefix);
  const bool original = layout != CheckpointLayout::kDiffusers;
  const std::string block = original ? "blocks.0." : "transformer_blocks.0.";
  DitConfig c;
  const std::string video = original ? "video_patch_proj.weight" : "proj_in.weight";
  const std::string audio = original ? "audio_patch_proj.weight" : "audio_proj_in.weight";
  c.hidden = s.Dim(video, 0);
  c.in_channels = s.Dim(video, 1) / 4;
  c.audio_in_channels = s.Dim(audio, 1);
  c.text_dim = s.Cols(original ? "condition_proj.weight" : "context_embedder.weight");
  c.head_dim = s.Dim(block + (original ? "attn.q_norm.weight" : "attn.norm_q.weight"), 0);
  c.num_heads = original ? s.Dim(block + "attn.qkv_proj.weight", 0) / (3 * c.head_dim)
                         : s.Dim(block + "attn.to_q.weight", 0) / c.head_dim;
  c.ffn = s.Dim(block + (original ? "mlp.fc1.weight" : "ff.net.0.proj.weight"), 0) / 2;
  c.layers = s.Count(original ? "blocks." : "transformer_blocks.");
  c.refiner_layers = s.Count(original ? "token_refiner.blocks." : "token_refiner.refiner_blocks.");
  if (s.Has("adaln_t_table")) {
    c.adaln_rank = s.Dim("adaln_t_table", 1);
  } else {
    const std::string first = original ? "time_embedder.proj_in" : "time_embedder.linear_1";
    const std::string second = original ? "time_embedder.proj_out" : "time_embedder.linear_2";
    c.time_embed_hidden = s.Dim(first + ".weight", 0);
    c.freq_dim = s.Dim(first + ".weight", 1);
    c.time_embed = s.Dim(second + ".weight", 0);
  }
  // Where the file does not store the frequencies: every published configuration rotates three
  // quarters of the head, 6 * head_dim / 8 dimensions.
  c.rope_freq_dim = s.Has("rope.inv_freq") ? s.Dim("rope.inv_freq", 0) : c.head_dim / 8;
  H3RT_RETURN_IF_ERROR(s.status());
  const absl::Status valid = c.Validate();
  if (!valid.ok())
    return DataLoss({.what = "shapes", .got = MessageOf(valid), .where = set.path()});
  return c;
}

absl::StatusOr<VideoVaeConfig> InferVideoVae(const SafetensorsSet& set, CheckpointLayout layout) {
  Shapes s(set, "");
  const bool original = layout != CheckpointLayout::kDiffusers;
  const std::string down = original ? "encoder.down." : "encoder.down_blocks.";
  const std::string blocks = original ? ".block." : ".resnets.";
  VideoVaeConfig c;
  const int64_t levels = s.Count(down);
  if (levels != static_cast<int64_t>(c.block_out_channels.size())) {
    s.Fail(down + "N", std::to_string(levels) + " levels",
           std::to_string(c.block_out_channels.size()) +
               "; the strides of another geometry are not in the shapes");
    return s.status();
  }
  c.layers_per_block = s.Count(down + "0" + blocks);
  for (int64_t level = 0; level < levels; ++level) {
    c.block_out_channels[static_cast<size_t>(level)] =
        s.Dim(down + std::to_string(level) + blocks + "0.conv1.weight", 0);
  }
  c.latent_channels = s.Dim("post_quant_conv.weight", 0);
  const std::string in = original ? "decoder.x_embedder.weight" : "decoder.proj_in.weight";
  const int64_t width = s.Dim(in, 0);
  // The q and k norms have no weight to read the head from; the released heads are 64 wide.
  c.decoder_heads = width / c.decoder_head_dim;
  if (width % c.decoder_head_dim != 0) s.Fail(in, std::to_string(width), "a multiple of 64");
  c.decoder_registers = s.Dim("decoder.register_tokens", 1);
  c.decoder_layers = s.Count("decoder.transformer_blocks.");
  const std::string ff = original ? "ff.w1.weight" : "ff.net.0.proj.weight";
  c.decoder_ffn_mult = s.Dim("decoder.transformer_blocks.0." + ff, 0) / (2 * width);
  c.latents_mean = ReleasedVideoLatentsMean();
  c.latents_std = ReleasedVideoLatentsStd();
  H3RT_RETURN_IF_ERROR(s.status());
  const absl::Status valid = c.Validate();
  if (!valid.ok())
    return DataLoss({.what = "shapes", .got = MessageOf(valid), .where = set.path()});
  return c;
}

// latents_mean and latents_std of the ComfyUI file.
absl::Status ReadChannelValues(const SafetensorsSet& set, const std::string& key,
                               std::vector<double>& out) {
  if (!set.Has(key)) return absl::OkStatus();
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, set.Get(key));
  if (view.dtype() != DType::kF32 || view.rank() != 1 || view.elements() > 65536) {
    return DataLoss({.what = "key \"" + key + "\"",
                     .got = std::string(NameOf(view.dtype())) + " " + view.shape().ToString(),
                     .wanted = "F32, one value a latent channel",
                     .where = set.PathOf(key)});
  }
  H3RT_ASSIGN_OR_RETURN(const Tensor copy, Tensor::Copy(view));
  out.assign(copy.as<float>(), copy.as<float>() + copy.elements());
  return absl::OkStatus();
}

absl::StatusOr<AudioVaeConfig> InferAudioVae(const SafetensorsSet& set) {
  Shapes s(set, "");
  AudioVaeConfig c;
  const auto conv = [&s](const std::string& name) {
    return name + (s.Has(name + ".weight") ? ".weight" : ".weight_v");
  };
  c.encoder_dim = s.Dim(conv("encoder.block.0"), 0);
  const int64_t levels = std::clamp<int64_t>(s.Count("encoder.block.") - 3, 1, 12);
  c.encoder_rates.clear();
  for (int64_t level = 1; level <= levels; ++level) {
    c.encoder_rates.push_back(
        s.Dim(conv("encoder.block." + std::to_string(level) + ".block.4"), 2) / 2);
  }
  c.latent_dim = s.Dim(conv("encoder.block." + std::to_string(levels + 2)), 0);
  c.latent_channels = s.Dim("mean_proj.weight", 0);
  c.decoder_dim = s.Dim(conv("decoder.conv_pre"), 0);
  const std::vector<int64_t> released_kernels = c.decoder_kernels;
  c.decoder_kernels.clear();
  const int64_t stages = std::clamp<int64_t>(s.Count("decoder.ups."), 1, 12);
  for (int64_t i = 0; i < stages; ++i) {
    c.decoder_kernels.push_back(s.Dim(conv("decoder.ups." + std::to_string(i) + ".0"), 2));
  }
  if (c.decoder_kernels != released_kernels) {
    s.Fail("decoder.ups", std::to_string(stages) + " other kernels",
           "the released 9, 9, 4, 4, 4, 4, 4; other rates are not in the shapes");
  }
  const size_t kernels = c.resblock_kernels.size();
  for (size_t j = 0; j < kernels; ++j) {
    c.resblock_kernels[j] = s.Dim(conv("decoder.resblocks." + std::to_string(j) + ".convs1.0"), 2);
  }
  c.latents_mean = ReleasedAudioLatentsMean();
  c.latents_std = ReleasedAudioLatentsStd();
  H3RT_RETURN_IF_ERROR(ReadChannelValues(set, "latents_mean", c.latents_mean));
  H3RT_RETURN_IF_ERROR(ReadChannelValues(set, "latents_std", c.latents_std));
  H3RT_RETURN_IF_ERROR(s.status());
  const absl::Status valid = c.Validate();
  if (!valid.ok())
    return DataLoss({.what = "shapes", .got = MessageOf(valid), .where = set.path()});
  return c;
}

absl::Status WrongNetwork(const SafetensorsSet& set, const char* wanted) {
  const std::string first = set.items().empty() ? "no tensors" : set.items().begin()->first;
  const NetworkKind kind = KindOf(set);
  return DataLoss({.what = "checkpoint",
                   .got = kind == NetworkKind::kUnknown ? "keys like \"" + first + "\""
                                                        : "a " + std::string(NameOf(kind)),
                   .wanted = std::string("a MiniMax-H3 ") + wanted,
                   .where = set.path()});
}

bool IsDiffusersTransformer(const SafetensorsSet& set, const std::string& prefix) {
  return set.Has(prefix + "proj_in.weight") || set.Has(prefix + "audio_proj_in.weight") ||
         set.Has(prefix + "norm_out.norm.weight");
}

bool IsOriginalTransformer(const SafetensorsSet& set, const std::string& prefix) {
  return set.Has(prefix + "video_patch_proj.weight") ||
         set.Has(prefix + "audio_patch_proj.weight") || set.Has(prefix + "final_layer.norm.weight");
}

std::string PrefixOf(const SafetensorsSet& set) {
  const auto it = set.items().lower_bound(kComfyPrefix);
  return it != set.items().end() && it->first.starts_with(kComfyPrefix) ? kComfyPrefix : "";
}

bool HasQuantKeys(const SafetensorsSet& set) {
  return std::any_of(set.items().begin(), set.items().end(),
                     [](const auto& item) { return item.first.ends_with(".comfy_quant"); });
}

}  // namespace

NetworkKind KindOf(const SafetensorsSet& set) {
  const std::string prefix = PrefixOf(set);
  if (IsDiffusersTransformer(set, prefix) || IsOriginalTransformer(set, prefix)) {
    return NetworkKind::kTransformer;
  }
  if (set.Has("decoder.register_tokens") || set.Has("decoder.x_embedder.weight")) {
    return NetworkKind::kVideoVae;
  }
  if (set.Has("dec_in_proj.weight") || set.Has("pre_block.attn.qkv.weight")) {
    return NetworkKind::kAudioVae;
  }
  return NetworkKind::kUnknown;
}

const char* NameOf(NetworkKind kind) {
  switch (kind) {
    case NetworkKind::kTransformer:
      return "transformer";
    case NetworkKind::kVideoVae:
      return "video VAE";
    case NetworkKind::kAudioVae:
      return "audio VAE";
    case NetworkKind::kUnknown:
      break;
  }
  return "unknown network";
}

absl::StatusOr<OpenedCheckpoint<DitConfig>> IdentifyTransformer(const std::string& path,
                                                                const LoadOptions& options) {
  OpenedCheckpoint<DitConfig> out;
  H3RT_ASSIGN_OR_RETURN(out.set, SafetensorsSet::Open(path));
  if (KindOf(out.set) != NetworkKind::kTransformer) return WrongNetwork(out.set, "transformer");
  out.prefix = PrefixOf(out.set);
  if (options.layout) {
    out.layout = *options.layout;
  } else if (IsDiffusersTransformer(out.set, out.prefix)) {
    out.layout = CheckpointLayout::kDiffusers;
  } else {
    // Shapes cannot tell; MiniMax's own shards interleave, every single file and every quantised
    // file in circulation does not (spec 2.3).
    out.layout = out.set.sharded() && !HasQuantKeys(out.set)
                     ? CheckpointLayout::kOriginalInterleaved
                     : CheckpointLayout::kOriginalContiguous;
  }
  std::string config_path;
  H3RT_ASSIGN_OR_RETURN(const std::optional<Json> json,
                        FindConfig(path, kTransformerClass, config_path));
  const bool diffusers_form = json && (out.layout == CheckpointLayout::kDiffusers ||
                                       (json->is_object() && json->contains("_class_name") &&
                                        (*json)["_class_name"] == kTransformerClass));
  if (diffusers_form) {
    H3RT_ASSIGN_OR_RETURN(out.config, DitConfig::FromJson(*json, config_path));
    const SafetensorsEntry* table = out.set.Find(out.prefix + "adaln_t_table");
    if (table != nullptr && out.config.adaln_rank == 0 && table->shape.rank() == 2) {
      out.config.adaln_rank = table->shape[1];
      const absl::Status valid = out.config.Validate();
      if (!valid.ok()) {
        return DataLoss({.what = "key \"adaln_t_table\"", .got = MessageOf(valid), .where = path});
      }
    }
    return out;
  }
  H3RT_ASSIGN_OR_RETURN(out.config, InferDit(out.set, out.prefix, out.layout));
  if (json) H3RT_RETURN_IF_ERROR(CheckOriginalConfig(*json, out.config, config_path));
  return out;
}

absl::StatusOr<OpenedCheckpoint<VideoVaeConfig>> IdentifyVideoVae(const std::string& path,
                                                                  const LoadOptions& options) {
  OpenedCheckpoint<VideoVaeConfig> out;
  H3RT_ASSIGN_OR_RETURN(out.set, SafetensorsSet::Open(path));
  if (KindOf(out.set) != NetworkKind::kVideoVae) return WrongNetwork(out.set, "video VAE");
  out.layout = options.layout.value_or(out.set.Has("decoder.x_embedder.weight")
                                           ? CheckpointLayout::kOriginalInterleaved
                                           : CheckpointLayout::kDiffusers);
  std::string config_path;
  H3RT_ASSIGN_OR_RETURN(const std::optional<Json> json,
                        FindConfig(path, kVideoVaeClass, config_path));
  const bool ours = json && json->is_object() && json->contains("_class_name") &&
                    (*json)["_class_name"] == kVideoVaeClass;
  if (json && (ours || out.layout == CheckpointLayout::kDiffusers)) {
    H3RT_ASSIGN_OR_RETURN(out.config, VideoVaeConfig::FromJson(*json, config_path));
  } else {
    H3RT_ASSIGN_OR_RETURN(out.config, InferVideoVae(out.set, out.layout));
  }
  return out;
}

absl::StatusOr<OpenedCheckpoint<AudioVaeConfig>> IdentifyAudioVae(const std::string& path,
                                                                  const LoadOptions&) {
  OpenedCheckpoint<AudioVaeConfig> out;
  H3RT_ASSIGN_OR_RETURN(out.set, SafetensorsSet::Open(path));
  if (KindOf(out.set) != NetworkKind::kAudioVae) return WrongNetwork(out.set, "audio VAE");
  std::string config_path;
  H3RT_ASSIGN_OR_RETURN(const std::optional<Json> json,
                        FindConfig(path, kAudioVaeClass, config_path));
  // Names do not tell the layouts apart, so the class name decides whose config.json it is.
  if (json && json->is_object() && json->contains("_class_name") &&
      (*json)["_class_name"] == kAudioVaeClass) {
    H3RT_ASSIGN_OR_RETURN(out.config, AudioVaeConfig::FromJson(*json, config_path));
    H3RT_RETURN_IF_ERROR(ReadChannelValues(out.set, "latents_mean", out.config.latents_mean));
    H3RT_RETURN_IF_ERROR(ReadChannelValues(out.set, "latents_std", out.config.latents_std));
    const absl::Status valid = out.config.Validate();
    if (!valid.ok()) {
      return DataLoss(
          {.what = "latents_mean or latents_std", .got = MessageOf(valid), .where = path});
    }
  } else {
    H3RT_ASSIGN_OR_RETURN(out.config, InferAudioVae(out.set));
  }
  return out;
}

}  // namespace h3rt
