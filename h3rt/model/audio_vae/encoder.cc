#include "h3rt/model/audio_vae/encoder.h"

#include <algorithm>
#include <utility>

#include "h3rt/cpu/chunks.h"
#include "h3rt/kernels/activation/activation.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/tensor/scratch_view.h"

namespace h3rt::audio_vae {
namespace {

constexpr int64_t kInKernel = 7;   // of the first convolution and of the residual units
constexpr int64_t kOutKernel = 3;  // of the last convolution
constexpr int64_t kDilations[] = {1, 3, 9};
constexpr double kNormEps = 1e-5;

int64_t LevelChannels(const AudioVaeConfig& config, size_t i) {
  return config.encoder_dim << static_cast<int64_t>(i);
}

int64_t Hop(const AudioVaeConfig& config) {
  int64_t hop = 1;
  for (const int64_t rate : config.encoder_rates) hop *= rate;
  return hop;
}

int64_t MostElements(const AudioVaeConfig& config, int64_t latents) {
  int64_t n = latents * Hop(config);
  int64_t most = 0;
  for (size_t i = 0; i < config.encoder_rates.size(); ++i) {
    most = std::max(most, LevelChannels(config, i) * n);
    n /= config.encoder_rates[i];
  }
  return std::max(
      {most, LevelChannels(config, config.encoder_rates.size()) * n, config.latent_dim * n});
}

// Most floats that the ops hold for one thread.
int64_t MostPanel(const AudioVaeConfig& config, int64_t latents) {
  int64_t n = latents * Hop(config);
  int64_t most = Conv1dPanel({.ci = 1, .k = kInKernel}, n);
  for (size_t i = 0; i < config.encoder_rates.size(); ++i) {
    const int64_t ci = LevelChannels(config, i);
    const int64_t rate = config.encoder_rates[i];
    most = std::max({most, Conv1dPanel({.ci = ci, .k = kInKernel}, n),
                     Conv1dPanel({.ci = ci, .k = 2 * rate}, n / rate)});
    n /= rate;
  }
  const int64_t last = LevelChannels(config, config.encoder_rates.size());
  return std::max(most, Conv1dPanel({.ci = last, .k = kOutKernel}, n));
}

int64_t HeadDim(const AudioVaeConfig& config) { return config.latent_dim / config.num_heads; }

int64_t SmallColumns(const AudioVaeConfig& config) {
  return std::max(2 * config.latent_channels, HeadDim(config));
}

constexpr int64_t kSmallBuffers = 5;

void TransposeInto(const ConstTensorView& x, const TensorView& y) {
  const int64_t rows = x.dim(0);
  const int64_t columns = x.dim(1);
  const float* from = x.as<float>();
  float* to = y.as<float>();
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) *to++ = from[r * columns + c];
  }
}

absl::Status Residual(const TensorView& x, const ConstTensorView& y, const ExecContext& context) {
  return GatedResidual({.x = x, .gate = {}, .row = {}, .y = y}, context);
}

}  // namespace

absl::StatusOr<WaveEncoder::Pair> WaveEncoder::LoadPair(const WeightStore& weights,
                                                        const std::string& prefix,
                                                        const Shape& weight) {
  Pair pair;
  H3RT_ASSIGN_OR_RETURN(pair.weight, weights.Get(prefix + ".weight", weight));
  H3RT_ASSIGN_OR_RETURN(pair.bias, weights.Get(prefix + ".bias", Shape({weight[0]})));
  return pair;
}

absl::StatusOr<WaveEncoder::Level> WaveEncoder::LoadLevel(const AudioVaeConfig& config,
                                                          const WeightStore& weights, size_t i) {
  const int64_t c = LevelChannels(config, i);
  const std::string at = "encoder.block." + std::to_string(i + 1) + ".block.";
  const Shape alpha = {1, c, 1};
  Level level;
  level.rate = config.encoder_rates[i];
  for (size_t u = 0; u < std::size(kDilations); ++u) {
    const std::string in = at + std::to_string(u) + ".block.";
    Unit unit;
    unit.dilation = kDilations[u];
    H3RT_ASSIGN_OR_RETURN(unit.alpha1, GetVector(weights, in + "0.alpha", alpha));
    H3RT_ASSIGN_OR_RETURN(unit.conv1,
                          GetConv1d(weights, in + "1", {.ci = c, .co = c, .k = kInKernel}));
    H3RT_ASSIGN_OR_RETURN(unit.alpha2, GetVector(weights, in + "2.alpha", alpha));
    H3RT_ASSIGN_OR_RETURN(unit.conv2, GetConv1d(weights, in + "3", {.ci = c, .co = c}));
    level.units.push_back(unit);
  }
  H3RT_ASSIGN_OR_RETURN(level.alpha, GetVector(weights, at + "3.alpha", alpha));
  H3RT_ASSIGN_OR_RETURN(level.down,
                        GetConv1d(weights, at + "4", {.ci = c, .co = 2 * c, .k = 2 * level.rate}));
  return level;
}

absl::StatusOr<WaveEncoder::PreBlock> WaveEncoder::LoadPreBlock(const AudioVaeConfig& config,
                                                                const WeightStore& weights) {
  const int64_t d = config.latent_dim;
  const int64_t c = config.latent_channels;
  const std::string at = "pre_block.";
  const Shape wide = {d};
  PreBlock block;
  H3RT_ASSIGN_OR_RETURN(block.norm1, LoadPair(weights, at + "norm1", wide));
  H3RT_ASSIGN_OR_RETURN(block.norm2, LoadPair(weights, at + "norm2", Shape({c})));
  H3RT_ASSIGN_OR_RETURN(block.norm3, LoadPair(weights, at + "norm3", wide));
  H3RT_ASSIGN_OR_RETURN(block.mlp_norm, LoadPair(weights, at + "mlp.norm", Shape({c})));
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView qkv, weights.Get(at + "attn.qkv.weight", {3 * d, d}));
  block.q.weight = qkv.Slice(0, 0, d);
  block.k.weight = qkv.Slice(0, d, 2 * d);
  block.v.weight = qkv.Slice(0, 2 * d, 3 * d);
  H3RT_ASSIGN_OR_RETURN(block.q.bias, weights.Get(at + "attn.q_bias", wide));
  H3RT_ASSIGN_OR_RETURN(block.v.bias, weights.Get(at + "attn.v_bias", wide));
  // Keys have no bias of their own; a file holds the buffer of zeros that stands in for one.
  if (weights.Has(at + "attn.zero_k_bias")) {
    H3RT_ASSIGN_OR_RETURN(block.k.bias, weights.Get(at + "attn.zero_k_bias", wide));
  }
  H3RT_ASSIGN_OR_RETURN(block.out, LoadPair(weights, at + "attn.proj", {c, c}));
  H3RT_ASSIGN_OR_RETURN(block.proj, LoadPair(weights, at + "proj", {c, d}));
  H3RT_ASSIGN_OR_RETURN(block.w0, LoadPair(weights, at + "mlp.w0", {2 * c, c}));
  H3RT_ASSIGN_OR_RETURN(block.w1, LoadPair(weights, at + "mlp.w1", {2 * c, c}));
  H3RT_ASSIGN_OR_RETURN(block.w2, LoadPair(weights, at + "mlp.w2", {c, 2 * c}));
  return block;
}

absl::StatusOr<WaveEncoder> WaveEncoder::Create(const AudioVaeConfig& config,
                                                const WeightStore& weights) {
  WaveEncoder encoder;
  encoder.config_ = config;
  const size_t levels = config.encoder_rates.size();
  const int64_t last = LevelChannels(config, levels);
  H3RT_ASSIGN_OR_RETURN(
      encoder.conv_in_,
      GetConv1d(weights, "encoder.block.0", {.ci = 1, .co = config.encoder_dim, .k = kInKernel}));
  for (size_t i = 0; i < levels; ++i) {
    H3RT_ASSIGN_OR_RETURN(Level level, LoadLevel(config, weights, i));
    encoder.levels_.push_back(std::move(level));
  }
  const std::string snake = "encoder.block." + std::to_string(levels + 1) + ".alpha";
  H3RT_ASSIGN_OR_RETURN(encoder.alpha_, GetVector(weights, snake, {1, last, 1}));
  H3RT_ASSIGN_OR_RETURN(encoder.conv_out_,
                        GetConv1d(weights, "encoder.block." + std::to_string(levels + 2),
                                  {.ci = last, .co = config.latent_dim, .k = kOutKernel}));
  H3RT_ASSIGN_OR_RETURN(encoder.block_, LoadPreBlock(config, weights));
  const int64_t c = config.latent_channels;
  H3RT_ASSIGN_OR_RETURN(const Conv1dWeights mean,
                        GetConv1d(weights, "mean_proj", {.ci = c, .co = c}));
  encoder.mean_proj_ = {.weight = mean.weight.Reshape({c, c}), .bias = mean.bias};
  return encoder;
}

absl::StatusOr<WaveEncoder::Scratch> WaveEncoder::MakeScratch(const AudioVaeConfig& config,
                                                              int64_t latents) {
  const int64_t d = config.latent_dim;
  const Shape wave = {MostElements(config, latents)};
  Scratch scratch;
  for (Tensor& buffer : scratch.wave) {
    H3RT_ASSIGN_OR_RETURN(buffer, Tensor::Create(DType::kF32, wave));
  }
  H3RT_ASSIGN_OR_RETURN(scratch.tokens, Tensor::Create(DType::kF32, {latents, d}));
  H3RT_ASSIGN_OR_RETURN(scratch.normed, Tensor::Create(DType::kF32, {latents, d}));
  H3RT_ASSIGN_OR_RETURN(scratch.qkv, Tensor::Create(DType::kF32, {3, latents, d}));
  H3RT_ASSIGN_OR_RETURN(
      scratch.small, Tensor::Create(DType::kF32, {kSmallBuffers, latents, SmallColumns(config)}));
  return scratch;
}

uint64_t WaveEncoder::ScratchBytes(const AudioVaeConfig& config, int64_t latents, int threads) {
  const int64_t elements = 3 * MostElements(config, latents) + 5 * latents * config.latent_dim +
                           kSmallBuffers * latents * SmallColumns(config);
  return static_cast<uint64_t>(elements + threads * MostPanel(config, latents)) * sizeof(float);
}

TensorView WaveEncoder::Input(const AudioVaeConfig& config, Scratch& scratch, int64_t latents) {
  return ScratchView(scratch.wave[0], {1, latents * Hop(config)});
}

// In scratch.wave[0]: the residual units, then [channels, n] -> [2 channels, n / rate].
absl::Status WaveEncoder::RunLevel(const Level& level, int64_t channels, int64_t n,
                                   Scratch& scratch, const ExecContext& context) {
  const TensorView x = ScratchView(scratch.wave[0], {channels, n});
  const TensorView y = ScratchView(scratch.wave[1], {channels, n});
  const TensorView made = ScratchView(scratch.wave[2], {channels, n});
  for (const Unit& unit : level.units) {
    const int64_t pad = (kInKernel - 1) / 2 * unit.dilation;
    H3RT_RETURN_IF_ERROR(Snake({.x = x, .alpha = unit.alpha1, .y = y}, context));
    H3RT_RETURN_IF_ERROR(
        Conv1d(unit.conv1, {.dilation = unit.dilation, .pad = pad}, y, made, context));
    H3RT_RETURN_IF_ERROR(Snake({.x = made, .alpha = unit.alpha2, .y = made}, context));
    H3RT_RETURN_IF_ERROR(Conv1d(unit.conv2, {}, made, y, context));
    H3RT_RETURN_IF_ERROR(Residual(x, y, context));
  }
  H3RT_RETURN_IF_ERROR(Snake({.x = x, .alpha = level.alpha, .y = y}, context));
  return Conv1d(level.down, {.stride = level.rate, .pad = (level.rate + 1) / 2}, y,
                ScratchView(scratch.wave[0], {2 * channels, n / level.rate}), context);
}

absl::Status WaveEncoder::AttendPooled(Scratch& scratch, int64_t a, const TensorView& y,
                                       const ExecContext& context) const {
  const int64_t d = config_.latent_dim;
  const int64_t c = config_.latent_channels;
  const int64_t head = HeadDim(config_);
  const TensorView normed = scratch.normed.view();
  H3RT_RETURN_IF_ERROR(LayerNorm({.x = scratch.tokens.view(),
                                  .weight = block_.norm1.weight,
                                  .bias = block_.norm1.bias,
                                  .y = normed,
                                  .eps = kNormEps},
                                 context));
  const TensorView qkv = scratch.qkv.view();
  const std::array<const Pair*, 3> projections = {&block_.q, &block_.k, &block_.v};
  for (int64_t i = 0; i < 3; ++i) {
    const Pair& linear = *projections[static_cast<size_t>(i)];
    H3RT_RETURN_IF_ERROR(
        Linear({.x = normed, .weight = linear.weight, .bias = linear.bias, .y = qkv.Select(0, i)},
               context));
  }
  const Shape heads = {a, config_.num_heads, head};
  H3RT_RETURN_IF_ERROR(Attention({.q = qkv.Select(0, 0).Reshape(heads),
                                  .k = qkv.Select(0, 1).Reshape(heads),
                                  .v = qkv.Select(0, 2).Reshape(heads),
                                  .o = normed.Reshape(heads),
                                  .causal = true},
                                 context));
  // Heads are averaged, then runs of neighbouring channels; one sum in float64 does both.
  const int64_t run = head / c;
  const auto count = static_cast<double>(config_.num_heads * run);
  const TensorView pooled = TensorView::Of(scratch.qkv.as<float>(), {a, c});
  for (int64_t t = 0; t < a; ++t) {
    for (int64_t i = 0; i < c; ++i) {
      double sum = 0.0;
      for (int64_t h = 0; h < config_.num_heads; ++h) {
        const float* from = normed.as<float>() + t * d + h * head + i * run;
        for (int64_t k = 0; k < run; ++k) sum += static_cast<double>(from[k]);
      }
      pooled.as<float>()[t * c + i] = static_cast<float>(sum / count);
    }
  }
  return Linear({.x = pooled, .weight = block_.out.weight, .bias = block_.out.bias, .y = y},
                context);
}

// y = proj(LN3(x)) + attention(LN1(x)); y += w2(gelu(w0 n) * (w1 n)) with n = LN(LN2(y)).
absl::Status WaveEncoder::RunPreBlock(Scratch& scratch, int64_t a, const TensorView& y,
                                      const ExecContext& context) const {
  const int64_t c = config_.latent_channels;
  const int64_t stride = a * SmallColumns(config_);
  const auto small = [&](int64_t i, int64_t columns) {
    return TensorView::Of(scratch.small.as<float>() + i * stride, {a, columns});
  };
  const auto linear = [&](const Pair& weights, const TensorView& from, const TensorView& to) {
    return Linear({.x = from, .weight = weights.weight, .bias = weights.bias, .y = to}, context);
  };
  const auto norm = [&](const Pair& weights, const TensorView& from, const TensorView& to) {
    return LayerNorm(
        {.x = from, .weight = weights.weight, .bias = weights.bias, .y = to, .eps = kNormEps},
        context);
  };
  H3RT_RETURN_IF_ERROR(AttendPooled(scratch, a, y, context));
  const TensorView skip = small(1, c);
  H3RT_RETURN_IF_ERROR(norm(block_.norm3, scratch.tokens.view(), scratch.normed.view()));
  H3RT_RETURN_IF_ERROR(linear(block_.proj, scratch.normed.view(), skip));
  H3RT_RETURN_IF_ERROR(Residual(y, skip, context));
  const TensorView n = small(1, c);
  const TensorView gate = small(2, 2 * c);
  const TensorView value = small(3, 2 * c);
  H3RT_RETURN_IF_ERROR(norm(block_.norm2, y, n));
  H3RT_RETURN_IF_ERROR(norm(block_.mlp_norm, n, n));
  H3RT_RETURN_IF_ERROR(linear(block_.w0, n, gate));
  H3RT_RETURN_IF_ERROR(linear(block_.w1, n, value));
  H3RT_RETURN_IF_ERROR(Activate(Pointwise::kGeluTanh, gate, gate, context));
  H3RT_RETURN_IF_ERROR(ForChunks(gate.elements(), context, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gate.as<float>()[i] *= value.as<float>()[i];
  }));
  const TensorView mlp = small(4, c);
  H3RT_RETURN_IF_ERROR(linear(block_.w2, gate, mlp));
  return Residual(y, mlp, context);
}

absl::Status WaveEncoder::Run(Scratch& scratch, const TensorView& means,
                              const ExecContext& context) const {
  const int64_t a = means.dim(1);
  const int64_t c = config_.latent_channels;
  int64_t n = a * Hop(config_);
  int64_t channels = config_.encoder_dim;
  H3RT_RETURN_IF_ERROR(Conv1d(conv_in_, {.pad = (kInKernel - 1) / 2},
                              ScratchView(scratch.wave[0], {1, n}),
                              ScratchView(scratch.wave[1], {channels, n}), context));
  std::swap(scratch.wave[0], scratch.wave[1]);
  for (const Level& level : levels_) {
    H3RT_RETURN_IF_ERROR(RunLevel(level, channels, n, scratch, context));
    n /= level.rate;
    channels *= 2;
  }
  const TensorView x = ScratchView(scratch.wave[0], {channels, n});
  const TensorView features = ScratchView(scratch.wave[1], {config_.latent_dim, n});
  H3RT_RETURN_IF_ERROR(Snake({.x = x, .alpha = alpha_, .y = x}, context));
  H3RT_RETURN_IF_ERROR(Conv1d(conv_out_, {.pad = (kOutKernel - 1) / 2}, x, features, context));
  TransposeInto(features, scratch.tokens.view());
  const TensorView y = TensorView::Of(scratch.small.as<float>(), {a, c});
  H3RT_RETURN_IF_ERROR(RunPreBlock(scratch, a, y, context));
  const TensorView mean = TensorView::Of(scratch.qkv.as<float>(), {a, c});
  H3RT_RETURN_IF_ERROR(
      Linear({.x = y, .weight = mean_proj_.weight, .bias = mean_proj_.bias, .y = mean}, context));
  TransposeInto(mean, means);
  return absl::OkStatus();
}

}  // namespace h3rt::audio_vae
