#include "tests/golden/ref64/tiles.h"

#include <algorithm>

#include "h3rt/base/check.h"

namespace h3rt::ref64 {
namespace {

// Element (c, t, y, x) of a [c, t, h, w] array.
int64_t At(const Array& a, int64_t plane, int64_t y, int64_t x) {
  return (plane * a.dim(2) + y) * a.dim(3) + x;
}

// The first `extent` rows (or columns) of `tile` fade from the last ones of `before`.
void Fade(const Array& before, int64_t extent, bool along_rows, Array& tile) {
  const int64_t planes = tile.dim(0) * tile.dim(1);
  const int64_t height = along_rows ? extent : tile.dim(2);
  const int64_t width = along_rows ? tile.dim(3) : extent;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const double weight = static_cast<double>(along_rows ? y : x) / static_cast<double>(extent);
        const int64_t old_y = along_rows ? before.dim(2) - extent + y : y;
        const int64_t old_x = along_rows ? x : before.dim(3) - extent + x;
        double& value = tile.p()[At(tile, plane, y, x)];
        value = before.p()[At(before, plane, old_y, old_x)] * (1.0 - weight) + value * weight;
      }
    }
  }
}

}  // namespace

TileAxis TilesOf(int64_t length, int64_t tile, int64_t overlap) {
  TileAxis axis;
  if (length <= tile) {
    axis.begin = {0};
    axis.overlap = {0};
    axis.size = length;
    return axis;
  }
  int64_t n = 1;
  while (n * tile - (n - 1) * overlap < length) ++n;
  axis.size = tile;
  axis.overlap.assign(static_cast<size_t>(n), overlap);
  axis.overlap[0] = 0;
  int64_t slack = n * tile - (n - 1) * overlap - length;
  for (int64_t i = 0; slack > 0; ++i, --slack) {
    axis.overlap[static_cast<size_t>(1 + i % (n - 1))] += 1;
  }
  axis.begin = {0};
  for (int64_t i = 1; i < n; ++i) {
    axis.begin.push_back(axis.begin.back() + tile - axis.overlap[static_cast<size_t>(i)]);
  }
  H3RT_CHECK(axis.begin.back() + tile == length);
  return axis;
}

Array Stitch(const std::vector<std::vector<Array>>& tiles, const TileAxis& rows,
             const TileAxis& columns, int64_t scale, bool blend) {
  const size_t high = rows.begin.size();
  const size_t wide = columns.begin.size();
  std::vector<Array> bands;
  for (size_t i = 0; i < high; ++i) {
    std::vector<Array> band;
    for (size_t j = 0; j < wide; ++j) {
      Array tile = tiles[i][j];
      if (blend && i > 0) Fade(tiles[i - 1][j], rows.overlap[i] * scale, true, tile);
      if (blend && j > 0) Fade(tiles[i][j - 1], columns.overlap[j] * scale, false, tile);
      const int64_t drop_rows = i + 1 < high ? rows.overlap[i + 1] * scale : 0;
      const int64_t drop_columns = j + 1 < wide ? columns.overlap[j + 1] * scale : 0;
      tile = Slice(tile, 2, 0, tile.dim(2) - drop_rows);
      band.push_back(Slice(tile, 3, 0, tile.dim(3) - drop_columns));
    }
    bands.push_back(Concat(band, 3));
  }
  return Concat(bands, 2);
}

}  // namespace h3rt::ref64
