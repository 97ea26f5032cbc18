#include "h3rt/model/audio_vae/audio_vae.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/base/stage.h"
#include "h3rt/cpu/chunks.h"
#include "h3rt/cpu/finite.h"
#include "h3rt/model/audio_vae/decoder.h"
#include "h3rt/model/audio_vae/encoder.h"

namespace h3rt {
namespace {

using audio_vae::WaveDecoder;
using audio_vae::WaveEncoder;

constexpr const char* kDecode = "audio VAE decode";
constexpr const char* kEncode = "audio VAE encode";

absl::Status Refuse(const ConstTensorView& x, const char* what, const std::string& wanted,
                    const char* where) {
  return InvalidArgument({.what = what,
                          .got = std::string(NameOf(x.dtype())) + " " + x.shape().ToString(),
                          .wanted = "F32 " + wanted,
                          .where = where});
}

}  // namespace

struct AudioVae::Impl {
  AudioVaeConfig config;
  WaveEncoder encoder;
  WaveDecoder decoder;
};

AudioVae::AudioVae(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AudioVae::AudioVae(AudioVae&&) noexcept = default;
AudioVae& AudioVae::operator=(AudioVae&&) noexcept = default;
AudioVae::~AudioVae() = default;
const AudioVaeConfig& AudioVae::config() const { return impl_->config; }

absl::StatusOr<AudioVae> AudioVae::Create(const AudioVaeConfig& config,
                                          const WeightStore& weights) {
  H3RT_RETURN_IF_ERROR(config.Validate());
  H3RT_ASSIGN_OR_RETURN(WaveEncoder encoder, WaveEncoder::Create(config, weights));
  H3RT_ASSIGN_OR_RETURN(WaveDecoder decoder, WaveDecoder::Create(config, weights));
  return AudioVae(std::make_unique<Impl>(Impl{config, std::move(encoder), std::move(decoder)}));
}

absl::StatusOr<Tensor> AudioVae::Decode(const ConstTensorView& z,
                                        const ExecContext& context) const {
  const AudioVaeConfig& config = impl_->config;
  if (z.is_null() || z.dtype() != DType::kF32 || z.rank() != 3 || z.elements() == 0 ||
      z.dim(1) != config.latent_channels || !z.contiguous()) {
    return Refuse(z, "latents to decode",
                  "[channels, " + std::to_string(config.latent_channels) + ", a], contiguous",
                  kDecode);
  }
  H3RT_RETURN_IF_ERROR(InStage(RefuseNonFinite(z, "latents", context), kDecode));
  const int64_t latents = z.dim(2);
  H3RT_ASSIGN_OR_RETURN(Tensor out,
                        Tensor::Create(DType::kF32, {z.dim(0), latents * config.hop()}));
  H3RT_ASSIGN_OR_RETURN(WaveDecoder::Scratch scratch, WaveDecoder::MakeScratch(config, latents));
  for (int64_t channel = 0; channel < z.dim(0); ++channel) {
    if (context.cancel != nullptr && context.cancel->cancelled()) return Cancelled(kDecode);
    const TensorView samples = out.view().Slice(0, channel, channel + 1);
    H3RT_RETURN_IF_ERROR(
        InStage(impl_->decoder.Run(z.Select(0, channel), scratch, samples, context), kDecode));
    H3RT_RETURN_IF_ERROR(InStage(CheckProduced(samples, {}, context), kDecode));
  }
  return out;
}

absl::StatusOr<Tensor> AudioVae::Encode(const ConstTensorView& samples,
                                        const ExecContext& context) const {
  const AudioVaeConfig& config = impl_->config;
  if (samples.is_null() || samples.dtype() != DType::kF32 || samples.rank() != 2 ||
      samples.elements() == 0 || !samples.contiguous()) {
    return Refuse(samples, "samples to encode", "[channels, n], contiguous, n at least 1", kEncode);
  }
  H3RT_RETURN_IF_ERROR(InStage(RefuseNonFinite(samples, "samples", context), kEncode));
  const int64_t n = samples.dim(1);
  const int64_t latents = LatentsFor(config, n);
  H3RT_ASSIGN_OR_RETURN(
      Tensor out, Tensor::Create(DType::kF32, {samples.dim(0), config.latent_channels, latents}));
  H3RT_ASSIGN_OR_RETURN(WaveEncoder::Scratch scratch, WaveEncoder::MakeScratch(config, latents));
  for (int64_t channel = 0; channel < samples.dim(0); ++channel) {
    if (context.cancel != nullptr && context.cancel->cancelled()) return Cancelled(kEncode);
    const TensorView input = WaveEncoder::Input(config, scratch, latents);
    std::copy_n(samples.as<float>() + channel * n, n, input.as<float>());
    std::fill_n(input.as<float>() + n, input.elements() - n, 0.0f);
    const TensorView means = out.view().Select(0, channel);
    H3RT_RETURN_IF_ERROR(InStage(impl_->encoder.Run(scratch, means, context), kEncode));
    H3RT_RETURN_IF_ERROR(InStage(CheckProduced(means, {}, context), kEncode));
  }
  return out;
}

int64_t AudioVae::LatentsFor(const AudioVaeConfig& config, int64_t samples) {
  return (samples + config.hop() - 1) / config.hop();
}

namespace {

// The latents' mean and deviation by channel.
struct Statistics {
  explicit Statistics(const AudioVaeConfig& config)
      : mean(config.latents_mean.begin(), config.latents_mean.end()),
        deviation(config.latents_std.begin(), config.latents_std.end()) {}
  float Normalize(float value, size_t c) const { return (value - mean[c]) / deviation[c]; }
  float Denormalize(float value, size_t c) const { return value * deviation[c] + mean[c]; }

  std::vector<float> mean;
  std::vector<float> deviation;
};

}  // namespace

void AudioVae::Normalize(const TensorView& z) const {
  const Statistics statistics(impl_->config);
  ByChannel(z, 1, impl_->config.latent_channels,
            [&](float value, size_t c) { return statistics.Normalize(value, c); });
}

void AudioVae::Denormalize(const TensorView& z) const {
  const Statistics statistics(impl_->config);
  ByChannel(z, 1, impl_->config.latent_channels,
            [&](float value, size_t c) { return statistics.Denormalize(value, c); });
}

absl::Status AudioVae::Normalize(const TensorView& z, const ExecContext& context) const {
  const Statistics statistics(impl_->config);
  return ByChannel(z, 1, impl_->config.latent_channels, context,
                   [&](float value, size_t c) { return statistics.Normalize(value, c); });
}

absl::Status AudioVae::Denormalize(const TensorView& z, const ExecContext& context) const {
  const Statistics statistics(impl_->config);
  return ByChannel(z, 1, impl_->config.latent_channels, context,
                   [&](float value, size_t c) { return statistics.Denormalize(value, c); });
}

uint64_t AudioVae::DecodeBytes(const AudioVaeConfig& config, int64_t channels, int64_t latents,
                               int threads) {
  return static_cast<uint64_t>(channels * latents * config.hop()) * sizeof(float) +
         WaveDecoder::ScratchBytes(config, latents, threads);
}

uint64_t AudioVae::EncodeBytes(const AudioVaeConfig& config, int64_t channels, int64_t samples,
                               int threads) {
  const int64_t latents = LatentsFor(config, samples);
  return static_cast<uint64_t>(channels * config.latent_channels * latents) * sizeof(float) +
         WaveEncoder::ScratchBytes(config, latents, threads);
}

}  // namespace h3rt
