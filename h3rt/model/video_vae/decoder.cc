#include "h3rt/model/video_vae/decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "h3rt/kernels/activation/activation.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/kernels/rope/rope.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"
#include "h3rt/tensor/scratch_view.h"

namespace h3rt::video_vae {
namespace {

// The decoder's numbers that follow from the configuration.
struct Widths {
  int64_t width = 0;
  int64_t ffn = 0;
  int64_t patch = 0;  // pixels values of a token
  int64_t half = 0;   // rotated pairs of a head
  int64_t axis = 0;   // frequencies an axis

  explicit Widths(const VideoVaeConfig& config) {
    const int64_t spatial = config.spatial_factor();
    width = config.decoder_width();
    ffn = width * config.decoder_ffn_mult;
    patch = config.out_channels * config.temporal_factor() * spatial * spatial;
    axis =
        std::llround(static_cast<double>(config.decoder_head_dim) * config.decoder_rope_ratio) / 6;
    half = 3 * axis;
  }
};

int64_t Tokens(const Grid& grid) { return grid[0] * grid[1] * grid[2]; }
// One zero token follows the registers.
int64_t Suffix(const VideoVaeConfig& config) { return config.decoder_registers + 1; }

int64_t NormedColumns(const VideoVaeConfig& config) {
  return std::max(config.decoder_width(), config.latent_channels);
}

int64_t WideColumns(const VideoVaeConfig& config) {
  const Widths w(config);
  return std::max({3 * w.width, 2 * w.ffn, w.patch, config.latent_channels});
}

// `view` as F32 of `shape`: itself, or a copy in `owned` when it is of half precision.
absl::StatusOr<ConstTensorView> AsF32(const ConstTensorView& view, const Shape& shape,
                                      std::vector<Tensor>& owned) {
  if (!view.contiguous()) {
    return DataLoss({.what = "a small weight of the video VAE is not contiguous"});
  }
  if (view.dtype() == DType::kF32) return view.Reshape(shape);
  if (view.dtype() != DType::kBF16 && view.dtype() != DType::kF16) {
    return DataLoss({.what = "dtype of a small weight of the video VAE",
                     .got = std::string(NameOf(view.dtype())),
                     .wanted = "F32, BF16 or F16"});
  }
  H3RT_ASSIGN_OR_RETURN(Tensor wide, Tensor::Create(DType::kF32, shape));
  const bool bf16 = view.dtype() == DType::kBF16;
  const uint16_t* from = view.as<uint16_t>();
  float* to = wide.as<float>();
  for (int64_t i = 0; i < wide.elements(); ++i) {
    to[i] = bf16 ? Bf16ToFloat(from[i]) : F16ToFloat(from[i]);
  }
  owned.push_back(std::move(wide));
  return std::as_const(owned.back()).view();
}

// Angles of an axis position: (2 (i + 0.5) / n - 1) * 2 pi * theta^(-k / f), with the roundings of
// the float32 reference; only the sine and cosine themselves are taken in float64.
void FillRope(const VideoVaeConfig& config, TileDecoder::Scratch& scratch) {
  const Widths w(config);
  const int64_t tokens = Tokens(scratch.grid);
  std::vector<float> frequency(static_cast<size_t>(w.axis));
  for (int64_t k = 0; k < w.axis; ++k) {
    const double exponent = static_cast<double>(k) / static_cast<double>(w.axis);
    frequency[static_cast<size_t>(k)] =
        static_cast<float>(1.0 / std::pow(config.decoder_rope_theta, exponent));
  }
  float* cos = scratch.cos.as<float>();
  float* sin = scratch.sin.as<float>();
  for (int64_t row = 0; row < tokens; ++row) {
    const Grid at = {row / (scratch.grid[1] * scratch.grid[2]),
                     row / scratch.grid[2] % scratch.grid[1], row % scratch.grid[2]};
    for (size_t a = 0; a < 3; ++a) {
      const float unit = (static_cast<float>(at[a]) + 0.5f) / static_cast<float>(scratch.grid[a]);
      const float position = (2.0f * unit - 1.0f) * static_cast<float>(2.0 * std::numbers::pi);
      for (int64_t k = 0; k < w.axis; ++k) {
        const float angle = position * frequency[static_cast<size_t>(k)];
        *cos++ = static_cast<float>(std::cos(static_cast<double>(angle)));
        *sin++ = static_cast<float>(std::sin(static_cast<double>(angle)));
      }
    }
  }
  // Registers and the zero token lie at coordinate 0.
  std::fill_n(cos, Suffix(config) * w.half, 1.0f);
  std::fill_n(sin, Suffix(config) * w.half, 0.0f);
}

}  // namespace

absl::StatusOr<TileDecoder::Block> TileDecoder::LoadBlock(const VideoVaeConfig& config,
                                                          const WeightStore& weights, int64_t i,
                                                          std::vector<Tensor>& owned) {
  const Widths w(config);
  const std::string at = "decoder.transformer_blocks." + std::to_string(i) + ".";
  const Shape vector = {w.width};
  const Shape square = {w.width, w.width};
  Block block;
  H3RT_ASSIGN_OR_RETURN(block.norm1, weights.Get(at + "norm1.weight", vector));
  H3RT_ASSIGN_OR_RETURN(block.norm2, weights.Get(at + "norm2.weight", vector));
  H3RT_ASSIGN_OR_RETURN(block.scale1, weights.Get(at + "scale1", vector));
  H3RT_ASSIGN_OR_RETURN(block.scale1, AsF32(block.scale1, {1, w.width}, owned));
  H3RT_ASSIGN_OR_RETURN(block.scale2, weights.Get(at + "scale2", vector));
  H3RT_ASSIGN_OR_RETURN(block.scale2, AsF32(block.scale2, {1, w.width}, owned));
  H3RT_ASSIGN_OR_RETURN(block.q, GetAffine(weights, at + "attn.to_q", square));
  H3RT_ASSIGN_OR_RETURN(block.k, GetAffine(weights, at + "attn.to_k", square));
  H3RT_ASSIGN_OR_RETURN(block.v, GetAffine(weights, at + "attn.to_v", square));
  H3RT_ASSIGN_OR_RETURN(block.out, GetAffine(weights, at + "attn.to_out.0", square));
  H3RT_ASSIGN_OR_RETURN(block.gate, GetAffine(weights, at + "ff.gate", {w.ffn, w.width}));
  H3RT_ASSIGN_OR_RETURN(block.value, GetAffine(weights, at + "ff.value", {w.ffn, w.width}));
  H3RT_ASSIGN_OR_RETURN(block.ffn_out, GetAffine(weights, at + "ff.net.2", {w.width, w.ffn}));
  return block;
}

absl::StatusOr<TileDecoder> TileDecoder::Create(const VideoVaeConfig& config,
                                                const WeightStore& weights) {
  const Widths w(config);
  const int64_t c = config.latent_channels;
  TileDecoder decoder;
  decoder.config_ = config;
  H3RT_ASSIGN_OR_RETURN(decoder.post_quant_,
                        GetAffine(weights, "post_quant_conv", {c, c, 1, 1, 1}));
  if (!decoder.post_quant_.weight.contiguous()) {
    return DataLoss({.what = "post_quant_conv.weight is not contiguous"});
  }
  decoder.post_quant_.weight = decoder.post_quant_.weight.Reshape({c, c});
  H3RT_ASSIGN_OR_RETURN(decoder.proj_in_, GetAffine(weights, "decoder.proj_in", {w.width, c}));
  H3RT_ASSIGN_OR_RETURN(decoder.norm_out_, GetAffine(weights, "decoder.norm_out", {w.width}));
  H3RT_ASSIGN_OR_RETURN(decoder.proj_out_,
                        GetAffine(weights, "decoder.proj_out", {w.patch, w.width}));
  if (config.decoder_registers > 0) {
    H3RT_ASSIGN_OR_RETURN(decoder.registers_, weights.Get("decoder.register_tokens",
                                                          {1, config.decoder_registers, w.width}));
    H3RT_ASSIGN_OR_RETURN(
        decoder.registers_,
        AsF32(decoder.registers_, {config.decoder_registers, w.width}, decoder.owned_));
  }
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    H3RT_ASSIGN_OR_RETURN(Block block, LoadBlock(config, weights, i, decoder.owned_));
    decoder.blocks_.push_back(block);
  }
  return decoder;
}

absl::StatusOr<TileDecoder::Scratch> TileDecoder::MakeScratch(const Grid& grid) const {
  const int64_t rows = Tokens(grid) + Suffix(config_);
  const Widths w(config_);
  Scratch scratch;
  scratch.grid = grid;
  H3RT_ASSIGN_OR_RETURN(scratch.x, Tensor::Create(DType::kF32, {rows, w.width}));
  H3RT_ASSIGN_OR_RETURN(scratch.normed,
                        Tensor::Create(DType::kF32, {rows, NormedColumns(config_)}));
  H3RT_ASSIGN_OR_RETURN(scratch.wide, Tensor::Create(DType::kF32, {rows, WideColumns(config_)}));
  H3RT_ASSIGN_OR_RETURN(scratch.cos, Tensor::Create(DType::kF32, {rows, w.half}));
  H3RT_ASSIGN_OR_RETURN(scratch.sin, Tensor::Create(DType::kF32, {rows, w.half}));
  FillRope(config_, scratch);
  return scratch;
}

uint64_t TileDecoder::ScratchBytes(const VideoVaeConfig& config, const Grid& grid, int threads) {
  const Widths w(config);
  const int64_t rows = Tokens(grid) + Suffix(config);
  const int64_t columns = w.width + NormedColumns(config) + WideColumns(config) + 2 * w.half;
  // A linear layer holds, a thread, a tile of widened weight rows and the matrix product's packed
  // copy of up to 384 of their columns.
  const auto panel = [](int64_t n, int64_t k) {
    const int64_t tile = std::clamp<int64_t>((n / 16 + 63) / 64 * 64, 64, 512);
    return tile * (1040 + std::min<int64_t>(k, 384));
  };
  const int64_t panels =
      std::max({panel(w.width, w.ffn), panel(w.ffn, w.width), panel(w.patch, w.width)});
  return static_cast<uint64_t>(rows * columns + threads * panels) * sizeof(float);
}

absl::Status TileDecoder::Embed(const ConstTensorView& z, const Grid& origin, Scratch& scratch,
                                const ExecContext& context) const {
  const int64_t c = config_.latent_channels;
  const int64_t tokens = Tokens(scratch.grid);
  const int64_t width = config_.decoder_width();
  const TensorView gathered = ScratchView(scratch.wide, {tokens, c});
  float* to = gathered.as<float>();
  for (int64_t t = 0; t < scratch.grid[0]; ++t) {
    const int64_t frame = std::min(origin[0] + t, z.dim(1) - 1);
    for (int64_t h = 0; h < scratch.grid[1]; ++h) {
      for (int64_t x = 0; x < scratch.grid[2]; ++x) {
        const float* from = z.as<float>() + frame * z.stride(1) + (origin[1] + h) * z.stride(2) +
                            (origin[2] + x) * z.stride(3);
        for (int64_t i = 0; i < c; ++i) *to++ = from[i * z.stride(0)];
      }
    }
  }
  const TensorView mixed = ScratchView(scratch.normed, {tokens, c});
  H3RT_RETURN_IF_ERROR(
      Linear({.x = gathered, .weight = post_quant_.weight, .bias = post_quant_.bias, .y = mixed},
             context));
  const TensorView x = scratch.x.view();
  H3RT_RETURN_IF_ERROR(Linear(
      {.x = mixed, .weight = proj_in_.weight, .bias = proj_in_.bias, .y = x.Slice(0, 0, tokens)},
      context));
  float* suffix = scratch.x.as<float>() + tokens * width;
  if (config_.decoder_registers > 0) {
    suffix = std::copy_n(registers_.as<float>(), registers_.elements(), suffix);
  }
  std::fill_n(suffix, width, 0.0f);
  return absl::OkStatus();
}

absl::Status TileDecoder::Attend(const Block& block, Scratch& scratch,
                                 const ExecContext& context) const {
  const TensorView x = scratch.x.view();
  const int64_t rows = x.dim(0);
  const int64_t width = x.dim(1);
  const double eps = config_.decoder_norm_eps;
  const Shape flat = {rows, width};
  const Shape heads = {rows, config_.decoder_heads, config_.decoder_head_dim};
  const TensorView normed = ScratchView(scratch.normed, flat);
  const TensorView qkv = ScratchView(scratch.wide, {3, rows, width});
  H3RT_RETURN_IF_ERROR(RmsNorm({.x = x, .weight = block.norm1, .y = normed, .eps = eps}, context));
  const std::array<const Affine*, 3> projections = {&block.q, &block.k, &block.v};
  for (int64_t i = 0; i < 3; ++i) {
    const Affine& affine = *projections[static_cast<size_t>(i)];
    H3RT_RETURN_IF_ERROR(
        Linear({.x = normed, .weight = affine.weight, .bias = affine.bias, .y = qkv.Select(0, i)},
               context));
    if (i == 2) break;
    // Queries and keys: normalised head by head without a weight, then rotated.
    const TensorView part = qkv.Select(0, i).Reshape(heads);
    H3RT_RETURN_IF_ERROR(RmsNorm({.x = part, .weight = {}, .y = part, .eps = eps}, context));
    H3RT_RETURN_IF_ERROR(
        Rope({.x = part, .cos = scratch.cos.view(), .sin = scratch.sin.view()}, context));
  }
  H3RT_RETURN_IF_ERROR(Attention({.q = qkv.Select(0, 0).Reshape(heads),
                                  .k = qkv.Select(0, 1).Reshape(heads),
                                  .v = qkv.Select(0, 2).Reshape(heads),
                                  .o = normed.Reshape(heads)},
                                 context));
  const TensorView out = qkv.Select(0, 0);
  H3RT_RETURN_IF_ERROR(
      Linear({.x = normed, .weight = block.out.weight, .bias = block.out.bias, .y = out}, context));
  const std::vector<int32_t> row(static_cast<size_t>(rows), 0);
  return GatedResidual({.x = x, .gate = block.scale1, .row = row, .y = out}, context);
}

absl::Status TileDecoder::FeedForward(const Block& block, Scratch& scratch,
                                      const ExecContext& context) const {
  const TensorView x = scratch.x.view();
  const int64_t rows = x.dim(0);
  const int64_t ffn = x.dim(1) * config_.decoder_ffn_mult;
  const TensorView normed = ScratchView(scratch.normed, x.shape());
  const TensorView halves = ScratchView(scratch.wide, {2, rows, ffn});
  const TensorView gate = halves.Select(0, 0);
  const TensorView value = halves.Select(0, 1);
  H3RT_RETURN_IF_ERROR(RmsNorm(
      {.x = x, .weight = block.norm2, .y = normed, .eps = config_.decoder_norm_eps}, context));
  H3RT_RETURN_IF_ERROR(Linear(
      {.x = normed, .weight = block.gate.weight, .bias = block.gate.bias, .y = gate}, context));
  H3RT_RETURN_IF_ERROR(Linear(
      {.x = normed, .weight = block.value.weight, .bias = block.value.bias, .y = value}, context));
  H3RT_RETURN_IF_ERROR(SwiGlu({.gate = gate, .value = value, .y = gate}, context));
  H3RT_RETURN_IF_ERROR(
      Linear({.x = gate, .weight = block.ffn_out.weight, .bias = block.ffn_out.bias, .y = normed},
             context));
  const std::vector<int32_t> row(static_cast<size_t>(rows), 0);
  return GatedResidual({.x = x, .gate = block.scale2, .row = row, .y = normed}, context);
}

absl::StatusOr<ConstTensorView> TileDecoder::Run(const ConstTensorView& z, const Grid& origin,
                                                 Scratch& scratch,
                                                 const ExecContext& context) const {
  const Widths w(config_);
  const int64_t tokens = Tokens(scratch.grid);
  H3RT_RETURN_IF_ERROR(Embed(z, origin, scratch, context));
  for (const Block& block : blocks_) {
    H3RT_RETURN_IF_ERROR(Attend(block, scratch, context));
    H3RT_RETURN_IF_ERROR(FeedForward(block, scratch, context));
  }
  // Registers and the zero token have done their work; only pixels go on.
  const TensorView x = scratch.x.view().Slice(0, 0, tokens);
  const TensorView normed = ScratchView(scratch.normed, {tokens, w.width});
  H3RT_RETURN_IF_ERROR(LayerNorm({.x = x,
                                  .weight = norm_out_.weight,
                                  .bias = norm_out_.bias,
                                  .y = normed,
                                  .eps = config_.decoder_norm_eps},
                                 context));
  const TensorView patches = ScratchView(scratch.wide, {tokens, w.patch});
  H3RT_RETURN_IF_ERROR(Linear(
      {.x = normed, .weight = proj_out_.weight, .bias = proj_out_.bias, .y = patches}, context));
  return ConstTensorView(patches);
}

}  // namespace h3rt::video_vae
