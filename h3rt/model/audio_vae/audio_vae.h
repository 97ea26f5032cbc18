// The audio VAE: DAC encoder, BigVGAN decoder, one channel at a time, FP32 only. Source: spec h3
// section 7, C8, C9.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

class AudioVae {
 public:
  // `weights` stays alive and in place while the AudioVae is used.
  static absl::StatusOr<AudioVae> Create(const AudioVaeConfig& config, const WeightStore& weights);
  AudioVae(AudioVae&&) noexcept;
  AudioVae& operator=(AudioVae&&) noexcept;
  ~AudioVae();
  const AudioVaeConfig& config() const;

  // Raw latents z [channels, latent_channels, a] F32 -> samples [channels, a * hop] in [-1, 1].
  absl::StatusOr<Tensor> Decode(const ConstTensorView& z, const ExecContext& context) const;

  // Samples [channels, n] F32 -> posterior means [channels, latent_channels, ceil(n / hop)]; the
  // right end is padded with zeros.
  absl::StatusOr<Tensor> Encode(const ConstTensorView& samples, const ExecContext& context) const;

  // (z - mean) / std and back, in place; z [channels, latent_channels, a] F32 contiguous. With a
  // context on its threads; after kCancelled some of z may have been changed.
  void Normalize(const TensorView& z) const;
  void Denormalize(const TensorView& z) const;
  [[nodiscard]] absl::Status Normalize(const TensorView& z, const ExecContext& context) const;
  [[nodiscard]] absl::Status Denormalize(const TensorView& z, const ExecContext& context) const;

  // Largest number of bytes that Decode holds at once, the result included.
  static uint64_t DecodeBytes(const AudioVaeConfig& config, int64_t channels, int64_t latents,
                              int threads);
  // The same of Encode, for samples of each channel.
  static uint64_t EncodeBytes(const AudioVaeConfig& config, int64_t channels, int64_t samples,
                              int threads);
  // ceil(samples / hop).
  static int64_t LatentsFor(const AudioVaeConfig& config, int64_t samples);

 private:
  struct Impl;
  explicit AudioVae(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace h3rt
