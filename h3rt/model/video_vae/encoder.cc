#include "h3rt/model/video_vae/encoder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "h3rt/kernels/conv/conv.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/tensor/scratch_view.h"

namespace h3rt::video_vae {
namespace {

// Zero frames in front of every 3x3x3 convolution.
constexpr int64_t kPast = 2;

struct Border {
  int64_t begin = 1;  // above and to the left
  int64_t end = 1;    // below and to the right
};

// Pads rows and columns by reflection: -1 is 1, n is n - 2. Wants extents of at least 2.
absl::Status ReflectPad(const ConstTensorView& x, const Border& border, const TensorView& y,
                        const ExecContext& context) {
  const int64_t h = x.dim(2);
  const int64_t w = x.dim(3);
  const int64_t oh = y.dim(2);
  const int64_t ow = y.dim(3);
  H3RT_CHECK(h >= 2 && w >= 2 && oh == h + border.begin + border.end &&
             ow == w + border.begin + border.end);
  const auto reflect = [](int64_t i, int64_t n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; };
  return context.ParallelFor(x.dim(0) * x.dim(1), [&](int64_t plane) {
    const float* from = x.as<float>() + plane * h * w;
    float* to = y.as<float>() + plane * oh * ow;
    for (int64_t r = 0; r < oh; ++r) {
      const float* row = from + reflect(r - border.begin, h) * w;
      for (int64_t k = 0; k < border.begin; ++k) to[k] = row[reflect(k - border.begin, w)];
      std::copy_n(row, w, to + border.begin);
      for (int64_t k = w; k < w + border.end; ++k) to[border.begin + k] = row[reflect(k, w)];
      to += ow;
    }
    return absl::OkStatus();
  });
}

struct ConvStride {
  int64_t t = 1;
  int64_t s = 1;
};

Shape ConvOutput(const Shape& x, int64_t co, const Border& border, const ConvStride& stride) {
  const int64_t grown = border.begin + border.end - 3;
  return {co, (x[1] + kPast - 3) / stride.t + 1, (x[2] + grown) / stride.s + 1,
          (x[3] + grown) / stride.s + 1};
}

// Reflect padding first, zero frames second, then the convolution: from `from` through `padded`
// into `to`. Changes `shape` to that of the result.
absl::Status CausalConv(const Affine& conv, const Border& border, const ConvStride& stride,
                        Shape& shape, Tensor& from, Tensor& padded, Tensor& to,
                        const ExecContext& context) {
  const int64_t grown = border.begin + border.end;
  const TensorView framed =
      ScratchView(padded, {shape[0], shape[1], shape[2] + grown, shape[3] + grown});
  H3RT_RETURN_IF_ERROR(ReflectPad(ScratchView(from, shape), border, framed, context));
  shape = ConvOutput(shape, conv.weight.dim(0), border, stride);
  return Conv3d({.x = framed,
                 .weight = conv.weight,
                 .bias = conv.bias,
                 .y = ScratchView(to, shape),
                 .stride = {stride.t, stride.s, stride.s},
                 .pad_begin = {kPast, 0, 0}},
                context);
}

absl::Status PointwiseConv(const Affine& conv, const Shape& shape, Tensor& from, Tensor& to,
                           const ExecContext& context) {
  const Shape out = {conv.weight.dim(0), shape[1], shape[2], shape[3]};
  return Conv3d({.x = ScratchView(from, shape),
                 .weight = conv.weight,
                 .bias = conv.bias,
                 .y = ScratchView(to, out)},
                context);
}

// Largest element counts of the three buffers. Follows TileEncoder::Run step by step; ScratchView
// stops the program if the two ever differ.
struct Sizes {
  int64_t activation = 0;
  int64_t padded = 0;
  // Floats that the convolution op holds for a thread, as the op itself says.
  int64_t panels = 0;

  void Activation(const Shape& shape) { activation = std::max(activation, shape.elements()); }
  void Padded(const Shape& s, int64_t grown) {
    padded = std::max(padded, s[0] * s[1] * (s[2] + grown) * (s[3] + grown));
  }
  void Conv(Shape& shape, int64_t co, const Border& border, const ConvStride& stride) {
    Padded(shape, border.begin + border.end);
    const int64_t depth = shape[0] * 27;
    shape = ConvOutput(shape, co, border, stride);
    const int64_t positions = shape[1] * shape[2] * shape[3];
    panels = std::max(panels, ConvScratchBytes(co, depth, positions, DType::kF32) /
                                  static_cast<int64_t>(sizeof(float)));
    Activation(shape);
  }
};

Sizes SizesOf(const VideoVaeConfig& config, int64_t frames, int64_t height, int64_t width) {
  Sizes sizes;
  Shape shape = {config.in_channels, frames, height, width};
  sizes.Activation(shape);
  sizes.Conv(shape, config.block_out_channels[0], {}, {});
  for (size_t i = 0; i < config.block_out_channels.size(); ++i) {
    const int64_t co = config.block_out_channels[i];
    for (int64_t b = 0; b < config.layers_per_block; ++b) {
      const bool widened = shape[0] != co;
      sizes.Conv(shape, co, {}, {});
      sizes.Conv(shape, co, {}, {});
      if (widened) sizes.Padded(shape, 0);
    }
    const ConvStride stride = {config.temporal_factors[i], config.spatial_factors[i]};
    if (stride.t * stride.s > 1) sizes.Conv(shape, co, {0, 1}, stride);
  }
  sizes.Conv(shape, 2 * config.latent_channels, {}, {});
  return sizes;
}

}  // namespace

absl::StatusOr<TileEncoder::ResBlock> TileEncoder::LoadBlock(const WeightStore& weights,
                                                             const std::string& at, int64_t ci,
                                                             int64_t co) {
  ResBlock block;
  H3RT_ASSIGN_OR_RETURN(block.norm1, GetAffine(weights, at + "norm1", {ci}));
  H3RT_ASSIGN_OR_RETURN(block.conv1, GetAffine(weights, at + "conv1", {co, ci, 3, 3, 3}));
  H3RT_ASSIGN_OR_RETURN(block.norm2, GetAffine(weights, at + "norm2", {co}));
  H3RT_ASSIGN_OR_RETURN(block.conv2, GetAffine(weights, at + "conv2", {co, co, 3, 3, 3}));
  if (ci != co) {
    H3RT_ASSIGN_OR_RETURN(block.shortcut,
                          GetAffine(weights, at + "conv_shortcut", {co, ci, 1, 1, 1}));
  }
  return block;
}

absl::StatusOr<TileEncoder> TileEncoder::Create(const VideoVaeConfig& config,
                                                const WeightStore& weights) {
  TileEncoder encoder;
  encoder.config_ = config;
  const std::vector<int64_t>& channels = config.block_out_channels;
  H3RT_ASSIGN_OR_RETURN(encoder.conv_in_, GetAffine(weights, "encoder.conv_in",
                                                    {channels[0], config.in_channels, 3, 3, 3}));
  int64_t ci = channels[0];
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::string at = "encoder.down_blocks." + std::to_string(i) + ".";
    const int64_t co = channels[i];
    Level level;
    for (int64_t b = 0; b < config.layers_per_block; ++b) {
      H3RT_ASSIGN_OR_RETURN(ResBlock block,
                            LoadBlock(weights, at + "resnets." + std::to_string(b) + ".", ci, co));
      level.blocks.push_back(block);
      ci = co;
    }
    level.temporal = config.temporal_factors[i];
    level.spatial = config.spatial_factors[i];
    if (level.temporal * level.spatial > 1) {
      H3RT_ASSIGN_OR_RETURN(level.downsample,
                            GetAffine(weights, at + "downsamplers.0.conv", {co, co, 3, 3, 3}));
    }
    encoder.levels_.push_back(std::move(level));
  }
  const int64_t moments = 2 * config.latent_channels;
  H3RT_ASSIGN_OR_RETURN(encoder.norm_out_, GetAffine(weights, "encoder.norm_out", {ci}));
  H3RT_ASSIGN_OR_RETURN(encoder.conv_out_,
                        GetAffine(weights, "encoder.conv_out", {moments, ci, 3, 3, 3}));
  H3RT_ASSIGN_OR_RETURN(encoder.quant_,
                        GetAffine(weights, "quant_conv", {moments, moments, 1, 1, 1}));
  return encoder;
}

absl::Status TileEncoder::ValidateExtent(const VideoVaeConfig& config, int64_t height,
                                         int64_t width) {
  int64_t factor = 1;
  for (const int64_t f : config.spatial_factors) factor *= f;
  // The last level is the smallest, and its convolutions pad too.
  if (height / factor >= 2 && width / factor >= 2) return absl::OkStatus();
  const std::string least = std::to_string(2 * factor);
  return InvalidArgument(
      {.what = "height x width of pixels to encode is too small for reflect padding",
       .got = std::to_string(height) + " x " + std::to_string(width),
       .wanted = "at least " + least + " x " + least,
       .where = "video VAE encode"});
}

absl::StatusOr<TileEncoder::Scratch> TileEncoder::MakeScratch(const VideoVaeConfig& config,
                                                              int64_t frames, int64_t height,
                                                              int64_t width) {
  const Sizes sizes = SizesOf(config, frames, height, width);
  Scratch scratch;
  H3RT_ASSIGN_OR_RETURN(scratch.x, Tensor::Create(DType::kF32, {sizes.activation}));
  H3RT_ASSIGN_OR_RETURN(scratch.y, Tensor::Create(DType::kF32, {sizes.activation}));
  H3RT_ASSIGN_OR_RETURN(scratch.padded, Tensor::Create(DType::kF32, {sizes.padded}));
  return scratch;
}

uint64_t TileEncoder::ScratchBytes(const VideoVaeConfig& config, int64_t frames, int64_t height,
                                   int64_t width, int threads) {
  const Sizes sizes = SizesOf(config, frames, height, width);
  return static_cast<uint64_t>(2 * sizes.activation + sizes.padded + threads * sizes.panels) *
         sizeof(float);
}

TensorView TileEncoder::Input(const VideoVaeConfig& config, Scratch& scratch, int64_t frames,
                              int64_t height, int64_t width) {
  return ScratchView(scratch.x, {config.in_channels, frames, height, width});
}

absl::Status TileEncoder::Normalise(const Affine& norm, const TensorView& x, const TensorView& y,
                                    const ExecContext& context) const {
  return GroupNorm({.x = x,
                    .weight = norm.weight,
                    .bias = norm.bias,
                    .y = y,
                    .groups = config_.norm_groups,
                    .eps = config_.norm_eps,
                    .silu = true},
                   context);
}

// x -> shortcut(x) + conv2(silu(norm2(conv1(silu(norm1(x)))))), in scratch.x.
absl::Status TileEncoder::RunBlock(const ResBlock& block, Shape& shape, Scratch& scratch,
                                   const ExecContext& context) const {
  Tensor& x = scratch.x;
  Tensor& y = scratch.y;
  const Shape before = shape;
  H3RT_RETURN_IF_ERROR(
      Normalise(block.norm1, ScratchView(x, shape), ScratchView(y, shape), context));
  H3RT_RETURN_IF_ERROR(CausalConv(block.conv1, {}, {}, shape, y, scratch.padded, y, context));
  H3RT_RETURN_IF_ERROR(
      Normalise(block.norm2, ScratchView(y, shape), ScratchView(y, shape), context));
  H3RT_RETURN_IF_ERROR(CausalConv(block.conv2, {}, {}, shape, y, scratch.padded, y, context));
  Tensor* identity = &x;
  if (block.shortcut) {
    identity = &scratch.padded;
    H3RT_RETURN_IF_ERROR(PointwiseConv(*block.shortcut, before, x, scratch.padded, context));
  }
  const Shape rows = {shape[0] * shape[1], shape[2] * shape[3]};
  H3RT_RETURN_IF_ERROR(GatedResidual(
      {.x = ScratchView(y, rows), .gate = {}, .row = {}, .y = ScratchView(*identity, rows)},
      context));
  std::swap(x, y);
  return absl::OkStatus();
}

absl::StatusOr<ConstTensorView> TileEncoder::Run(Scratch& scratch, int64_t frames, int64_t height,
                                                 int64_t width, const ExecContext& context) const {
  Shape shape = {config_.in_channels, frames, height, width};
  Tensor& x = scratch.x;
  Tensor& y = scratch.y;
  H3RT_RETURN_IF_ERROR(CausalConv(conv_in_, {}, {}, shape, x, scratch.padded, x, context));
  for (const Level& level : levels_) {
    for (const ResBlock& block : level.blocks) {
      H3RT_RETURN_IF_ERROR(RunBlock(block, shape, scratch, context));
    }
    if (level.downsample) {
      const ConvStride stride = {level.temporal, level.spatial};
      H3RT_RETURN_IF_ERROR(
          CausalConv(*level.downsample, {0, 1}, stride, shape, x, scratch.padded, x, context));
    }
  }
  H3RT_RETURN_IF_ERROR(Normalise(norm_out_, ScratchView(x, shape), ScratchView(x, shape), context));
  H3RT_RETURN_IF_ERROR(CausalConv(conv_out_, {}, {}, shape, x, scratch.padded, x, context));
  H3RT_RETURN_IF_ERROR(PointwiseConv(quant_, shape, x, y, context));
  const int64_t t = config_.temporal_factor();
  const int64_t s = config_.spatial_factor();
  const Shape promised = {2 * config_.latent_channels, (frames + t - 1) / t, height / s, width / s};
  if (shape != promised) {
    return Internal({.what = "moments of a tile",
                     .got = shape.ToString(),
                     .wanted = promised.ToString(),
                     .where = "video VAE encoder"});
  }
  return ConstTensorView(ScratchView(y, shape));
}

}  // namespace h3rt::video_vae
