#include "h3rt/io/random_checkpoint.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "h3rt/base/check.h"
#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/io/checksums.h"
#include "h3rt/io/random_values.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/io/tensor_list.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

constexpr int64_t kChunk = 1 << 18;  // elements

constexpr const char* kWeightsFile = "diffusion_pytorch_model.safetensors";

// One tensor to write: how its values are drawn.
struct Planned {
  SafetensorsSpec spec;
  ValueRule rule;
};

void Plan(const SourceTensor& tensor, DType dtype, std::map<std::string, Planned>& plan) {
  if (tensor.split == Split::kDrop) return;
  plan[tensor.key] = {{tensor.key, dtype, tensor.shape}, RuleOf(tensor, false)};
  if (tensor.split != Split::kWeightNorm) return;
  std::vector<int64_t> dims(static_cast<size_t>(tensor.shape.rank()), 1);
  dims[0] = tensor.shape[0];
  std::string gain = tensor.key;
  gain.back() = 'g';  // weight_v -> weight_g
  plan[gain] = {{gain, dtype, Shape::FromDims(dims).value()}, RuleOf(tensor, true)};
}

uint64_t BytesOf(const std::map<std::string, Planned>& plan) {
  uint64_t bytes = 0;
  for (const auto& [key, item] : plan) {
    bytes += static_cast<uint64_t>(item.spec.shape.elements() * SizeOf(item.spec.dtype));
  }
  return bytes;
}

class Progress {
 public:
  Progress(const RandomModelOptions& options, uint64_t total) : options_(options), total_(total) {}
  absl::Status Add(uint64_t bytes) {
    done_ += bytes;
    return options_.progress ? options_.progress(done_, total_) : absl::OkStatus();
  }

 private:
  const RandomModelOptions& options_;
  uint64_t total_;
  uint64_t done_ = 0;
};

absl::Status WriteTensor(SafetensorsWriter& writer, const Planned& item, std::string_view stream,
                         uint64_t seed, Progress& progress) {
  std::vector<float> values;
  std::vector<uint16_t> halves;
  const int64_t elements = item.spec.shape.elements();
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    const auto count = static_cast<size_t>(std::min(kChunk, elements - begin));
    values.resize(count);
    FillRandom(seed, stream, item.rule, begin, values);
    std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    if (item.spec.dtype != DType::kF32) {
      halves.resize(count);
      for (size_t i = 0; i < count; ++i) {
        halves[i] =
            item.spec.dtype == DType::kBF16 ? FloatToBf16(values[i]) : FloatToF16(values[i]);
      }
      bytes = std::as_bytes(std::span(halves));
    }
    H3RT_RETURN_IF_ERROR(writer.Append(bytes));
    H3RT_RETURN_IF_ERROR(progress.Add(bytes.size()));
  }
  return absl::OkStatus();
}

absl::Status CreateFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? ErrnoStatus(error.value(), "create folder", path) : absl::OkStatus();
}

// What the files of the model hold: path relative to its folder -> SHA-256.
using Sums = std::map<std::string, std::string>;

absl::Status WriteJson(const std::string& root, const std::string& name, const Json& json,
                       Sums& sums) {
  const std::string path = root + "/" + name;
  H3RT_RETURN_IF_ERROR(CreateFolder(std::filesystem::path(path).parent_path().string()));
  const std::string text = json.dump(2) + "\n";
  sums[name] = Sha256Hex(std::as_bytes(std::span(text.data(), text.size())));
  return WriteFileAtomically(path, text);
}

// `part` keeps the streams of the networks apart where their tensors share a name.
absl::Status WritePart(const std::string& root, const std::string& part, const Json& config,
                       const std::map<std::string, Planned>& plan, uint64_t seed,
                       Progress& progress, Sums& sums) {
  H3RT_RETURN_IF_ERROR(WriteJson(root, part + "/config.json", config, sums));
  std::vector<SafetensorsSpec> specs;
  for (const auto& [key, item] : plan) specs.push_back(item.spec);
  const std::string name = part + "/" + kWeightsFile;
  Sha256 hash;
  H3RT_ASSIGN_OR_RETURN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(root + "/" + name, std::move(specs), {{"format", "pt"}}, &hash));
  for (const SafetensorsSpec& spec : writer.specs()) {
    H3RT_RETURN_IF_ERROR(
        WriteTensor(writer, plan.find(spec.name)->second, part + "." + spec.name, seed, progress));
  }
  H3RT_RETURN_IF_ERROR(writer.Finish());
  sums[name] = hash.Finish();
  return absl::OkStatus();
}

absl::Status WriteAll(const std::string& root, const ModelConfigs& configs,
                      const RandomModelOptions& options) {
  std::map<std::string, Planned> transformer;
  for (const SourceTensor& tensor :
       TransformerTensors(configs.transformer, CheckpointLayout::kDiffusers)) {
    Plan(tensor, tensor.island ? DType::kF32 : DType::kBF16, transformer);
  }
  std::map<std::string, Planned> video;
  for (const SourceTensor& tensor :
       VideoVaeTensors(configs.video_vae, CheckpointLayout::kDiffusers)) {
    Plan(tensor, configs.video_vae_dtype, video);
  }
  std::map<std::string, Planned> audio;
  const HasKey pairs = [](std::string_view) { return false; };
  for (const SourceTensor& tensor : AudioVaeTensors(configs.audio_vae, pairs)) {
    Plan(tensor, DType::kF32, audio);
  }
  Progress progress(options, BytesOf(transformer) + BytesOf(video) + BytesOf(audio));
  Sums sums;
  H3RT_RETURN_IF_ERROR(WritePart(root, "transformer", configs.transformer.ToJson(), transformer,
                                 options.seed, progress, sums));
  H3RT_RETURN_IF_ERROR(
      WritePart(root, "vae", configs.video_vae.ToJson(), video, options.seed, progress, sums));
  H3RT_RETURN_IF_ERROR(WritePart(root, "audio_vae", configs.audio_vae.ToJson(), audio, options.seed,
                                 progress, sums));
  H3RT_RETURN_IF_ERROR(WriteJson(root, "scheduler/scheduler_config.json",
                                 SchedulerConfig{.shift = 12.0}.ToJson(), sums));
  H3RT_RETURN_IF_ERROR(WriteJson(root, "audio_scheduler/scheduler_config.json",
                                 SchedulerConfig{.shift = 3.0}.ToJson(), sums));
  ConditionerConfig conditioner;
  conditioner.text_dim = configs.transformer.text_dim;
  // JSON integers are signed here.
  conditioner.seed = static_cast<int64_t>(options.seed & 0x7fffffff);
  H3RT_RETURN_IF_ERROR(WriteJson(root, "text_encoder/config.json", conditioner.ToJson(), sums));
  Json about = {{"name", options.name}, {"weights", "random"}, {"seed", options.seed}};
  if (!options.defaults.is_null()) about["defaults"] = options.defaults;
  const Json index = {{"_class_name", "MiniMaxH3ModularPipeline"}, {"h3rt", std::move(about)}};
  H3RT_RETURN_IF_ERROR(WriteJson(root, "modular_model_index.json", index, sums));
  return WriteFileAtomically(root + "/" + kChecksumsFile, FormatChecksums(sums));
}

absl::Status CheckTarget(const std::string& folder) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(folder, error);
  if (folder.empty()) return InvalidArgument({.what = "model folder", .got = "an empty name"});
  if (status.type() == std::filesystem::file_type::not_found) return absl::OkStatus();
  if (status.type() == std::filesystem::file_type::directory &&
      std::filesystem::is_empty(folder, error) && !error) {
    return absl::OkStatus();
  }
  return InvalidArgument({.what = "model folder",
                          .got = "something that exists",
                          .wanted = "a new or empty folder",
                          .where = folder});
}

}  // namespace

absl::Status WriteRandomModel(const std::string& folder, const ModelConfigs& configs,
                              const RandomModelOptions& options) {
  H3RT_RETURN_IF_ERROR(configs.transformer.Validate());
  H3RT_RETURN_IF_ERROR(configs.video_vae.Validate());
  H3RT_RETURN_IF_ERROR(configs.audio_vae.Validate());
  if (configs.video_vae_dtype != DType::kF32 && configs.video_vae_dtype != DType::kF16) {
    return InvalidArgument({.what = "dtype of the video VAE",
                            .got = std::string(NameOf(configs.video_vae_dtype)),
                            .wanted = "F32 or F16"});
  }
  H3RT_RETURN_IF_ERROR(CheckTarget(folder));
  std::string target = folder;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  std::filesystem::path parent = std::filesystem::path(target).parent_path();
  if (parent.empty()) parent = ".";
  H3RT_RETURN_IF_ERROR(CreateFolder(parent.string()));
  std::string temporary = (parent / ".h3rt-model-XXXXXX").string();
  if (::mkdtemp(temporary.data()) == nullptr) {
    return ErrnoStatus(errno, "create a folder in", parent.string());
  }
  absl::Status status = WriteAll(temporary, configs, options);
  std::error_code error;
  if (status.ok()) {
    std::filesystem::permissions(temporary, std::filesystem::perms(0755), error);
    std::filesystem::rename(temporary, target, error);
    if (error) status = ErrnoStatus(error.value(), "rename into", target);
  }
  if (!status.ok()) std::filesystem::remove_all(temporary, error);
  return status;
}

ModelConfigs TinyConfigs() {
  ModelConfigs c = MiniConfigs();
  c.transformer.num_heads = 2;
  c.transformer.ffn = 512;
  c.transformer.freq_dim = 32;
  c.video_vae_dtype = DType::kF16;
  c.video_vae.latents_mean = ReleasedVideoLatentsMean();
  c.video_vae.latents_std = ReleasedVideoLatentsStd();
  c.audio_vae.encoder_dim = 2;
  c.audio_vae.resblock_kernels = {3, 7};
  c.audio_vae.resblock_dilations = {{1, 3}, {1, 3}};
  c.audio_vae.latents_mean = ReleasedAudioLatentsMean();
  c.audio_vae.latents_std = ReleasedAudioLatentsStd();
  return c;
}

ModelConfigs MiniConfigs() {
  ModelConfigs c;
  c.transformer.num_heads = 4;
  c.transformer.hidden = 256;
  c.transformer.layers = 2;
  c.transformer.refiner_layers = 1;
  c.transformer.ffn = 768;
  c.transformer.text_dim = 64;
  c.transformer.freq_dim = 16;
  c.transformer.time_embed_hidden = 64;
  c.transformer.time_embed = 32;
  c.video_vae.block_out_channels = {8, 16, 16, 16, 16, 32};
  c.video_vae.layers_per_block = 1;
  c.video_vae.norm_groups = 8;
  c.video_vae.decoder_layers = 2;
  c.video_vae.decoder_heads = 2;
  c.video_vae.decoder_head_dim = 32;
  c.video_vae.decoder_ffn_mult = 2;
  c.audio_vae.encoder_dim = 4;
  c.audio_vae.latent_dim = 64;
  c.audio_vae.num_heads = 2;
  c.audio_vae.decoder_dim = 128;
  for (int i = 0; i < 32; ++i) {
    // The fixture's own formulas, so that the values are equal to the last bit.
    if (i < 24) c.video_vae.latents_mean.push_back(-0.2 + 0.02 * i);
    if (i < 24) c.video_vae.latents_std.push_back(0.8 + 0.02 * i);
    c.audio_vae.latents_mean.push_back(0.01 * i);
    c.audio_vae.latents_std.push_back(1.0 + 0.01 * i);
  }
  return c;
}

ModelConfigs ReleasedConfigs() {
  ModelConfigs c;
  c.video_vae.latents_mean = ReleasedVideoLatentsMean();
  c.video_vae.latents_std = ReleasedVideoLatentsStd();
  c.audio_vae.latents_mean = ReleasedAudioLatentsMean();
  c.audio_vae.latents_std = ReleasedAudioLatentsStd();
  return c;
}

absl::StatusOr<ModelConfigs> ConfigsByName(std::string_view name) {
  if (name == "tiny") return TinyConfigs();
  if (name == "mini") return MiniConfigs();
  if (name == "released-shape") return ReleasedConfigs();
  return InvalidArgument({.what = "model configuration",
                          .got = "\"" + std::string(name) + "\"",
                          .wanted = "tiny, mini or released-shape"});
}

}  // namespace h3rt
