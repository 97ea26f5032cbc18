#include "h3rt/runtime/session.h"

#include <cmath>
#include <utility>

#include "h3rt/base/exceptions.h"
#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/model/packing/packing.h"
#include "h3rt/model/schedule/schedule.h"
#include "h3rt/runtime/keyframes.h"
#include "h3rt/runtime/memory.h"
#include "h3rt/runtime/sampler.h"
#include "h3rt/runtime/session_impl.h"

namespace h3rt {
namespace {

// Sizes that would only ever be a mistake, far above anything the model was made for.
constexpr int64_t kMaxEdge = 16384;
constexpr int64_t kMaxClipFrames = 17 * 1000 + 5;
constexpr int64_t kMaxForwards = 10000;

absl::Status CheckFinite(const Tensor& tensor, const char* what) {
  const float* x = tensor.as<float>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (std::isfinite(x[i])) continue;
    return InvalidArgument({.what = std::string(what) + " has a value that is not finite",
                            .got = std::to_string(x[i]) + " at element " + std::to_string(i)});
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const Tensor& tensor, const Shape& wanted, const char* what) {
  if (tensor.empty()) return absl::OkStatus();
  if (tensor.dtype() != DType::kF32 || tensor.shape() != wanted) {
    return InvalidArgument(
        {.what = what,
         .got = std::string(NameOf(tensor.dtype())) + " " + tensor.shape().ToString(),
         .wanted = "F32 " + wanted.ToString()});
  }
  return CheckFinite(tensor, what);
}

absl::Status CheckRange(int64_t value, int64_t lowest, int64_t highest, const char* what) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return InvalidArgument({.what = what,
                          .got = std::to_string(value),
                          .wanted = std::to_string(lowest) + " to " + std::to_string(highest)});
}

Geometry GeometryOf(const GenerateRequest& request, const VideoVaeConfig& vae) {
  return {.latent_frames = LatentFrames(request.frames),
          .latent_height = request.height / vae.spatial_factor(),
          .latent_width = request.width / vae.spatial_factor(),
          .audio_latents = AudioLatents(request.frames),
          .keyframes = request.forwards == 0  // only decodes
                           ? 0
                           : static_cast<int64_t>(!request.first_frame.empty()) +
                                 static_cast<int64_t>(!request.last_frame.empty())};
}

ConditionerInput InputOf(const GenerateRequest& request, const Geometry& geometry) {
  return {.prompt = request.prompt,
          .keyframes = geometry.keyframes,
          .cells_high = geometry.latent_height / 2,
          .cells_wide = geometry.latent_width / 2};
}

}  // namespace

absl::StatusOr<const Dit*> Session::Impl::LoadDit() {
  if (dit == nullptr) {
    auto loaded = std::make_unique<LoadedDit>();
    H3RT_ASSIGN_OR_RETURN(loaded->checkpoint, OpenTransformer(folder.transformer, options.load));
    H3RT_ASSIGN_OR_RETURN(Dit model,
                          Dit::Create(loaded->checkpoint.config, loaded->checkpoint.weights));
    loaded->model.emplace(std::move(model));
    dit = std::move(loaded);
  }
  return &*dit->model;
}

absl::StatusOr<const VideoVae*> Session::Impl::LoadVideoVae() {
  if (video_vae == nullptr) {
    auto loaded = std::make_unique<LoadedVideoVae>();
    H3RT_ASSIGN_OR_RETURN(loaded->checkpoint, OpenVideoVae(folder.video_vae));
    H3RT_ASSIGN_OR_RETURN(VideoVae model,
                          VideoVae::Create(loaded->checkpoint.config, loaded->checkpoint.weights));
    loaded->model.emplace(std::move(model));
    video_vae = std::move(loaded);
  }
  return &*video_vae->model;
}

absl::StatusOr<const AudioVae*> Session::Impl::LoadAudioVae() {
  if (audio_vae == nullptr) {
    auto loaded = std::make_unique<LoadedAudioVae>();
    H3RT_ASSIGN_OR_RETURN(loaded->checkpoint, OpenAudioVae(folder.audio_vae));
    H3RT_ASSIGN_OR_RETURN(AudioVae model,
                          AudioVae::Create(loaded->checkpoint.config, loaded->checkpoint.weights));
    loaded->model.emplace(std::move(model));
    audio_vae = std::move(loaded);
  }
  return &*audio_vae->model;
}

uint64_t Session::Impl::OwnedBytes() const {
  return (dit ? dit->checkpoint.weights.owned_bytes() : 0) +
         (video_vae ? video_vae->checkpoint.weights.owned_bytes() : 0) +
         (audio_vae ? audio_vae->checkpoint.weights.owned_bytes() : 0);
}

absl::StatusOr<int64_t> Session::Impl::TextRows(const GenerateRequest& request,
                                                const Geometry& geometry) const {
  if (request.forwards == 0) return 0;
  if (!request.prompt_embeds.empty()) return request.prompt_embeds.shape()[0];
  if (conditioner == nullptr) return conditioner_status;
  return conditioner->CountRows(InputOf(request, geometry));
}

absl::StatusOr<ConditionerOutput> Session::Impl::EncodePrompt(const GenerateRequest& request,
                                                              const Geometry& geometry,
                                                              const ExecContext& context) const {
  if (!request.prompt_embeds.empty()) {
    ConditionerOutput output;
    H3RT_ASSIGN_OR_RETURN(output.embeds, Tensor::Copy(request.prompt_embeds.view()));
    output.tags = request.prompt_tags;
    if (output.tags.empty()) {
      output.tags.assign(static_cast<size_t>(output.embeds.shape()[0]),
                         static_cast<int32_t>(RowTag::kText));
    }
    return output;
  }
  if (conditioner == nullptr) return conditioner_status;
  return conditioner->Encode(InputOf(request, geometry), context);
}

absl::Status Session::Impl::Denoise(const GenerateRequest& request, const Geometry& geometry,
                                    const std::vector<Tensor>& conditions,
                                    TorchGenerator& generator, const ExecContext& context,
                                    const ProgressSink& progress, GenerateResult& result) {
  if (request.forwards == 0) {  // Check has seen that both are there
    H3RT_ASSIGN_OR_RETURN(result.latents, Tensor::Copy(request.latents.view()));
    H3RT_ASSIGN_OR_RETURN(result.audio_latents, Tensor::Copy(request.audio_latents.view()));
    return absl::OkStatus();
  }
  H3RT_ASSIGN_OR_RETURN(ConditionerOutput text, EncodePrompt(request, geometry, context));
  std::vector<RowTag> tags;
  tags.reserve(text.tags.size());
  for (const int32_t tag : text.tags) tags.push_back(static_cast<RowTag>(tag));
  H3RT_ASSIGN_OR_RETURN(const PackedLayout layout,
                        BuildLayout({.text_rows = text.embeds.shape()[0],
                                     .text_tags = tags,
                                     .latent_frames = geometry.latent_frames,
                                     .latent_height = geometry.latent_height,
                                     .latent_width = geometry.latent_width,
                                     .audio_latents = geometry.audio_latents,
                                     .first_frame = !request.first_frame.empty(),
                                     .last_frame = !request.last_frame.empty()}));
  H3RT_ASSIGN_OR_RETURN(
      SamplerState state,
      SamplerState::Draw({.video_channels = dit_config.in_channels,
                          .audio_channels = dit_config.audio_in_channels,
                          .latent_frames = geometry.latent_frames,
                          .latent_height = geometry.latent_height,
                          .latent_width = geometry.latent_width,
                          .audio_latents = geometry.audio_latents},
                         conditions, request.latents, request.audio_latents, generator));
  H3RT_ASSIGN_OR_RETURN(const Dit* model, LoadDit());
  H3RT_ASSIGN_OR_RETURN(const Schedule video_schedule,
                        MakeSchedule(request.forwards, folder.scheduler.shift));
  H3RT_ASSIGN_OR_RETURN(const Schedule audio_schedule,
                        MakeSchedule(request.forwards, folder.audio_scheduler.shift));
  const SamplerInputs inputs = {.dit = model,
                                .layout = &layout,
                                .text = text.embeds.view(),
                                .video_schedule = &video_schedule,
                                .audio_schedule = &audio_schedule,
                                .precision = options.precision,
                                .adaln_done = [this] { dit->checkpoint.weights.ReleasePages(); },
                                .after_step = {}};
  H3RT_RETURN_IF_ERROR(RunSampler(inputs, state, context, progress));
  dit->checkpoint.weights.ReleasePages();
  H3RT_ASSIGN_OR_RETURN(result.latents, state.VideoLatents());
  H3RT_ASSIGN_OR_RETURN(result.audio_latents, state.AudioLatents());
  return absl::OkStatus();
}

absl::Status Session::Impl::Decode(const ExecContext& context, const ProgressSink& progress,
                                   GenerateResult& result) {
  H3RT_ASSIGN_OR_RETURN(const VideoVae* video, LoadVideoVae());
  {
    H3RT_ASSIGN_OR_RETURN(Tensor z, Tensor::Copy(result.latents.view()));
    video->Denormalize(z.view());
    std::optional<ProgressMeter> meter;
    const VaeProgress tiles = [&](int64_t done, int64_t total) {
      if (!meter) meter.emplace("decode video", total, progress);
      meter->Step(done);
      return absl::OkStatus();
    };
    H3RT_ASSIGN_OR_RETURN(result.frames, video->Decode(z.view(), options.tiling, context, tiles));
  }
  DenormalizePixels(result.frames.view());
  video_vae->checkpoint.weights.ReleasePages();
  ReturnFreedMemory();

  ProgressMeter meter("decode audio", 1, progress);
  H3RT_ASSIGN_OR_RETURN(const AudioVae* audio, LoadAudioVae());
  H3RT_ASSIGN_OR_RETURN(Tensor z, Tensor::Copy(result.audio_latents.view()));
  audio->Denormalize(z.view());
  H3RT_ASSIGN_OR_RETURN(result.samples, audio->Decode(z.view(), context));
  audio_vae->checkpoint.weights.ReleasePages();
  ReturnFreedMemory();
  meter.Step(1);
  return absl::OkStatus();
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

const DitConfig& Session::dit_config() const { return impl_->dit_config; }
const VideoVaeConfig& Session::video_vae_config() const { return impl_->video_config; }
const AudioVaeConfig& Session::audio_vae_config() const { return impl_->audio_config; }
const ModelDefaults& Session::defaults() const { return impl_->defaults; }
const std::string& Session::model_hash() const { return impl_->hash; }
int Session::threads() const { return impl_->pool.threads(); }

absl::Status Session::Check(const GenerateRequest& request) const {
  H3RT_RETURN_IF_ERROR(ValidateTiling(impl_->video_config, impl_->options.tiling));
  H3RT_RETURN_IF_ERROR(CheckCanvas(request.width, request.height));
  H3RT_RETURN_IF_ERROR(CheckFrames(request.frames));
  H3RT_RETURN_IF_ERROR(CheckRange(request.width, 32, kMaxEdge, "width"));
  H3RT_RETURN_IF_ERROR(CheckRange(request.height, 32, kMaxEdge, "height"));
  H3RT_RETURN_IF_ERROR(CheckRange(request.frames, 5, kMaxClipFrames, "frames"));
  if (request.forwards == 0 && request.latents.empty() != request.audio_latents.empty()) {
    return InvalidArgument({.what = "decoding without a forward",
                            .got = request.latents.empty() ? "no latents" : "no audio_latents",
                            .wanted = "both of latents and audio_latents"});
  }
  const bool decode_only = !request.latents.empty() && !request.audio_latents.empty();
  H3RT_RETURN_IF_ERROR(CheckRange(request.forwards, decode_only ? 0 : 1, kMaxForwards, "forwards"));
  const Geometry g = GeometryOf(request, impl_->video_config);
  H3RT_RETURN_IF_ERROR(
      CheckTensor(request.latents,
                  {impl_->dit_config.in_channels, g.latent_frames, g.latent_height, g.latent_width},
                  "injected latents"));
  H3RT_RETURN_IF_ERROR(CheckTensor(request.audio_latents,
                                   {2, impl_->dit_config.audio_in_channels, g.audio_latents},
                                   "injected audio_latents"));
  const Shape image = {3, 1, request.height, request.width};
  H3RT_RETURN_IF_ERROR(CheckTensor(request.first_frame, image, "first frame"));
  H3RT_RETURN_IF_ERROR(CheckTensor(request.last_frame, image, "last frame"));
  if (request.prompt_embeds.empty()) return absl::OkStatus();
  const Shape& embeds = request.prompt_embeds.shape();
  if (embeds.rank() != 2 || embeds[0] < 1 || embeds[1] != impl_->dit_config.text_dim) {
    return InvalidArgument(
        {.what = "prompt_embeds",
         .got = embeds.ToString(),
         .wanted = "[n, " + std::to_string(impl_->dit_config.text_dim) + "] with n of 1 or more"});
  }
  if (request.prompt_tags.empty() && g.keyframes > 0) {
    // Embeddings made with keyframes hold vision blocks, whose rows are modulated as video.
    return InvalidArgument({.what = "prompt_embeds with keyframes but without token_tags",
                            .wanted = "token_tags [n], 0 for the rows of vision blocks"});
  }
  if (!request.prompt_tags.empty() &&
      static_cast<int64_t>(request.prompt_tags.size()) != embeds[0]) {
    return InvalidArgument({.what = "number of prompt tags",
                            .got = std::to_string(request.prompt_tags.size()),
                            .wanted = std::to_string(embeds[0])});
  }
  return CheckTensor(request.prompt_embeds, embeds, "prompt_embeds");
}

absl::StatusOr<MemoryPlan> Session::Plan(const GenerateRequest& request) const {
  const Geometry geometry = GeometryOf(request, impl_->video_config);
  H3RT_ASSIGN_OR_RETURN(const int64_t text_rows, impl_->TextRows(request, geometry));
  int64_t distinct = 0;
  if (request.forwards > 0) {
    H3RT_ASSIGN_OR_RETURN(const Schedule video,
                          MakeSchedule(request.forwards, impl_->folder.scheduler.shift));
    H3RT_ASSIGN_OR_RETURN(const Schedule audio,
                          MakeSchedule(request.forwards, impl_->folder.audio_scheduler.shift));
    distinct = static_cast<int64_t>(DistinctTimesteps(video, audio, geometry.keyframes > 0).size());
  }
  const ModelWeightSizes& sizes = impl_->sizes;
  return MakePlan({.dit = impl_->dit_config,
                   .video_vae = impl_->video_config,
                   .audio_vae = impl_->audio_config,
                   .dit_adaln = sizes.dit_adaln,
                   .dit_rest = sizes.dit_rest,
                   .vae_encoder = sizes.vae_encoder,
                   .vae_decoder = sizes.vae_decoder,
                   .audio_decoder = sizes.audio_decoder,
                   .tiling = impl_->options.tiling,
                   .width = request.width,
                   .height = request.height,
                   .frames = request.frames,
                   .forwards = request.forwards,
                   .text_rows = text_rows,
                   .distinct_timesteps = distinct,
                   .keyframes = geometry.keyframes,
                   .threads = impl_->pool.threads(),
                   .ffmpeg = FfmpegApi().ok()});
}

absl::StatusOr<GenerateResult> Session::Generate(const GenerateRequest& request,
                                                 const ProgressSink& progress,
                                                 const CancelToken* cancel) {
  // Memory can run out in any container of any stage; the session outlives the job.
  try {
    return impl_->Generate(*this, request, progress, cancel);
  } catch (...) {
    return StatusOfException("generate");
  }
}

absl::StatusOr<GenerateResult> Session::Impl::Generate(const Session& session,
                                                       const GenerateRequest& request,
                                                       const ProgressSink& progress,
                                                       const CancelToken* cancel) {
  H3RT_RETURN_IF_ERROR(session.Check(request));
  H3RT_ASSIGN_OR_RETURN(const MemoryPlan plan, session.Plan(request));
  H3RT_ASSIGN_OR_RETURN(const uint64_t available, AvailableMemory());
  // What earlier requests loaded is in the plan again and not in what is available.
  H3RT_RETURN_IF_ERROR(plan.CheckFits(available + OwnedBytes()));

  const ExecContext context = {.pool = &pool, .cancel = cancel, .impls = &options.impls};
  const Geometry geometry = GeometryOf(request, video_config);
  GenerateResult result;
  StageClock clock(progress, result.stages);
  std::vector<Tensor> conditions;
  if (geometry.keyframes > 0) {
    H3RT_ASSIGN_OR_RETURN(const VideoVae* vae, LoadVideoVae());
    ProgressMeter meter("keyframes", geometry.keyframes, clock.sink());
    for (const Tensor* image : {&request.first_frame, &request.last_frame}) {
      if (image->empty()) continue;
      H3RT_ASSIGN_OR_RETURN(Tensor latents, EncodeKeyframe(*vae, *image, options.tiling, context));
      conditions.push_back(std::move(latents));
      meter.Step(static_cast<int64_t>(conditions.size()));
    }
    video_vae->checkpoint.weights.ReleasePages();
  }
  TorchGenerator generator(request.seed);
  H3RT_RETURN_IF_ERROR(
      Denoise(request, geometry, conditions, generator, context, clock.sink(), result));
  conditions.clear();
  ReturnFreedMemory();
  H3RT_RETURN_IF_ERROR(Decode(context, clock.sink(), result));
  clock.Finish();
  return result;
}

}  // namespace h3rt
