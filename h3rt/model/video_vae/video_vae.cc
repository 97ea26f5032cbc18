#include "h3rt/model/video_vae/video_vae.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/base/stage.h"
#include "h3rt/cpu/chunks.h"
#include "h3rt/cpu/finite.h"
#include "h3rt/model/video_vae/blend.h"
#include "h3rt/model/video_vae/decoder.h"
#include "h3rt/model/video_vae/encoder.h"
#include "h3rt/model/video_vae/geometry.h"

namespace h3rt {
namespace {

using video_vae::AxisTiles;
using video_vae::ClipGeometry;
using video_vae::Grid;
using video_vae::Ramp;
using video_vae::TileAxis;
using video_vae::TileBlender;
using video_vae::TileDecoder;
using video_vae::TileEncoder;

constexpr const char* kDecode = "video VAE decode";
constexpr const char* kEncode = "video VAE encode";
constexpr double kLogVarianceMin = -30.0;
constexpr double kLogVarianceMax = 20.0;

// What one Decode or Encode does: spatial tiles in latents and in pixels, and the output's frames.
struct Tiles {
  AxisTiles rows;
  AxisTiles columns;

  Tiles(const VideoVaeConfig& config, int64_t latent_h, int64_t latent_w, const VaeTiling& tiling) {
    const int64_t factor = config.spatial_factor();
    rows = TileAxis(latent_h, tiling.tile / factor, tiling.overlap / factor);
    columns = TileAxis(latent_w, tiling.tile / factor, tiling.overlap / factor);
  }
  int64_t count() const { return rows.count() * columns.count(); }
};

absl::Status CheckInput(const ConstTensorView& x, int64_t channels, const char* what,
                        const std::string& wanted, const char* where) {
  const bool good = !x.is_null() && x.dtype() == DType::kF32 && x.rank() == 4 &&
                    x.dim(0) == channels && x.elements() > 0;
  if (good) return absl::OkStatus();
  return InvalidArgument({.what = what,
                          .got = std::string(NameOf(x.dtype())) + " " + x.shape().ToString(),
                          .wanted = "F32 " + wanted,
                          .where = where});
}

std::string Tile(int64_t number) { return "tile " + std::to_string(number); }

absl::Status Tick(const ExecContext& context, const VaeProgress& progress, int64_t done,
                  int64_t total, const char* where) {
  if (progress) H3RT_RETURN_IF_ERROR(progress(done, total));
  if (context.cancel != nullptr && context.cancel->cancelled()) return Cancelled(where);
  return absl::OkStatus();
}

// Latents that one encoder call keeps: the last clip's last ones are dropped, so they are not made.
int64_t KeptLatents(const ClipGeometry& clip, int64_t frames, int64_t number) {
  if (frames == 1) return 1;
  return number + 1 < clip.EncodeClips(frames) ? clip.latents : clip.overlap;
}

// Most latents of one encoder call: those of the first clip.
int64_t MostKeptLatents(const ClipGeometry& clip, int64_t frames) {
  return KeptLatents(clip, frames, 0);
}

int64_t MostEncodedFrames(const ClipGeometry& clip, int64_t frames) {
  if (frames == 1) return 1;
  return clip.FramesFor(MostKeptLatents(clip, frames));
}

}  // namespace

struct VideoVae::Impl {
  VideoVaeConfig config;
  ClipGeometry clip;
  TileEncoder encoder;
  TileDecoder decoder;

  // One tile's patches -> rows of the output, faded over time with what the last clip left there.
  absl::Status Place(const ConstTensorView& patches, int64_t chunk, const Tiles& tiles, int64_t i,
                     int64_t j, TileBlender& blender, Tensor& out,
                     const ExecContext& context) const;
  absl::Status DecodeChunk(const ConstTensorView& z, int64_t chunk, const Tiles& tiles,
                           TileDecoder::Scratch& scratch, TileBlender& blender, Tensor& out,
                           const ExecContext& context, const VaeProgress& progress) const;
  absl::Status EncodeClip(const ConstTensorView& pixels, int64_t number, const Tiles& tiles,
                          TileEncoder::Scratch& scratch, TileBlender& blender, Tensor& moments,
                          const ExecContext& context, const VaeProgress& progress) const;
};

VideoVae::VideoVae(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VideoVae::VideoVae(VideoVae&&) noexcept = default;
VideoVae& VideoVae::operator=(VideoVae&&) noexcept = default;
VideoVae::~VideoVae() = default;
const VideoVaeConfig& VideoVae::config() const { return impl_->config; }

absl::StatusOr<VideoVae> VideoVae::Create(const VideoVaeConfig& config,
                                          const WeightStore& weights) {
  H3RT_RETURN_IF_ERROR(config.Validate());
  const ClipGeometry clip = ClipGeometry::Of(config);
  H3RT_ASSIGN_OR_RETURN(TileEncoder encoder, TileEncoder::Create(config, weights));
  H3RT_ASSIGN_OR_RETURN(TileDecoder decoder, TileDecoder::Create(config, weights));
  return VideoVae(
      std::make_unique<Impl>(Impl{config, clip, std::move(encoder), std::move(decoder)}));
}

int64_t VideoVae::DecodedFrames(const VideoVaeConfig& config, int64_t latent_frames) {
  return ClipGeometry::Of(config).DecodedFrames(latent_frames);
}

absl::Status VideoVae::Impl::Place(const ConstTensorView& patches, int64_t chunk,
                                   const Tiles& tiles, int64_t i, int64_t j, TileBlender& blender,
                                   Tensor& out, const ExecContext& context) const {
  const int64_t s = config.spatial_factor();
  const int64_t frame_values = clip.factor * s * s;  // of one channel of one token
  const int64_t patch = patches.dim(1);
  const int64_t grid_h = tiles.rows.tile;
  const int64_t grid_w = tiles.columns.tile;
  const int64_t planes = clip.decoded_frames();  // a channel
  const int64_t frames = out.shape()[1];
  const int64_t height = out.shape()[2];
  const int64_t width = out.shape()[3];
  const Ramp fade(clip.fade);
  const auto read = [&](int64_t plane, int64_t y, float* row) {
    const int64_t raw = clip.RawFrame(plane % planes);
    const int64_t in_patch = plane / planes * frame_values + raw % clip.factor * s * s + y % s * s;
    const int64_t token = (raw / clip.factor * grid_h + y / s) * grid_w;
    const float* from = patches.as<float>() + token * patch + in_patch;
    for (int64_t x = 0; x < grid_w; ++x) std::copy_n(from + x * patch, s, row + x * s);
  };
  const auto write = [&](int64_t plane, int64_t y, int64_t x, std::span<const float> row) {
    const int64_t k = plane % planes;
    const int64_t frame = chunk * clip.frames + k;
    if (frame >= frames) return;  // belongs to repeated latents
    float* to = out.as<float>() + ((plane / planes * frames + frame) * height + y) * width + x;
    if (chunk == 0 || k >= clip.fade) {
      std::copy(row.begin(), row.end(), to);
      return;
    }
    // The last clip's overlap lies where this clip's body begins.
    const float a = fade.earlier[static_cast<size_t>(k)];
    const float b = fade.current[static_cast<size_t>(k)];
    for (size_t n = 0; n < row.size(); ++n) to[n] = to[n] * a + row[n] * b;
  };
  return blender.Add(i, j, config.out_channels * planes, read, write, context);
}

absl::Status VideoVae::Impl::DecodeChunk(const ConstTensorView& z, int64_t chunk,
                                         const Tiles& tiles, TileDecoder::Scratch& scratch,
                                         TileBlender& blender, Tensor& out,
                                         const ExecContext& context,
                                         const VaeProgress& progress) const {
  const int64_t total = clip.DecodeChunks(z.dim(1)) * tiles.count();
  for (int64_t i = 0; i < tiles.rows.count(); ++i) {
    for (int64_t j = 0; j < tiles.columns.count(); ++j) {
      const int64_t number = chunk * tiles.count() + i * tiles.columns.count() + j;
      const Grid origin = {chunk * clip.latents, tiles.rows.Start(i), tiles.columns.Start(j)};
      H3RT_ASSIGN_OR_RETURN(const ConstTensorView patches,
                            decoder.Run(z, origin, scratch, context));
      H3RT_RETURN_IF_ERROR(CheckProduced(patches, Tile(number), context));
      H3RT_RETURN_IF_ERROR(Place(patches, chunk, tiles, i, j, blender, out, context));
      H3RT_RETURN_IF_ERROR(Tick(context, progress, number + 1, total, kDecode));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> VideoVae::Decode(const ConstTensorView& z, const VaeTiling& tiling,
                                        const ExecContext& context,
                                        const VaeProgress& progress) const {
  const VideoVaeConfig& config = impl_->config;
  const ClipGeometry& clip = impl_->clip;
  H3RT_RETURN_IF_ERROR(CheckInput(z, config.latent_channels, "latents to decode",
                                  "[" + std::to_string(config.latent_channels) + ", t, h, w]",
                                  kDecode));
  if (z.dim(1) < clip.overlap) {
    return InvalidArgument(
        {.what = "latent frames to decode",
         .got = std::to_string(z.dim(1)),
         .wanted = "at least " + std::to_string(clip.overlap) +
                   " (clips overlap by that many; a still image is only ever encoded)",
         .where = kDecode});
  }
  H3RT_RETURN_IF_ERROR(ValidateTiling(config, tiling));
  H3RT_RETURN_IF_ERROR(InStage(RefuseNonFinite(z, "latents", context), kDecode));
  const Tiles tiles(config, z.dim(2), z.dim(3), tiling);
  const int64_t s = config.spatial_factor();
  H3RT_ASSIGN_OR_RETURN(
      Tensor out, Tensor::Create(DType::kF32, {config.out_channels, clip.DecodedFrames(z.dim(1)),
                                               z.dim(2) * s, z.dim(3) * s}));
  H3RT_ASSIGN_OR_RETURN(
      TileDecoder::Scratch scratch,
      impl_->decoder.MakeScratch({clip.decoded_latents(), tiles.rows.tile, tiles.columns.tile}));
  H3RT_ASSIGN_OR_RETURN(TileBlender blender,
                        TileBlender::Create(config.out_channels * clip.decoded_frames(),
                                            tiles.rows.Scaled(s), tiles.columns.Scaled(s)));
  H3RT_RETURN_IF_ERROR(Tick(context, {}, 0, 0, kDecode));
  for (int64_t chunk = 0; chunk < clip.DecodeChunks(z.dim(1)); ++chunk) {
    H3RT_RETURN_IF_ERROR(InStage(
        impl_->DecodeChunk(z, chunk, tiles, scratch, blender, out, context, progress), kDecode));
  }
  return out;
}

uint64_t VideoVae::DecodeBytes(const VideoVaeConfig& config, int64_t latent_frames,
                               int64_t latent_h, int64_t latent_w, const VaeTiling& tiling,
                               int threads) {
  const ClipGeometry clip = ClipGeometry::Of(config);
  const Tiles tiles(config, latent_h, latent_w, tiling);
  const int64_t s = config.spatial_factor();
  const int64_t out =
      config.out_channels * clip.DecodedFrames(latent_frames) * latent_h * s * latent_w * s;
  return static_cast<uint64_t>(out) * sizeof(float) +
         TileDecoder::ScratchBytes(
             config, {clip.decoded_latents(), tiles.rows.tile, tiles.columns.tile}, threads) +
         TileBlender::Bytes(config.out_channels * clip.decoded_frames(), tiles.rows.Scaled(s),
                            tiles.columns.Scaled(s));
}

absl::Status VideoVae::Impl::EncodeClip(const ConstTensorView& pixels, int64_t number,
                                        const Tiles& tiles, TileEncoder::Scratch& scratch,
                                        TileBlender& blender, Tensor& moments,
                                        const ExecContext& context,
                                        const VaeProgress& progress) const {
  const int64_t s = config.spatial_factor();
  const int64_t all = pixels.dim(1);
  const int64_t kept = KeptLatents(clip, all, number);
  const int64_t frames = all == 1 ? 1 : clip.FramesFor(kept);
  const int64_t height = tiles.rows.tile * s;
  const int64_t width = tiles.columns.tile * s;
  const int64_t first = number * clip.latents;  // latent of this clip in `moments`
  const Shape& shape = moments.shape();
  for (int64_t i = 0; i < tiles.rows.count(); ++i) {
    for (int64_t j = 0; j < tiles.columns.count(); ++j) {
      const TensorView input = TileEncoder::Input(config, scratch, frames, height, width);
      H3RT_RETURN_IF_ERROR(context.ParallelFor(frames, [&](int64_t f) {
        // The last frame is repeated where the clip is longer than what is left.
        const int64_t from = std::min(number * clip.frames + f, all - 1);
        const int64_t y = tiles.rows.Start(i) * s;
        const int64_t x = tiles.columns.Start(j) * s;
        return CopyElements(pixels.Select(1, from).Slice(1, y, y + height).Slice(2, x, x + width),
                            input.Select(1, f));
      }));
      H3RT_ASSIGN_OR_RETURN(const ConstTensorView tile,
                            encoder.Run(scratch, frames, height, width, context));
      const Shape promised = {shape[0], kept, tiles.rows.tile, tiles.columns.tile};
      if (tile.shape() != promised) {
        return Internal({.what = "moments of a tile",
                         .got = tile.shape().ToString(),
                         .wanted = promised.ToString()});
      }
      const int64_t place = number * tiles.count() + i * tiles.columns.count() + j;
      H3RT_RETURN_IF_ERROR(CheckProduced(tile, Tile(place), context));
      // Planes are (moment, latent kept of this clip).
      const auto read = [&](int64_t plane, int64_t y, float* row) {
        std::copy_n(tile.as<float>() + (plane * tile.dim(2) + y) * tile.dim(3), tile.dim(3), row);
      };
      const auto write = [&](int64_t plane, int64_t y, int64_t x, std::span<const float> row) {
        const int64_t at = plane / kept * shape[1] + first + plane % kept;
        std::copy(row.begin(), row.end(), moments.as<float>() + (at * shape[2] + y) * shape[3] + x);
      };
      H3RT_RETURN_IF_ERROR(blender.Add(i, j, shape[0] * kept, read, write, context));
      const int64_t total = (all == 1 ? 1 : clip.EncodeClips(all)) * tiles.count();
      H3RT_RETURN_IF_ERROR(Tick(context, progress, place + 1, total, kEncode));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> VideoVae::Encode(const ConstTensorView& pixels, const VaeTiling& tiling,
                                        const ExecContext& context,
                                        const VaeProgress& progress) const {
  const VideoVaeConfig& config = impl_->config;
  const ClipGeometry& clip = impl_->clip;
  const int64_t s = config.spatial_factor();
  const std::string multiple = std::to_string(s) + " k";
  const std::string wanted =
      "[" + std::to_string(config.in_channels) + ", f, " + multiple + ", " + multiple + "]";
  H3RT_RETURN_IF_ERROR(CheckInput(pixels, config.in_channels, "pixels to encode", wanted, kEncode));
  if (pixels.dim(2) % s != 0 || pixels.dim(3) % s != 0) {
    return InvalidArgument({.what = "pixels to encode",
                            .got = pixels.shape().ToString(),
                            .wanted = wanted,
                            .where = kEncode});
  }
  H3RT_RETURN_IF_ERROR(ValidateTiling(config, tiling));
  const Tiles tiles(config, pixels.dim(2) / s, pixels.dim(3) / s, tiling);
  const int64_t height = tiles.rows.tile * s;
  const int64_t width = tiles.columns.tile * s;
  H3RT_RETURN_IF_ERROR(TileEncoder::ValidateExtent(config, height, width));
  H3RT_RETURN_IF_ERROR(InStage(RefuseNonFinite(pixels, "pixels", context), kEncode));
  const int64_t frames = pixels.dim(1);
  const Shape shape = {2 * config.latent_channels, clip.EncodedLatents(frames), pixels.dim(2) / s,
                       pixels.dim(3) / s};
  H3RT_ASSIGN_OR_RETURN(Tensor moments, Tensor::Create(DType::kF32, shape));
  H3RT_ASSIGN_OR_RETURN(
      TileEncoder::Scratch scratch,
      TileEncoder::MakeScratch(config, MostEncodedFrames(clip, frames), height, width));
  H3RT_ASSIGN_OR_RETURN(
      TileBlender blender,
      TileBlender::Create(shape[0] * MostKeptLatents(clip, frames), tiles.rows, tiles.columns));
  H3RT_RETURN_IF_ERROR(Tick(context, {}, 0, 0, kEncode));
  const int64_t clips = frames == 1 ? 1 : clip.EncodeClips(frames);
  for (int64_t number = 0; number < clips; ++number) {
    H3RT_RETURN_IF_ERROR(InStage(
        impl_->EncodeClip(pixels, number, tiles, scratch, blender, moments, context, progress),
        kEncode));
  }
  float* log_variance = moments.as<float>() + moments.elements() / 2;
  const auto clamp = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      log_variance[i] = std::clamp(log_variance[i], static_cast<float>(kLogVarianceMin),
                                   static_cast<float>(kLogVarianceMax));
    }
  };
  H3RT_RETURN_IF_ERROR(InStage(ForChunks(moments.elements() / 2, context, clamp), kEncode));
  return moments;
}

uint64_t VideoVae::EncodeBytes(const VideoVaeConfig& config, int64_t frames, int64_t height,
                               int64_t width, const VaeTiling& tiling, int threads) {
  const ClipGeometry clip = ClipGeometry::Of(config);
  const int64_t s = config.spatial_factor();
  const Tiles tiles(config, height / s, width / s, tiling);
  const int64_t moments =
      2 * config.latent_channels * clip.EncodedLatents(frames) * (height / s) * (width / s);
  return static_cast<uint64_t>(moments) * sizeof(float) +
         TileEncoder::ScratchBytes(config, MostEncodedFrames(clip, frames), tiles.rows.tile * s,
                                   tiles.columns.tile * s, threads) +
         TileBlender::Bytes(2 * config.latent_channels * MostKeptLatents(clip, frames), tiles.rows,
                            tiles.columns);
}

namespace {

constexpr float kPixelMean[3] = {0.485f, 0.456f, 0.406f};
constexpr float kPixelStd[3] = {0.229f, 0.224f, 0.225f};

constexpr auto kToNetwork = [](float value, size_t c) {
  return (value - kPixelMean[c]) / kPixelStd[c];
};
// std::clamp hands a NaN on as it is.
constexpr auto kToPixel = [](float value, size_t c) {
  return std::clamp(value * kPixelStd[c] + kPixelMean[c], 0.0f, 1.0f);
};

// The latents' mean and deviation by channel.
struct Statistics {
  explicit Statistics(const VideoVaeConfig& config)
      : mean(config.latents_mean.begin(), config.latents_mean.end()),
        deviation(config.latents_std.begin(), config.latents_std.end()) {}
  float Normalize(float value, size_t c) const { return (value - mean[c]) / deviation[c]; }
  float Denormalize(float value, size_t c) const { return value * deviation[c] + mean[c]; }

  std::vector<float> mean;
  std::vector<float> deviation;
};

}  // namespace

void VideoVae::Normalize(const TensorView& z) const {
  const Statistics statistics(impl_->config);
  ByChannel(z, 0, impl_->config.latent_channels,
            [&](float value, size_t c) { return statistics.Normalize(value, c); });
}

void VideoVae::Denormalize(const TensorView& z) const {
  const Statistics statistics(impl_->config);
  ByChannel(z, 0, impl_->config.latent_channels,
            [&](float value, size_t c) { return statistics.Denormalize(value, c); });
}

absl::Status VideoVae::Normalize(const TensorView& z, const ExecContext& context) const {
  const Statistics statistics(impl_->config);
  return ByChannel(z, 0, impl_->config.latent_channels, context,
                   [&](float value, size_t c) { return statistics.Normalize(value, c); });
}

absl::Status VideoVae::Denormalize(const TensorView& z, const ExecContext& context) const {
  const Statistics statistics(impl_->config);
  return ByChannel(z, 0, impl_->config.latent_channels, context,
                   [&](float value, size_t c) { return statistics.Denormalize(value, c); });
}

void NormalizePixels(const TensorView& pixels) { ByChannel(pixels, 0, 3, kToNetwork); }
void DenormalizePixels(const TensorView& pixels) { ByChannel(pixels, 0, 3, kToPixel); }

absl::Status NormalizePixels(const TensorView& pixels, const ExecContext& context) {
  return ByChannel(pixels, 0, 3, context, kToNetwork);
}

absl::Status DenormalizePixels(const TensorView& pixels, const ExecContext& context) {
  return ByChannel(pixels, 0, 3, context, kToPixel);
}

absl::Status ValidateTiling(const VideoVaeConfig& config, const VaeTiling& tiling) {
  const int64_t factor = config.spatial_factor();
  const bool good = tiling.tile > 0 && tiling.overlap >= 0 && tiling.overlap < tiling.tile &&
                    tiling.tile % factor == 0 && tiling.overlap % factor == 0;
  if (good) return absl::OkStatus();
  return InvalidArgument(
      {.what = "tiles of the video VAE",
       .got = "tile " + std::to_string(tiling.tile) + ", overlap " + std::to_string(tiling.overlap),
       .wanted = "multiples of " + std::to_string(factor) + " with 0 <= overlap < tile"});
}

}  // namespace h3rt
