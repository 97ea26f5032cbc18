// Opening a session: the folder, its configurations, what fits together.
#include <utility>

#include "h3rt/base/json.h"
#include "h3rt/io/checksums.h"
#include "h3rt/io/inspect.h"
#include "h3rt/runtime/session_impl.h"

namespace h3rt {
namespace {

// Files of a folder with SHA256SUMS are verified on opening up to this size; `inspect --verify`
// takes all of them.
constexpr uint64_t kVerifiedBytes = 64ull << 20;

absl::StatusOr<ModelDefaults> ReadDefaults(const std::string& root) {
  ModelDefaults defaults;
  const std::string path = root + "/modular_model_index.json";
  const absl::StatusOr<Json> index = ReadJsonFile(path);
  if (absl::IsNotFound(index.status())) return defaults;
  if (!index.ok()) return index.status();
  if (!index->is_object() || !index->contains("h3rt") || !(*index)["h3rt"].is_object() ||
      !(*index)["h3rt"].contains("defaults")) {
    return defaults;
  }
  const Json& stated = (*index)["h3rt"]["defaults"];
  H3RT_ASSIGN_OR_RETURN(defaults.width, JsonInt(stated, "width", path));
  H3RT_ASSIGN_OR_RETURN(defaults.height, JsonInt(stated, "height", path));
  H3RT_ASSIGN_OR_RETURN(defaults.frames, JsonInt(stated, "frames", path));
  H3RT_ASSIGN_OR_RETURN(defaults.forwards, JsonInt(stated, "forwards", path));
  return defaults;
}

// The configuration of one network, from headers alone. What the loader would refuse is refused now
// and not after the stages before it have run: `open` is called for its error.
template <typename Config, typename OpenFunction>
absl::StatusOr<Config> ReadConfig(const std::string& path, const OpenFunction& open) {
  H3RT_ASSIGN_OR_RETURN(const InspectReport report, Inspect(path));
  if (report.components.size() != 1 || !report.components[0].ok() ||
      report.components[0].config.is_null()) {
    const auto opened = open();
    if (!opened.ok()) return opened.status();
    return opened->config;
  }
  return Config::FromJson(report.components[0].config, path);
}

}  // namespace

absl::Status Session::Impl::ReadFolder(const std::string& model_dir) {
  H3RT_ASSIGN_OR_RETURN(
      folder, ModelFolder::Open(model_dir, {.transformer = "transformer", .allow_missing = true}));
  if (!options.transformer.empty()) folder.transformer = options.transformer;
  if (!options.video_vae.empty()) folder.video_vae = options.video_vae;
  if (!options.audio_vae.empty()) folder.audio_vae = options.audio_vae;
  for (const auto& [path, name] :
       {std::pair<const std::string&, const char*>{folder.transformer, "transformer"},
        {folder.video_vae, "video VAE"},
        {folder.audio_vae, "audio VAE"}}) {
    if (!path.empty()) continue;
    return NotFound({.what = std::string("the model has no ") + name, .where = model_dir});
  }
  H3RT_ASSIGN_OR_RETURN(dit_config, ReadConfig<DitConfig>(folder.transformer, [this] {
                          return OpenTransformer(folder.transformer, options.load);
                        }));
  H3RT_ASSIGN_OR_RETURN(video_config, ReadConfig<VideoVaeConfig>(folder.video_vae, [this] {
                          return OpenVideoVae(folder.video_vae);
                        }));
  H3RT_ASSIGN_OR_RETURN(audio_config, ReadConfig<AudioVaeConfig>(folder.audio_vae, [this] {
                          return OpenAudioVae(folder.audio_vae);
                        }));
  H3RT_RETURN_IF_ERROR(CheckParts());
  H3RT_ASSIGN_OR_RETURN(const ChecksumReport sums, VerifyChecksums(model_dir, kVerifiedBytes));
  H3RT_RETURN_IF_ERROR(sums.ToStatus(model_dir));
  H3RT_ASSIGN_OR_RETURN(defaults, ReadDefaults(folder.root));
  H3RT_ASSIGN_OR_RETURN(hash, ModelHash(folder));
  H3RT_ASSIGN_OR_RETURN(sizes, MeasureWeights(folder.transformer, folder.video_vae,
                                              folder.audio_vae, options.load.dequantized));
  return ReadConditioner();
}

// The three networks have to fit each other.
absl::Status Session::Impl::CheckParts() const {
  if (dit_config.in_channels != video_config.latent_channels) {
    return InvalidArgument({.what = "latent channels of transformer and video VAE",
                            .got = std::to_string(dit_config.in_channels) + " and " +
                                   std::to_string(video_config.latent_channels),
                            .wanted = "the same",
                            .where = folder.root});
  }
  if (dit_config.audio_in_channels != audio_config.latent_channels) {
    return InvalidArgument({.what = "latent channels of transformer and audio VAE",
                            .got = std::to_string(dit_config.audio_in_channels) + " and " +
                                   std::to_string(audio_config.latent_channels),
                            .wanted = "the same",
                            .where = folder.root});
  }
  if (video_config.spatial_factor() != 16 || video_config.temporal_factor() != 4) {
    return InvalidArgument({.what = "compression of the video VAE",
                            .got = std::to_string(video_config.spatial_factor()) + " and " +
                                   std::to_string(video_config.temporal_factor()),
                            .wanted = "16 in space and 4 in time",
                            .where = folder.video_vae});
  }
  if (audio_config.hop() != 800 || audio_config.sampling_rate != 32000) {
    return InvalidArgument({.what = "samples a latent and sampling rate of the audio VAE",
                            .got = std::to_string(audio_config.hop()) + " and " +
                                   std::to_string(audio_config.sampling_rate),
                            .wanted = "800 and 32000",
                            .where = folder.audio_vae});
  }
  return absl::OkStatus();
}

// A model without a conditioner, or with one that is not built, can still be driven by embeddings.
absl::Status Session::Impl::ReadConditioner() {
  const std::string& path = folder.text_encoder_config;
  if (path.empty()) {
    conditioner_status = FailedPrecondition({.what = "the model has no text conditioner",
                                             .wanted = "--prompt-embeds",
                                             .where = folder.root});
    return absl::OkStatus();
  }
  H3RT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  H3RT_ASSIGN_OR_RETURN(const ConditionerConfig config, ConditionerConfig::FromJson(json, path));
  absl::StatusOr<std::unique_ptr<Conditioner>> made = MakeConditioner(config);
  if (!made.ok()) {
    conditioner_status = WithContext(made.status(), path);
    return absl::OkStatus();
  }
  if ((*made)->text_dim() != dit_config.text_dim) {
    return InvalidArgument({.what = "width of the text conditioner",
                            .got = std::to_string((*made)->text_dim()),
                            .wanted = std::to_string(dit_config.text_dim) + " of the transformer",
                            .where = path});
  }
  conditioner = std::move(made).value();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const std::string& model_dir,
                                                       const SessionOptions& options) {
  const int threads = options.threads > 0 ? options.threads : ThreadPool::HardwareThreads();
  auto impl = std::make_unique<Impl>(threads);
  impl->options = options;
  H3RT_RETURN_IF_ERROR(impl->ReadFolder(model_dir));
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

}  // namespace h3rt
