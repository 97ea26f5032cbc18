// The video VAE: causal convolutional encoder, non-causal transformer decoder, spatial tiles and
// 17-frame clips that are part of the function. Source: spec h3 section 6, C8, C9, C10.
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

// Tiles in pixels; the released values. They change every pixel, not only the seams.
struct VaeTiling {
  int64_t tile = 256;
  int64_t overlap = 64;
};

// kInvalidArgument unless tile and overlap are multiples of the spatial factor and
// 0 <= overlap < tile. `config` has passed Validate.
[[nodiscard]] absl::Status ValidateTiling(const VideoVaeConfig& config, const VaeTiling& tiling);

// done of total tile decodes (or encodes); an error stops the work.
using VaeProgress = std::function<absl::Status(int64_t done, int64_t total)>;

class VideoVae {
 public:
  // `weights` stays alive and in place while the VideoVae is used.
  static absl::StatusOr<VideoVae> Create(const VideoVaeConfig& config, const WeightStore& weights);
  VideoVae(VideoVae&&) noexcept;
  VideoVae& operator=(VideoVae&&) noexcept;
  ~VideoVae();
  const VideoVaeConfig& config() const;

  // Raw latents z [c, t, h, w] F32 -> pixels [3, frames, h * 16, w * 16] F32 in the network's
  // normalised space (not clamped). t >= 2; frames = DecodedFrames(t).
  absl::StatusOr<Tensor> Decode(const ConstTensorView& z, const VaeTiling& tiling,
                                const ExecContext& context, const VaeProgress& progress = {}) const;

  // Pixels [3, f, h, w] F32 in the normalised space -> posterior moments [2 c, t, h/16, w/16]: the
  // mean is the first half, the log variance the second, clamped to [-30, 20]. f = 1 is encoded
  // without temporal padding.
  absl::StatusOr<Tensor> Encode(const ConstTensorView& pixels, const VaeTiling& tiling,
                                const ExecContext& context, const VaeProgress& progress = {}) const;

  static int64_t DecodedFrames(const VideoVaeConfig& config, int64_t latent_frames);

  // (z - mean) / std and back, channel by channel, in place; z [c, t, h, w] F32 contiguous. With a
  // context on its threads; after kCancelled some of z may have been changed.
  void Normalize(const TensorView& z) const;
  void Denormalize(const TensorView& z) const;
  [[nodiscard]] absl::Status Normalize(const TensorView& z, const ExecContext& context) const;
  [[nodiscard]] absl::Status Denormalize(const TensorView& z, const ExecContext& context) const;

  // Largest number of bytes that Decode or Encode hold at once, the result included. `tiling` has
  // passed ValidateTiling and all extents are positive: these stop the program otherwise.
  static uint64_t DecodeBytes(const VideoVaeConfig& config, int64_t latent_frames, int64_t latent_h,
                              int64_t latent_w, const VaeTiling& tiling, int threads);
  static uint64_t EncodeBytes(const VideoVaeConfig& config, int64_t frames, int64_t height,
                              int64_t width, const VaeTiling& tiling, int threads);

 private:
  struct Impl;
  explicit VideoVae(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// [0, 1] RGB <-> the network's space: (p - m) / s per channel with the ImageNet constants; back
// with a clamp to [0, 1]. In place; pixels [3, f, h, w] F32 contiguous. With a context on its
// threads; after kCancelled some pixels may have been changed.
void NormalizePixels(const TensorView& pixels);
void DenormalizePixels(const TensorView& pixels);
[[nodiscard]] absl::Status NormalizePixels(const TensorView& pixels, const ExecContext& context);
[[nodiscard]] absl::Status DenormalizePixels(const TensorView& pixels, const ExecContext& context);

}  // namespace h3rt
