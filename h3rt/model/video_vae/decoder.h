// The transformer that decodes one tile of one clip. Source: spec h3 section 6.3, C8.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/model/video_vae/weights.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::video_vae {

// Latent extents of a tile, [t, h, w].
using Grid = std::array<int64_t, 3>;

class TileDecoder {
 public:
  // Everything that decoding tiles of one grid needs besides weights; made once a clip.
  struct Scratch {
    Grid grid;
    Tensor x;       // [s, width] residual stream
    Tensor normed;  // [s, max(width, c)]
    Tensor wide;    // [s, max(3 width, 2 ffn, patch, c)]
    Tensor cos;     // [s, rotated / 2]
    Tensor sin;
  };

  static absl::StatusOr<TileDecoder> Create(const VideoVaeConfig& config,
                                            const WeightStore& weights);

  absl::StatusOr<Scratch> MakeScratch(const Grid& grid) const;
  // Of a Scratch and of the ops on `threads` threads.
  static uint64_t ScratchBytes(const VideoVaeConfig& config, const Grid& grid, int threads);

  // Decodes latents [c, grid] that begin at `origin` of z [c, t, h, w]; frames from z's end on
  // repeat its last one. The result is [t h w, patch] in `scratch`, valid until the next call; a
  // row holds one token's pixels [out channels, factor t, factor s, factor s].
  absl::StatusOr<ConstTensorView> Run(const ConstTensorView& z, const Grid& origin,
                                      Scratch& scratch, const ExecContext& context) const;

 private:
  struct Block {
    ConstTensorView norm1, norm2;
    ConstTensorView scale1, scale2;  // [1, width]
    Affine q, k, v, out, gate, value, ffn_out;
  };
  TileDecoder() = default;
  static absl::StatusOr<Block> LoadBlock(const VideoVaeConfig& config, const WeightStore& weights,
                                         int64_t i, std::vector<Tensor>& owned);
  absl::Status Embed(const ConstTensorView& z, const Grid& origin, Scratch& scratch,
                     const ExecContext& context) const;
  absl::Status Attend(const Block& block, Scratch& scratch, const ExecContext& context) const;
  absl::Status FeedForward(const Block& block, Scratch& scratch, const ExecContext& context) const;

  VideoVaeConfig config_;
  Affine post_quant_, proj_in_, norm_out_, proj_out_;
  ConstTensorView registers_;  // [registers, width]
  std::vector<Block> blocks_;
  std::vector<Tensor> owned_;  // F32 copies of small half-precision vectors
};

}  // namespace h3rt::video_vae
