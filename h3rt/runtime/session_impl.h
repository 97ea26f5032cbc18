// What a session holds; for the files of session_*.cc alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "h3rt/io/model_folder.h"
#include "h3rt/model/audio_vae/audio_vae.h"
#include "h3rt/model/text/conditioner.h"
#include "h3rt/num/torch_rng.h"
#include "h3rt/runtime/session.h"
#include "h3rt/runtime/weight_sizes.h"

namespace h3rt {

struct LoadedDit {
  TransformerCheckpoint checkpoint;
  std::optional<Dit> model;
};
struct LoadedVideoVae {
  VideoVaeCheckpoint checkpoint;
  std::optional<VideoVae> model;
};
struct LoadedAudioVae {
  AudioVaeCheckpoint checkpoint;
  std::optional<AudioVae> model;
};

// The parts of a clip's geometry that every stage needs.
struct Geometry {
  int64_t latent_frames = 0;
  int64_t latent_height = 0;
  int64_t latent_width = 0;
  int64_t audio_latents = 0;
  int64_t keyframes = 0;
};

struct Session::Impl {
  explicit Impl(int threads) : pool(threads) {}

  SessionOptions options;
  ModelFolder folder;
  std::string hash;
  ModelDefaults defaults;
  DitConfig dit_config;
  VideoVaeConfig video_config;
  AudioVaeConfig audio_config;
  std::unique_ptr<Conditioner> conditioner;  // null: only prompt_embeds can be used
  absl::Status conditioner_status;
  ModelWeightSizes sizes;
  ThreadPool pool;

  // Opened by the first stage that needs them and kept.
  std::unique_ptr<LoadedDit> dit;
  std::unique_ptr<LoadedVideoVae> video_vae;
  std::unique_ptr<LoadedAudioVae> audio_vae;

  absl::Status ReadFolder(const std::string& model_dir);
  absl::Status CheckParts() const;
  absl::Status ReadConditioner();
  uint64_t OwnedBytes() const;  // that loading made
  absl::StatusOr<const Dit*> LoadDit();
  absl::StatusOr<const VideoVae*> LoadVideoVae();
  absl::StatusOr<const AudioVae*> LoadAudioVae();
  absl::StatusOr<int64_t> TextRows(const GenerateRequest& request, const Geometry& geometry) const;
  absl::StatusOr<ConditionerOutput> EncodePrompt(const GenerateRequest& request,
                                                 const Geometry& geometry,
                                                 const ExecContext& context) const;
  absl::Status Denoise(const GenerateRequest& request, const Geometry& geometry,
                       const std::vector<Tensor>& conditions, TorchGenerator& generator,
                       const ExecContext& context, const ProgressSink& progress,
                       GenerateResult& result);
  absl::Status Decode(const ExecContext& context, const ProgressSink& progress,
                      GenerateResult& result);
  absl::StatusOr<GenerateResult> Generate(const Session& session, const GenerateRequest& request,
                                          const ProgressSink& progress, const CancelToken* cancel);
};

}  // namespace h3rt
