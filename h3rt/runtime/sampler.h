// The denoising loop: two schedules stepped by the same forwards over one packed sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/model/dit/dit.h"
#include "h3rt/model/packing/packing.h"
#include "h3rt/model/schedule/schedule.h"
#include "h3rt/num/torch_rng.h"
#include "h3rt/runtime/progress.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

struct SamplerShape {
  int64_t video_channels = 0;
  int64_t audio_channels = 0;
  int64_t latent_frames = 0;
  int64_t latent_height = 0;
  int64_t latent_width = 0;
  int64_t audio_latents = 0;
};

// The state that the loop moves: rows of both modalities, condition rows in front (never written).
class SamplerState {
 public:
  // Draws what is not injected, in the public pipeline's order from one generator: noise of each
  // condition with its own shape, then the target video [c, t, h, w], then the audio rows
  // [2 a, c]. An injected tensor skips its draw, which shifts the later ones (C7). `conditions` are
  // normalised latents [c, 1, h, w]; the noise is mixed into them here.
  static absl::StatusOr<SamplerState> Draw(const SamplerShape& shape,
                                           const std::vector<Tensor>& conditions,
                                           const Tensor& latents, const Tensor& audio_latents,
                                           TorchGenerator& generator);

  // From rows as the transformer reads them, [n, 4 c] and [2 a, c]; all video rows are targets. For
  // comparison with recorded trajectories: the latents' shapes are not known, so the two functions
  // below fail.
  static absl::StatusOr<SamplerState> FromRows(Tensor video, Tensor audio);

  absl::StatusOr<Tensor> VideoLatents() const;       // [c, t, h, w], target only
  absl::StatusOr<Tensor> AudioLatents() const;       // [2, c, a]
  TensorView video_rows() { return video_.view(); }  // [conditions + target, 4 c]
  TensorView audio_rows() { return audio_.view(); }  // [2 a, c]
  TensorView target_video_rows();

 private:
  SamplerShape shape_;
  int64_t condition_rows_ = 0;
  Tensor video_;
  Tensor audio_;
};

// The distinct timesteps of all forwards of a run, ascending.
std::vector<float> DistinctTimesteps(const Schedule& video, const Schedule& audio,
                                     bool has_conditions);

// The timestep of condition rows: max(t_video, 0.999).
float ConditionTimestep(float t_video);

struct SamplerInputs {
  const Dit* dit = nullptr;
  const PackedLayout* layout = nullptr;
  ConstTensorView text;  // [n, text_dim] F32
  const Schedule* video_schedule = nullptr;
  const Schedule* audio_schedule = nullptr;
  Precision precision = Precision::kFp32;
  std::function<void()> adaln_done;  // called when the AdaLN weights are not needed any more
  // Called after every step with its index; for comparison with recorded trajectories.
  std::function<void(int64_t step, const RowTimesteps& rows)> after_step;
};

// All forwards; `state` moves from noise to latents. kInvalidArgument when the two schedules differ
// in length. Stages reported: "adaln", "denoise".
absl::Status RunSampler(const SamplerInputs& inputs, SamplerState& state,
                        const ExecContext& context, const ProgressSink& progress);

}  // namespace h3rt
