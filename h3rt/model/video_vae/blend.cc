#include "h3rt/model/video_vae/blend.h"

#include <algorithm>

namespace h3rt::video_vae {
namespace {

Shape AboveShape(int64_t planes, const AxisTiles& vertical, const AxisTiles& horizontal) {
  return {horizontal.count(), planes, vertical.MaxOverlap(), horizontal.tile};
}

Shape LeftShape(int64_t planes, const AxisTiles& vertical, const AxisTiles& horizontal) {
  return {planes, vertical.tile, horizontal.MaxOverlap()};
}

std::vector<Ramp> RampsOf(const AxisTiles& tiles) {
  std::vector<Ramp> ramps;
  for (int64_t i = 0; i < tiles.count(); ++i) ramps.emplace_back(tiles.Overlap(i));
  return ramps;
}

}  // namespace

Ramp::Ramp(int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const double w = static_cast<double>(k) / static_cast<double>(n);
    earlier.push_back(static_cast<float>(1.0 - w));
    current.push_back(static_cast<float>(w));
  }
}

TileBlender::TileBlender(int64_t planes, const AxisTiles& vertical, const AxisTiles& horizontal)
    : planes_(planes),
      vertical_(vertical),
      horizontal_(horizontal),
      down_(RampsOf(vertical)),
      across_(RampsOf(horizontal)) {}

absl::StatusOr<TileBlender> TileBlender::Create(int64_t planes, const AxisTiles& vertical,
                                                const AxisTiles& horizontal) {
  TileBlender blender(planes, vertical, horizontal);
  H3RT_ASSIGN_OR_RETURN(blender.above_,
                        Tensor::Create(DType::kF32, AboveShape(planes, vertical, horizontal)));
  H3RT_ASSIGN_OR_RETURN(blender.left_,
                        Tensor::Create(DType::kF32, LeftShape(planes, vertical, horizontal)));
  return blender;
}

uint64_t TileBlender::Bytes(int64_t planes, const AxisTiles& vertical,
                            const AxisTiles& horizontal) {
  const int64_t elements = AboveShape(planes, vertical, horizontal).elements() +
                           LeftShape(planes, vertical, horizontal).elements();
  return static_cast<uint64_t>(elements) * sizeof(float);
}

absl::Status TileBlender::Add(int64_t i, int64_t j, int64_t planes, const ReadRow& read,
                              const WriteRow& write, const ExecContext& context) {
  H3RT_CHECK(0 <= i && i < vertical_.count() && 0 <= j && j < horizontal_.count());
  H3RT_CHECK(0 <= planes && planes <= planes_);
  return context.ParallelFor(planes, [&](int64_t plane) {
    AddPlane(plane, i, j, read, write);
    return absl::OkStatus();
  });
}

void TileBlender::AddPlane(int64_t plane, int64_t i, int64_t j, const ReadRow& read,
                           const WriteRow& write) {
  const int64_t above_rows = vertical_.MaxOverlap();
  const int64_t left_columns = horizontal_.MaxOverlap();
  const int64_t width = horizontal_.tile;
  const int64_t overlap_v = vertical_.Overlap(i);
  const int64_t overlap_h = horizontal_.Overlap(j);
  const int64_t kept_rows = vertical_.KeptEnd(i) - vertical_.Start(i);
  const int64_t kept_columns = horizontal_.KeptEnd(j) - horizontal_.Start(j);
  float* above = above_.as<float>() + (j * planes_ + plane) * above_rows * width;
  float* left = left_.as<float>() + plane * vertical_.tile * left_columns;
  const Ramp& down = down_[static_cast<size_t>(i)];
  const Ramp& across = across_[static_cast<size_t>(j)];
  std::vector<float> raw(static_cast<size_t>(width));
  std::vector<float> row(static_cast<size_t>(width));

  for (int64_t y = 0; y < kept_rows; ++y) {
    read(plane, y, raw.data());
    row = raw;
    if (y < overlap_v) {
      const float a = down.earlier[static_cast<size_t>(y)];
      const float b = down.current[static_cast<size_t>(y)];
      const float* other = above + y * width;
      for (int64_t x = 0; x < kept_columns; ++x) {
        row[static_cast<size_t>(x)] = other[x] * a + row[static_cast<size_t>(x)] * b;
      }
    }
    float* left_row = left + y * left_columns;
    for (int64_t x = 0; x < std::min(overlap_h, kept_columns); ++x) {
      const auto k = static_cast<size_t>(x);
      row[k] = left_row[x] * across.earlier[k] + row[k] * across.current[k];
    }
    write(plane, vertical_.Start(i) + y, horizontal_.Start(j),
          {row.data(), static_cast<size_t>(kept_columns)});
    std::copy(raw.begin() + kept_columns, raw.end(), left_row);
  }
  // The raw tail of this tile takes the place of the tail above it, which nobody needs any more.
  for (int64_t y = kept_rows; y < vertical_.tile; ++y)
    read(plane, y, above + (y - kept_rows) * width);
}

}  // namespace h3rt::video_vae
