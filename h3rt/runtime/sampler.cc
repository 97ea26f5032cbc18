#include "h3rt/runtime/sampler.h"

#include <algorithm>
#include <set>
#include <utility>

namespace h3rt {

float ConditionTimestep(float t_video) { return std::max(t_video, 0.999f); }

absl::StatusOr<SamplerState> SamplerState::Draw(const SamplerShape& shape,
                                                const std::vector<Tensor>& conditions,
                                                const Tensor& latents, const Tensor& audio_latents,
                                                TorchGenerator& generator) {
  const int64_t c = shape.video_channels;
  const int64_t cells = (shape.latent_height / 2) * (shape.latent_width / 2);
  const auto condition_count = static_cast<int64_t>(conditions.size());
  SamplerState state;
  state.shape_ = shape;
  state.condition_rows_ = condition_count * cells;
  H3RT_ASSIGN_OR_RETURN(
      state.video_,
      Tensor::Create(DType::kF32, {(condition_count + shape.latent_frames) * cells, 4 * c}));
  H3RT_ASSIGN_OR_RETURN(
      state.audio_, Tensor::Create(DType::kF32, {2 * shape.audio_latents, shape.audio_channels}));
  const auto rows_of = [&](int64_t first_row, int64_t rows) {
    return std::span<float>(state.video_.as<float>() + first_row * 4 * c,
                            static_cast<size_t>(rows * 4 * c));
  };

  std::vector<float> noise(static_cast<size_t>(c * shape.latent_height * shape.latent_width));
  for (int64_t i = 0; i < condition_count; ++i) {
    H3RT_ASSIGN_OR_RETURN(Tensor mixed, Tensor::Copy(conditions[static_cast<size_t>(i)].view()));
    if (mixed.elements() != static_cast<int64_t>(noise.size())) {
      return InvalidArgument({.what = "condition latents",
                              .got = mixed.shape().ToString(),
                              .wanted = "the shape of one latent frame of the clip"});
    }
    const std::span<float> z(mixed.as<float>(), noise.size());
    generator.Randn(noise);
    MixConditionNoise(noise, z);
    Patchify(z, c, 1, shape.latent_height, shape.latent_width, rows_of(i * cells, cells));
  }

  const Shape video_shape = {c, shape.latent_frames, shape.latent_height, shape.latent_width};
  Tensor drawn;
  if (latents.empty()) {
    H3RT_ASSIGN_OR_RETURN(drawn, Tensor::Create(DType::kF32, video_shape));
    generator.Randn({drawn.as<float>(), static_cast<size_t>(drawn.elements())});
  }
  const Tensor& start = latents.empty() ? drawn : latents;
  Patchify({start.as<float>(), static_cast<size_t>(start.elements())}, c, shape.latent_frames,
           shape.latent_height, shape.latent_width,
           rows_of(state.condition_rows_, shape.latent_frames * cells));

  const std::span<float> audio(state.audio_.as<float>(),
                               static_cast<size_t>(state.audio_.elements()));
  if (audio_latents.empty()) {
    generator.Randn(audio);
  } else {
    AudioLatentsToRows({audio_latents.as<float>(), audio.size()}, shape.audio_channels,
                       shape.audio_latents, audio);
  }
  return state;
}

absl::StatusOr<SamplerState> SamplerState::FromRows(Tensor video, Tensor audio) {
  for (const Tensor* rows : {&video, &audio}) {
    if (rows->dtype() == DType::kF32 && rows->shape().rank() == 2) continue;
    return InvalidArgument(
        {.what = "rows of the sampler's state",
         .got = std::string(NameOf(rows->dtype())) + " " + rows->shape().ToString(),
         .wanted = "F32 of rank 2"});
  }
  SamplerState state;
  state.video_ = std::move(video);
  state.audio_ = std::move(audio);
  return state;
}

TensorView SamplerState::target_video_rows() {
  return video_.view().Slice(0, condition_rows_, video_.shape()[0]);
}

absl::StatusOr<Tensor> SamplerState::VideoLatents() const {
  const int64_t c = shape_.video_channels;
  if (c == 0)
    return Internal({.what = "the state was made from rows; its latent shape is unknown"});
  H3RT_ASSIGN_OR_RETURN(Tensor out,
                        Tensor::Create(DType::kF32, {c, shape_.latent_frames, shape_.latent_height,
                                                     shape_.latent_width}));
  Unpatchify({video_.as<float>() + condition_rows_ * 4 * c, static_cast<size_t>(out.elements())}, c,
             shape_.latent_frames, shape_.latent_height, shape_.latent_width,
             {out.as<float>(), static_cast<size_t>(out.elements())});
  return out;
}

absl::StatusOr<Tensor> SamplerState::AudioLatents() const {
  if (shape_.audio_channels == 0) {
    return Internal({.what = "the state was made from rows; its latent shape is unknown"});
  }
  H3RT_ASSIGN_OR_RETURN(
      Tensor out, Tensor::Create(DType::kF32, {2, shape_.audio_channels, shape_.audio_latents}));
  AudioRowsToLatents({audio_.as<float>(), static_cast<size_t>(audio_.elements())},
                     shape_.audio_channels, shape_.audio_latents,
                     {out.as<float>(), static_cast<size_t>(out.elements())});
  return out;
}

std::vector<float> DistinctTimesteps(const Schedule& video, const Schedule& audio,
                                     bool has_conditions) {
  std::set<float> distinct;
  for (const float t : video.timesteps) {
    distinct.insert(t);
    if (has_conditions) distinct.insert(ConditionTimestep(t));
  }
  distinct.insert(audio.timesteps.begin(), audio.timesteps.end());
  return {distinct.begin(), distinct.end()};
}

absl::Status RunSampler(const SamplerInputs& inputs, SamplerState& state,
                        const ExecContext& context, const ProgressSink& progress) {
  const Schedule& video_schedule = *inputs.video_schedule;
  const Schedule& audio_schedule = *inputs.audio_schedule;
  const PackedLayout& layout = *inputs.layout;
  if (video_schedule.forwards() != audio_schedule.forwards()) {
    return InvalidArgument({.what = "lengths of the two schedules",
                            .got = std::to_string(video_schedule.forwards()) + " and " +
                                   std::to_string(audio_schedule.forwards()),
                            .wanted = "the same number of forwards"});
  }
  ProgressMeter adaln_meter("adaln", 1, progress);
  const std::vector<float> distinct =
      DistinctTimesteps(video_schedule, audio_schedule, layout.condition_video_rows > 0);
  H3RT_ASSIGN_OR_RETURN(const AdaLnTable adaln,
                        inputs.dit->MakeAdaLn(distinct, inputs.precision, context));
  if (inputs.adaln_done) inputs.adaln_done();
  adaln_meter.Step(1);

  const DitSequence sequence = {.rows = layout.rows,
                                .position_ids = layout.position_ids,
                                .token_tags = layout.token_tags,
                                .text_indices = layout.text_indices,
                                .audio_indices = layout.audio_indices,
                                .video_indices = layout.video_indices};
  ProgressMeter meter("denoise", video_schedule.forwards(), progress);
  H3RT_ASSIGN_OR_RETURN(DitRequest request,
                        inputs.dit->Prepare(sequence, inputs.text, inputs.precision, context));
  const TensorView video_target = state.target_video_rows();
  const TensorView audio_target = state.audio_rows();
  H3RT_ASSIGN_OR_RETURN(Tensor video_velocity, Tensor::Create(DType::kF32, video_target.shape()));
  H3RT_ASSIGN_OR_RETURN(Tensor audio_velocity, Tensor::Create(DType::kF32, audio_target.shape()));
  for (int64_t step = 0; step < video_schedule.forwards(); ++step) {
    RowTimesteps rows =
        BuildRowTimesteps(layout, video_schedule.timesteps[static_cast<size_t>(step)],
                          audio_schedule.timesteps[static_cast<size_t>(step)]);
    std::vector<int32_t> table_index;
    for (const float t : rows.timesteps) {
      H3RT_ASSIGN_OR_RETURN(const int32_t index, adaln.Find(t));
      table_index.push_back(index);
    }
    std::vector<int32_t> row_timestep(rows.index.size());
    std::transform(rows.index.begin(), rows.index.end(), row_timestep.begin(),
                   [&](int32_t i) { return table_index[static_cast<size_t>(i)]; });
    const absl::Status status =
        inputs.dit->Forward(request, adaln, row_timestep, state.video_rows(), state.audio_rows(),
                            video_velocity.view(), audio_velocity.view(), context);
    H3RT_RETURN_IF_ERROR(WithContext(status, "denoise step " + std::to_string(step + 1) + " of " +
                                                 std::to_string(video_schedule.forwards())));
    EulerStep(video_schedule, step,
              {video_velocity.as<float>(), static_cast<size_t>(video_velocity.elements())},
              {video_target.as<float>(), static_cast<size_t>(video_target.elements())});
    EulerStep(audio_schedule, step,
              {audio_velocity.as<float>(), static_cast<size_t>(audio_velocity.elements())},
              {audio_target.as<float>(), static_cast<size_t>(audio_target.elements())});
    if (inputs.after_step) inputs.after_step(step, rows);
    meter.Step(step + 1);
  }
  return absl::OkStatus();
}

}  // namespace h3rt
