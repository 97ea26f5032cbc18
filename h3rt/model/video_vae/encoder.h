// The causal convolutional network that encodes one tile of one clip. Source: spec h3 section 6.2.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/model/video_vae/weights.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::video_vae {

class TileEncoder {
 public:
  // Buffers for one extent of tiles: the activation, what a layer makes of it, and the padded
  // input of a convolution.
  struct Scratch {
    Tensor x;
    Tensor y;
    Tensor padded;
  };

  static absl::StatusOr<TileEncoder> Create(const VideoVaeConfig& config,
                                            const WeightStore& weights);

  // kInvalidArgument when a level has only one row or column: reflect padding mirrors the second.
  static absl::Status ValidateExtent(const VideoVaeConfig& config, int64_t height, int64_t width);

  static absl::StatusOr<Scratch> MakeScratch(const VideoVaeConfig& config, int64_t frames,
                                             int64_t height, int64_t width);
  // Of a Scratch and of the ops on `threads` threads.
  static uint64_t ScratchBytes(const VideoVaeConfig& config, int64_t frames, int64_t height,
                               int64_t width, int threads);
  // Where the caller puts the pixels, [in channels, f, h, w].
  static TensorView Input(const VideoVaeConfig& config, Scratch& scratch, int64_t frames,
                          int64_t height, int64_t width);

  // Moments [2 c, ceil(f / factor), h / factor, w / factor] of Input, in `scratch` until the next
  // call; the log variance is not clamped here. kInternal when the levels lead to another shape
  // than their factors promise, as a level that shrinks in time alone does.
  absl::StatusOr<ConstTensorView> Run(Scratch& scratch, int64_t frames, int64_t height,
                                      int64_t width, const ExecContext& context) const;

 private:
  struct ResBlock {
    Affine norm1, conv1, norm2, conv2;
    std::optional<Affine> shortcut;
  };
  struct Level {
    std::vector<ResBlock> blocks;
    std::optional<Affine> downsample;
    int64_t temporal = 1;
    int64_t spatial = 1;
  };
  TileEncoder() = default;
  static absl::StatusOr<ResBlock> LoadBlock(const WeightStore& weights, const std::string& at,
                                            int64_t ci, int64_t co);
  absl::Status RunBlock(const ResBlock& block, Shape& shape, Scratch& scratch,
                        const ExecContext& context) const;
  absl::Status Normalise(const Affine& norm, const TensorView& x, const TensorView& y,
                         const ExecContext& context) const;

  VideoVaeConfig config_;
  Affine conv_in_, norm_out_, conv_out_, quant_;
  std::vector<Level> levels_;
};

}  // namespace h3rt::video_vae
