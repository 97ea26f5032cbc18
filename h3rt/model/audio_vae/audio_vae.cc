#include "h3rt/model/audio_vae/audio_vae.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

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

// What stands between the input and a network that would spread a NaN, or a clamp that would hide
// an infinity.
absl::Status RefuseNonFinite(const ConstTensorView& x, const char* what, const char* where) {
  const float* values = x.as<float>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (std::isfinite(values[i])) continue;
    return InvalidArgument({.what = std::string(what) + " hold a value that is not finite",
                            .got = std::to_string(values[i]) + " at element " + std::to_string(i),
                            .wanted = "finite values",
                            .where = where});
  }
  return absl::OkStatus();
}

absl::Status CheckProduced(const ConstTensorView& x, const char* where) {
  const float* values = x.as<float>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (std::isfinite(values[i])) continue;
    return DataLoss({.what = "the network made a value that is not finite from finite input",
                     .got = std::to_string(values[i]) + " at element " + std::to_string(i),
                     .wanted = "finite values",
                     .where = where});
  }
  return absl::OkStatus();
}

absl::Status InStage(const absl::Status& status, const char* where) {
  if (status.code() == absl::StatusCode::kCancelled) return Cancelled(where);
  return WithContext(status, where);
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
  H3RT_RETURN_IF_ERROR(RefuseNonFinite(z, "latents", kDecode));
  const int64_t latents = z.dim(2);
  H3RT_ASSIGN_OR_RETURN(Tensor out,
                        Tensor::Create(DType::kF32, {z.dim(0), latents * config.hop()}));
  H3RT_ASSIGN_OR_RETURN(WaveDecoder::Scratch scratch, WaveDecoder::MakeScratch(config, latents));
  for (int64_t channel = 0; channel < z.dim(0); ++channel) {
    if (context.cancel != nullptr && context.cancel->cancelled()) return Cancelled(kDecode);
    const TensorView samples = out.view().Slice(0, channel, channel + 1);
    H3RT_RETURN_IF_ERROR(
        InStage(impl_->decoder.Run(z.Select(0, channel), scratch, samples, context), kDecode));
    H3RT_RETURN_IF_ERROR(CheckProduced(samples, kDecode));
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
  H3RT_RETURN_IF_ERROR(RefuseNonFinite(samples, "samples", kEncode));
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
    H3RT_RETURN_IF_ERROR(CheckProduced(means, kEncode));
  }
  return out;
}

int64_t AudioVae::LatentsFor(const AudioVaeConfig& config, int64_t samples) {
  return (samples + config.hop() - 1) / config.hop();
}

namespace {

// f(value, channel) for every element of z [channels, latent channels, a], in place.
template <typename F>
void ByChannel(const TensorView& z, int64_t latent_channels, F f) {
  H3RT_CHECK(z.dtype() == DType::kF32 && z.contiguous() && z.rank() == 3 &&
             z.dim(1) == latent_channels);
  float* values = z.as<float>();
  for (int64_t row = 0; row < z.dim(0) * latent_channels; ++row) {
    for (int64_t i = 0; i < z.dim(2); ++i, ++values) {
      *values = f(*values, static_cast<size_t>(row % latent_channels));
    }
  }
}

}  // namespace

void AudioVae::Normalize(const TensorView& z) const {
  const AudioVaeConfig& config = impl_->config;
  ByChannel(z, config.latent_channels, [&](float value, size_t c) {
    return (value - static_cast<float>(config.latents_mean[c])) /
           static_cast<float>(config.latents_std[c]);
  });
}

void AudioVae::Denormalize(const TensorView& z) const {
  const AudioVaeConfig& config = impl_->config;
  ByChannel(z, config.latent_channels, [&](float value, size_t c) {
    return value * static_cast<float>(config.latents_std[c]) +
           static_cast<float>(config.latents_mean[c]);
  });
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
