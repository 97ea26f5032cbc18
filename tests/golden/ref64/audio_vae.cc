#include "tests/golden/ref64/audio_vae.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "h3rt/base/check.h"
#include "tests/golden/ref64/audio_ops.h"
#include "tests/golden/ref64/ops.h"

namespace h3rt::ref64 {
namespace {

// One of the parallel blocks of a decoder stage: for every dilation, x += conv(act(conv(act(x)))).
Array AmpBlock(const Array& x, const Weights& weights, const std::string& prefix,
               const std::vector<int64_t>& dilations, int64_t kernel,
               const AudioVaeFaults& faults) {
  const int64_t shift = faults.filter_off_by_one ? 1 : 0;
  const int64_t reach = (kernel - 1) / 2;
  Array y = x;
  for (size_t m = 0; m < dilations.size(); ++m) {
    const std::string q0 = prefix + "activations." + std::to_string(2 * m);
    const std::string q1 = prefix + "activations." + std::to_string(2 * m + 1);
    const int64_t dilation = dilations[m];
    Array h = SmoothSnakeBeta(y, weights, q0, shift);
    h = Conv1d(h, weights, prefix + "convs1." + std::to_string(m), 1, dilation, reach * dilation);
    h = SmoothSnakeBeta(h, weights, q1, shift);
    h = Conv1d(h, weights, prefix + "convs2." + std::to_string(m), 1, 1, reach);
    y = Add(y, h);
  }
  return y;
}

// One channel: z [latent_channels, a] -> samples [1, a * hop], not clamped.
Array DecodeChannel(const AudioVaeConfig& config, const Weights& weights, const Array& z,
                    const AudioVaeFaults& faults) {
  Array x = Conv1d(z, weights, "dec_in_proj", 1, 1, 0);
  x = Conv1d(x, weights, "decoder.conv_pre", 1, 1, 3);
  const size_t blocks = config.resblock_kernels.size();
  for (size_t i = 0; i < config.decoder_rates.size(); ++i) {
    const int64_t rate = config.decoder_rates[i];
    const int64_t pad = (config.decoder_kernels[i] - rate) / 2;
    x = ConvTranspose1d(x, weights, "decoder.ups." + std::to_string(i) + ".0", rate, pad);
    Array sum(x.shape);
    for (size_t j = 0; j < blocks; ++j) {
      const std::string prefix = "decoder.resblocks." + std::to_string(blocks * i + j) + ".";
      sum = Add(sum, AmpBlock(x, weights, prefix, config.resblock_dilations[j],
                              config.resblock_kernels[j], faults));
    }
    for (double& value : sum.data) value /= static_cast<double>(blocks);
    x = sum;
  }
  x = SmoothSnakeBeta(x, weights, "decoder.activation_post", faults.filter_off_by_one ? 1 : 0);
  return Conv1d(x, weights, "decoder.conv_post", 1, 1, 3);
}

// Causal attention whose heads are averaged and then pooled down to the latent width.
Array PooledAttention(const AudioVaeConfig& config, const Weights& weights, const Array& n,
                      const AudioVaeFaults& faults) {
  const int64_t rows = n.dim(0);
  const int64_t width = config.latent_dim;
  const Array fused = Linear(n, weights.Get("pre_block.attn.qkv.weight"), nullptr);
  Array q = Slice(fused, 1, 0, width);
  const Array k = Slice(fused, 1, width, 2 * width);
  Array v = Slice(fused, 1, 2 * width, 3 * width);
  for (int64_t i = 0; i < rows * width; ++i) {
    q.p()[i] += weights.Get("pre_block.attn.q_bias").p()[i % width];
    v.p()[i] += weights.Get("pre_block.attn.v_bias").p()[i % width];
  }
  const Array o = Attention(q, k, v, config.num_heads, !faults.not_causal);
  const int64_t head_dim = width / config.num_heads;
  const int64_t group = head_dim / config.latent_channels;
  const auto count = static_cast<double>(group * config.num_heads);
  Array pooled({rows, config.latent_channels});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      pooled.p()[r * config.latent_channels + c % head_dim / group] += o.p()[r * width + c] / count;
    }
  }
  return Linear(pooled, weights, "pre_block.attn.proj");
}

Array PreBlock(const AudioVaeConfig& config, const Weights& weights, const Array& x,
               const AudioVaeFaults& faults) {
  constexpr double kEps = 1e-5;
  const auto norm = [&](const Array& value, const std::string& name) {
    return LayerNorm(value, weights.Get(name + ".weight"), weights.Get(name + ".bias"), kEps);
  };
  Array y = Linear(norm(x, "pre_block.norm3"), weights, "pre_block.proj");
  y = Add(y, PooledAttention(config, weights, norm(x, "pre_block.norm1"), faults));
  const Array n = norm(norm(y, "pre_block.norm2"), "pre_block.mlp.norm");
  Array gate = Linear(n, weights, "pre_block.mlp.w0");
  const Array value = Linear(n, weights, "pre_block.mlp.w1");
  for (int64_t i = 0; i < gate.elements(); ++i) gate.p()[i] = GeluTanh(gate.p()[i]) * value.p()[i];
  return Add(y, Linear(gate, weights, "pre_block.mlp.w2"));
}

// One channel: samples [1, n] with n a multiple of the hop -> [latent_channels, n / hop].
Array EncodeChannel(const AudioVaeConfig& config, const Weights& weights, const Array& samples,
                    const AudioVaeFaults& faults) {
  const size_t levels = config.encoder_rates.size();
  Array x = Conv1d(samples, weights, "encoder.block.0", 1, 1, 3);
  for (size_t level = 1; level <= levels; ++level) {
    const std::string prefix = "encoder.block." + std::to_string(level) + ".block.";
    int64_t dilation = 1;
    for (int64_t unit = 0; unit < 3; ++unit, dilation *= 3) {
      const std::string part = prefix + std::to_string(unit) + ".block.";
      Array h = Snake(x, weights, part + "0");
      h = Conv1d(h, weights, part + "1", 1, dilation, 3 * dilation);
      h = Snake(h, weights, part + "2");
      x = Add(x, Conv1d(h, weights, part + "3", 1, 1, 0));
    }
    const int64_t rate = config.encoder_rates[level - 1];
    x = Snake(x, weights, prefix + "3");
    x = Conv1d(x, weights, prefix + "4", rate, 1, (rate + 1) / 2);
  }
  x = Snake(x, weights, "encoder.block." + std::to_string(levels + 1));
  x = Conv1d(x, weights, "encoder.block." + std::to_string(levels + 2), 1, 1, 1);
  const Array y = PreBlock(config, weights, Transposed(x), faults);
  return Conv1d(Transposed(y), weights, "mean_proj", 1, 1, 0);
}

// Modified Bessel function of the first kind and order 0, by its series.
double BesselI0(double x) {
  double term = 1.0;
  double sum = 1.0;
  for (int k = 1; term > 1e-18 * sum; ++k) {
    term *= (x / (2.0 * k)) * (x / (2.0 * k));
    sum += term;
  }
  return sum;
}

}  // namespace

Array AudioDecode(const AudioVaeConfig& config, const Weights& weights, const Array& z,
                  const AudioVaeFaults& faults, Array* unclamped) {
  std::vector<Array> channels;
  for (int64_t c = 0; c < z.dim(0); ++c) {
    const Array channel = Reshaped(Slice(z, 0, c, c + 1), {z.dim(1), z.dim(2)});
    channels.push_back(DecodeChannel(config, weights, channel, faults));
  }
  Array out = Concat(channels, 0);
  if (unclamped != nullptr) *unclamped = out;
  for (double& value : out.data) value = std::clamp(value, -1.0, 1.0);
  return out;
}

Array AudioEncode(const AudioVaeConfig& config, const Weights& weights, const Array& samples,
                  const AudioVaeFaults& faults) {
  int64_t hop = 1;
  for (const int64_t rate : config.encoder_rates) hop *= rate;
  const int64_t latents = (samples.dim(1) + hop - 1) / hop;
  const Array zeros({1, latents * hop - samples.dim(1)});
  std::vector<Array> channels;
  for (int64_t c = 0; c < samples.dim(0); ++c) {
    const Array padded = Concat({Slice(samples, 0, c, c + 1), zeros}, 1);
    const Array mean = EncodeChannel(config, weights, padded, faults);
    channels.push_back(Reshaped(mean, {1, mean.dim(0), mean.dim(1)}));
  }
  return Concat(channels, 0);
}

Array KaiserSincFilter() {
  constexpr int kTaps = 12;
  const double attenuation = 2.285 * 5.0 * std::numbers::pi * 1.2 + 7.95;
  const double beta = 0.1102 * (attenuation - 8.7);
  Array filter({kTaps});
  double sum = 0.0;
  for (int k = 0; k < kTaps; ++k) {
    const double at = 2.0 * k / (kTaps - 1) - 1.0;
    const double window = BesselI0(beta * std::sqrt(1.0 - at * at)) / BesselI0(beta);
    const double x = std::numbers::pi * 0.5 * (k - 5.5);
    filter.p()[k] = 0.5 * window * std::sin(x) / x;
    sum += filter.p()[k];
  }
  for (double& value : filter.data) value /= sum;
  return filter;
}

}  // namespace h3rt::ref64
