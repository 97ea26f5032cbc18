#include "h3rt/model/audio_vae/decoder.h"

#include <algorithm>
#include <utility>

#include "h3rt/cpu/chunks.h"
#include "h3rt/kernels/activation/activation.h"
#include "h3rt/kernels/conv/conv.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/tensor/scratch_view.h"

namespace h3rt::audio_vae {
namespace {

constexpr int64_t kEdgeKernel = 7;  // of conv_pre and conv_post
constexpr int64_t kFilterTaps = 12;

// Channels after stage i; -1 is before the first.
int64_t StageChannels(const AudioVaeConfig& config, int64_t i) {
  return config.decoder_dim >> (i + 1);
}

// Most elements that any activation has for `a` latents.
int64_t MostElements(const AudioVaeConfig& config, int64_t a) {
  int64_t n = a;
  int64_t most = std::max(config.latent_dim, config.decoder_dim) * n;
  for (size_t i = 0; i < config.decoder_rates.size(); ++i) {
    n *= config.decoder_rates[i];
    most = std::max(most, StageChannels(config, static_cast<int64_t>(i)) * n);
  }
  return most;
}

// Most floats that the ops hold for one thread.
int64_t MostPanel(const AudioVaeConfig& config, int64_t a) {
  int64_t n = a;
  int64_t most = Conv1dPanel({.ci = config.latent_dim, .k = kEdgeKernel}, n);
  const int64_t widest =
      *std::max_element(config.resblock_kernels.begin(), config.resblock_kernels.end());
  for (size_t i = 0; i < config.decoder_rates.size(); ++i) {
    n *= config.decoder_rates[i];
    const int64_t co = StageChannels(config, static_cast<int64_t>(i));
    const Conv1dShape up = {.ci = 2 * co, .co = co, .k = config.decoder_kernels[i]};
    most = std::max({most, ConvTranspose1dPanel(up, config.decoder_rates[i]),
                     Conv1dPanel({.ci = co, .k = widest}, n)});
  }
  return most;
}

absl::Status AddInto(const TensorView& x, const ConstTensorView& y, const ExecContext& context) {
  return GatedResidual({.x = x, .gate = {}, .row = {}, .y = y}, context);
}

}  // namespace

absl::StatusOr<WaveDecoder::Activation> WaveDecoder::LoadActivation(const WeightStore& weights,
                                                                    const std::string& at,
                                                                    int64_t channels) {
  const Shape filter = {1, 1, kFilterTaps};
  Activation act;
  H3RT_ASSIGN_OR_RETURN(act.alpha, GetVector(weights, at + ".act.alpha", Shape({channels})));
  H3RT_ASSIGN_OR_RETURN(act.beta, GetVector(weights, at + ".act.beta", Shape({channels})));
  H3RT_ASSIGN_OR_RETURN(act.up, GetVector(weights, at + ".upsample.filter", filter));
  H3RT_ASSIGN_OR_RETURN(act.down, GetVector(weights, at + ".downsample.lowpass.filter", filter));
  return act;
}

absl::StatusOr<WaveDecoder::AmpBlock> WaveDecoder::LoadBlock(const AudioVaeConfig& config,
                                                             const WeightStore& weights,
                                                             size_t stage, size_t kind) {
  const size_t kinds = config.resblock_kernels.size();
  const std::string at = "decoder.resblocks." + std::to_string(kinds * stage + kind) + ".";
  const int64_t channels = StageChannels(config, static_cast<int64_t>(stage));
  AmpBlock block;
  block.kernel = config.resblock_kernels[kind];
  const Conv1dShape shape = {.ci = channels, .co = channels, .k = block.kernel};
  const std::vector<int64_t>& dilations = config.resblock_dilations[kind];
  for (size_t m = 0; m < dilations.size(); ++m) {
    const std::string index = std::to_string(m);
    Residual r;
    r.dilation = dilations[m];
    H3RT_ASSIGN_OR_RETURN(r.conv1, GetConv1d(weights, at + "convs1." + index, shape));
    H3RT_ASSIGN_OR_RETURN(r.conv2, GetConv1d(weights, at + "convs2." + index, shape));
    const std::string acts = at + "activations.";
    H3RT_ASSIGN_OR_RETURN(r.act1, LoadActivation(weights, acts + std::to_string(2 * m), channels));
    H3RT_ASSIGN_OR_RETURN(r.act2,
                          LoadActivation(weights, acts + std::to_string(2 * m + 1), channels));
    block.residuals.push_back(r);
  }
  return block;
}

absl::StatusOr<WaveDecoder> WaveDecoder::Create(const AudioVaeConfig& config,
                                                const WeightStore& weights) {
  WaveDecoder decoder;
  decoder.config_ = config;
  const int64_t dim = config.decoder_dim;
  H3RT_ASSIGN_OR_RETURN(
      decoder.in_proj_,
      GetConv1d(weights, "dec_in_proj", {.ci = config.latent_channels, .co = config.latent_dim}));
  H3RT_ASSIGN_OR_RETURN(decoder.conv_pre_,
                        GetConv1d(weights, "decoder.conv_pre",
                                  {.ci = config.latent_dim, .co = dim, .k = kEdgeKernel}));
  for (size_t i = 0; i < config.decoder_rates.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    Stage stage;
    stage.rate = config.decoder_rates[i];
    stage.kernel = config.decoder_kernels[i];
    H3RT_ASSIGN_OR_RETURN(stage.up,
                          GetConvTranspose1d(weights, "decoder.ups." + std::to_string(i) + ".0",
                                             {.ci = StageChannels(config, number - 1),
                                              .co = StageChannels(config, number),
                                              .k = stage.kernel}));
    for (size_t j = 0; j < config.resblock_kernels.size(); ++j) {
      H3RT_ASSIGN_OR_RETURN(AmpBlock block, LoadBlock(config, weights, i, j));
      stage.blocks.push_back(std::move(block));
    }
    decoder.stages_.push_back(std::move(stage));
  }
  const int64_t last = StageChannels(config, static_cast<int64_t>(decoder.stages_.size()) - 1);
  H3RT_ASSIGN_OR_RETURN(decoder.post_, LoadActivation(weights, "decoder.activation_post", last));
  H3RT_ASSIGN_OR_RETURN(
      decoder.conv_post_,
      GetConv1d(weights, "decoder.conv_post", {.ci = last, .co = 1, .k = kEdgeKernel}, true));
  return decoder;
}

absl::StatusOr<WaveDecoder::Scratch> WaveDecoder::MakeScratch(const AudioVaeConfig& config,
                                                              int64_t latents) {
  const Shape shape = {MostElements(config, latents)};
  Scratch scratch;
  for (Tensor& buffer : scratch) {
    H3RT_ASSIGN_OR_RETURN(buffer, Tensor::Create(DType::kF32, shape));
  }
  return scratch;
}

uint64_t WaveDecoder::ScratchBytes(const AudioVaeConfig& config, int64_t latents, int threads) {
  const int64_t buffers = std::tuple_size_v<Scratch> * MostElements(config, latents);
  return static_cast<uint64_t>(buffers + threads * MostPanel(config, latents)) * sizeof(float);
}

absl::Status WaveDecoder::Act(const Activation& act, const ConstTensorView& x, const TensorView& y,
                              const ExecContext& context) {
  return AntiAliasedSnake({.x = x,
                           .alpha = act.alpha,
                           .beta = act.beta,
                           .up_filter = act.up,
                           .down_filter = act.down,
                           .y = y},
                          context);
}

// In scratch[2]: x += conv2(act(conv1(act(x)))) for every residual.
absl::Status WaveDecoder::RunBlock(const AmpBlock& block, int64_t channels, int64_t n,
                                   Scratch& scratch, const ExecContext& context) {
  const TensorView x = ScratchView(scratch[2], {channels, n});
  const TensorView acted = ScratchView(scratch[3], {channels, n});
  const TensorView made = ScratchView(scratch[4], {channels, n});
  for (const Residual& r : block.residuals) {
    const int64_t reach = (block.kernel - 1) / 2;
    H3RT_RETURN_IF_ERROR(Act(r.act1, x, acted, context));
    H3RT_RETURN_IF_ERROR(
        Conv1d(r.conv1, {.dilation = r.dilation, .pad = reach * r.dilation}, acted, made, context));
    H3RT_RETURN_IF_ERROR(Act(r.act2, made, acted, context));
    H3RT_RETURN_IF_ERROR(Conv1d(r.conv2, {.pad = reach}, acted, made, context));
    H3RT_RETURN_IF_ERROR(AddInto(x, made, context));
  }
  return absl::OkStatus();
}

// scratch[0] holds the stage's input before and its output, the mean over its blocks, after.
// `channels` and `n` are those of the output.
absl::Status WaveDecoder::RunStage(const Stage& stage, int64_t channels, int64_t n,
                                   Scratch& scratch, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(
      ConvTranspose1d({.x = ScratchView(scratch[0], {2 * channels, n / stage.rate}),
                       .weight = stage.up.weight,
                       .bias = stage.up.bias,
                       .y = ScratchView(scratch[1], {channels, n}),
                       .stride = stage.rate,
                       .pad = (stage.kernel - stage.rate) / 2},
                      context));
  std::swap(scratch[0], scratch[1]);
  const TensorView input = ScratchView(scratch[0], {channels, n});
  for (size_t j = 0; j < stage.blocks.size(); ++j) {
    H3RT_RETURN_IF_ERROR(CopyElements(input, ScratchView(scratch[2], {channels, n})));
    H3RT_RETURN_IF_ERROR(RunBlock(stage.blocks[j], channels, n, scratch, context));
    if (j == 0) {
      std::swap(scratch[1], scratch[2]);
    } else {
      H3RT_RETURN_IF_ERROR(AddInto(ScratchView(scratch[1], {channels, n}),
                                   ScratchView(scratch[2], {channels, n}), context));
    }
  }
  std::swap(scratch[0], scratch[1]);
  float* mean = scratch[0].as<float>();
  const auto count = static_cast<float>(stage.blocks.size());
  return ForChunks(channels * n, context, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) mean[i] /= count;
  });
}

absl::Status WaveDecoder::Run(const ConstTensorView& z, Scratch& scratch, const TensorView& samples,
                              const ExecContext& context) const {
  int64_t n = z.dim(1);
  int64_t channels = config_.decoder_dim;
  const TensorView wide = ScratchView(scratch[1], {config_.latent_dim, n});
  H3RT_RETURN_IF_ERROR(Conv1d(in_proj_, {}, z, wide, context));
  H3RT_RETURN_IF_ERROR(Conv1d(conv_pre_, {.pad = (kEdgeKernel - 1) / 2}, wide,
                              ScratchView(scratch[0], {channels, n}), context));
  for (const Stage& stage : stages_) {
    n *= stage.rate;
    channels /= 2;
    H3RT_RETURN_IF_ERROR(RunStage(stage, channels, n, scratch, context));
  }
  const TensorView acted = ScratchView(scratch[1], {channels, n});
  H3RT_RETURN_IF_ERROR(Act(post_, ScratchView(scratch[0], {channels, n}), acted, context));
  H3RT_RETURN_IF_ERROR(Conv1d(conv_post_, {.pad = (kEdgeKernel - 1) / 2}, acted, samples, context));
  float* out = samples.as<float>();
  return ForChunks(samples.elements(), context, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = std::clamp(out[i], -1.0f, 1.0f);
  });
}

}  // namespace h3rt::audio_vae
