// Joins spatial tiles: linear ramps over the overlaps, vertical first, then horizontal, always
// against the raw neighbour; what a tile shares with the next one is written by the next one.
// Source: spec h3 section 6.6 and 13.19.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/model/video_vae/geometry.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::video_vae {

// Weights of the current value in a ramp of n steps: k / n for k = 0 ... n - 1. The earlier value
// weighs 1 - k / n. Both are rounded to float once.
struct Ramp {
  std::vector<float> earlier;
  std::vector<float> current;
  explicit Ramp(int64_t n);
};

// Tiles come in row-major order. Only strips of raw tiles are held: the trailing rows of one row of
// tiles and the trailing columns of the tile before.
class TileBlender {
 public:
  // Row y of the raw tile's plane p, tile-width values.
  using ReadRow = std::function<void(int64_t plane, int64_t y, float* row)>;
  // Values for row y of the whole plane from column x on.
  using WriteRow =
      std::function<void(int64_t plane, int64_t y, int64_t x, std::span<const float> row)>;

  static absl::StatusOr<TileBlender> Create(int64_t planes, const AxisTiles& vertical,
                                            const AxisTiles& horizontal);
  static uint64_t Bytes(int64_t planes, const AxisTiles& vertical, const AxisTiles& horizontal);

  // Planes [0, planes) of tile (i, j), after all tiles before it in row-major order; (0, 0) starts
  // anew, with at most as many planes as Create was told, and the tiles after it have the same
  // number. `read` and `write` are called from several threads, for different planes.
  absl::Status Add(int64_t i, int64_t j, int64_t planes, const ReadRow& read, const WriteRow& write,
                   const ExecContext& context);

 private:
  TileBlender(int64_t planes, const AxisTiles& vertical, const AxisTiles& horizontal);
  void AddPlane(int64_t plane, int64_t i, int64_t j, const ReadRow& read, const WriteRow& write);

  int64_t planes_;  // at most
  AxisTiles vertical_;
  AxisTiles horizontal_;
  std::vector<Ramp> down_;    // ramp of each tile row with the one above
  std::vector<Ramp> across_;  // of each tile column with the one to the left
  Tensor above_;              // [tile columns, planes, most vertical overlap, tile width]
  Tensor left_;               // [planes, tile height, most horizontal overlap]
};

}  // namespace h3rt::video_vae
