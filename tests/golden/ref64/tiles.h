// Spatial tiles of the video VAE: where they lie and how they are stitched. Source: spec h3 6.6.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/golden/ref64/array.h"

namespace h3rt::ref64 {

// Tiles along one axis, in latents.
struct TileAxis {
  std::vector<int64_t> begin;
  std::vector<int64_t> overlap;  // with the tile before; overlap[0] is 0
  int64_t size = 0;              // of every tile
};

// The smallest number of tiles with n * tile - (n - 1) * overlap >= length; what is left over is
// dealt to the overlaps in turn, one latent at a time. All in latents.
TileAxis TilesOf(int64_t length, int64_t tile, int64_t overlap);

// Stitches tiles [i][j] of shape [c, t, height, width], whose axes are scaled by `scale` from
// latents (1 for the encoder, the spatial factor for the decoder). Rows first, then columns, always
// against the neighbour as it was before blending. blend = false leaves the seams hard.
Array Stitch(const std::vector<std::vector<Array>>& tiles, const TileAxis& rows,
             const TileAxis& columns, int64_t scale, bool blend);

}  // namespace h3rt::ref64
