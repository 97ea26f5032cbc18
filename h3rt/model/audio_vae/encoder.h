// DAC encoder of one channel, with the block that turns its features into the posterior mean.
// Source: spec h3 section 7, C8.
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

class WaveEncoder {
 public:
  // Buffers of the convolutions (activation, snake, convolution) and of the block on features.
  struct Scratch {
    std::array<Tensor, 3> wave;
    Tensor tokens;  // [a, latent dim]: x
    Tensor normed;  // [a, latent dim]
    Tensor qkv;     // [3, a, latent dim]
    Tensor small;   // [5, a, max(2 latent channels, head dim)]
  };

  static absl::StatusOr<WaveEncoder> Create(const AudioVaeConfig& config,
                                            const WeightStore& weights);
  static absl::StatusOr<Scratch> MakeScratch(const AudioVaeConfig& config, int64_t latents);
  // Of a Scratch and of the ops on `threads` threads.
  static uint64_t ScratchBytes(const AudioVaeConfig& config, int64_t latents, int threads);
  // Where the caller puts the samples, [1, a * hop].
  static TensorView Input(const AudioVaeConfig& config, Scratch& scratch, int64_t latents);

  // Input -> posterior means [latent channels, a] contiguous.
  absl::Status Run(Scratch& scratch, const TensorView& means, const ExecContext& context) const;

 private:
  // Weight and bias of a norm or of a linear layer.
  struct Pair {
    ConstTensorView weight, bias;
  };
  struct Unit {
    ConstTensorView alpha1, alpha2;
    Conv1dWeights conv1, conv2;
    int64_t dilation = 1;
  };
  struct Level {
    std::vector<Unit> units;
    ConstTensorView alpha;
    Conv1dWeights down;
    int64_t rate = 1;
  };
  struct PreBlock {
    Pair norm1, norm2, norm3, mlp_norm;
    Pair q, k, v, out, proj;  // linear layers
    Pair w0, w1, w2;
  };
  WaveEncoder() = default;
  static absl::StatusOr<Pair> LoadPair(const WeightStore& weights, const std::string& prefix,
                                       const Shape& weight);
  static absl::StatusOr<Level> LoadLevel(const AudioVaeConfig& config, const WeightStore& weights,
                                         size_t i);
  static absl::StatusOr<PreBlock> LoadPreBlock(const AudioVaeConfig& config,
                                               const WeightStore& weights);
  static absl::Status RunLevel(const Level& level, int64_t channels, int64_t n, Scratch& scratch,
                               const ExecContext& context);
  // The mean over heads, pooled, projected, of causal attention over LN1(x): into `y` [a, c].
  absl::Status AttendPooled(Scratch& scratch, int64_t a, const TensorView& y,
                            const ExecContext& context) const;
  absl::Status RunPreBlock(Scratch& scratch, int64_t a, const TensorView& y,
                           const ExecContext& context) const;

  AudioVaeConfig config_;
  Conv1dWeights conv_in_, conv_out_;
  std::vector<Level> levels_;
  ConstTensorView alpha_;
  PreBlock block_;
  Pair mean_proj_;
};

}  // namespace h3rt::audio_vae
