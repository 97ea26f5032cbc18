// BigVGAN decoder of one channel. Source: spec h3 section 7, C8.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/model/audio_vae/layers.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::audio_vae {

class WaveDecoder {
 public:
  // Equal buffers, each large enough for any activation: the stage's input, the sum over its
  // blocks, and a block's residual stream, activation and convolution.
  using Scratch = std::array<Tensor, 5>;

  static absl::StatusOr<WaveDecoder> Create(const AudioVaeConfig& config,
                                            const WeightStore& weights);
  static absl::StatusOr<Scratch> MakeScratch(const AudioVaeConfig& config, int64_t latents);
  // Of a Scratch and of the ops on `threads` threads.
  static uint64_t ScratchBytes(const AudioVaeConfig& config, int64_t latents, int threads);

  // z [latent channels, a] contiguous -> samples [1, a * hop], clamped to [-1, 1].
  absl::Status Run(const ConstTensorView& z, Scratch& scratch, const TensorView& samples,
                   const ExecContext& context) const;

 private:
  struct Activation {
    ConstTensorView alpha, beta, up, down;
  };
  struct Residual {
    Conv1dWeights conv1, conv2;
    Activation act1, act2;
    int64_t dilation = 1;
  };
  struct AmpBlock {
    std::vector<Residual> residuals;
    int64_t kernel = 3;
  };
  struct Stage {
    Conv1dWeights up;
    int64_t rate = 1;
    int64_t kernel = 1;
    std::vector<AmpBlock> blocks;
  };
  WaveDecoder() = default;
  static absl::StatusOr<Activation> LoadActivation(const WeightStore& weights,
                                                   const std::string& at, int64_t channels);
  static absl::StatusOr<AmpBlock> LoadBlock(const AudioVaeConfig& config,
                                            const WeightStore& weights, size_t stage, size_t kind);
  static absl::Status Act(const Activation& act, const ConstTensorView& x, const TensorView& y,
                          const ExecContext& context);
  static absl::Status RunBlock(const AmpBlock& block, int64_t channels, int64_t n, Scratch& scratch,
                               const ExecContext& context);
  static absl::Status RunStage(const Stage& stage, int64_t channels, int64_t n, Scratch& scratch,
                               const ExecContext& context);

  AudioVaeConfig config_;
  Conv1dWeights in_proj_, conv_pre_, conv_post_;
  Activation post_;
  std::vector<Stage> stages_;
};

}  // namespace h3rt::audio_vae
