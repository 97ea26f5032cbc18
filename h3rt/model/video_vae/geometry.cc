#include "h3rt/model/video_vae/geometry.h"

#include <algorithm>

namespace h3rt::video_vae {

int64_t AxisTiles::MaxOverlap() const {
  int64_t most = 0;
  for (int64_t i = 1; i < count(); ++i) most = std::max(most, Overlap(i));
  return most;
}

AxisTiles AxisTiles::Scaled(int64_t factor) const {
  AxisTiles scaled = {.extent = extent * factor, .tile = tile * factor, .start = start};
  for (int64_t& s : scaled.start) s *= factor;
  return scaled;
}

AxisTiles TileAxis(int64_t extent, int64_t tile, int64_t overlap) {
  H3RT_CHECK(extent > 0 && tile > overlap && overlap >= 0);
  if (extent <= tile) return {.extent = extent, .tile = extent, .start = {0}};
  const int64_t step = tile - overlap;
  const int64_t n = (extent - overlap + step - 1) / step;
  const int64_t slack = n * tile - (n - 1) * overlap - extent;
  AxisTiles tiles = {.extent = extent, .tile = tile, .start = {}};
  tiles.start.reserve(static_cast<size_t>(n));
  tiles.start.push_back(0);
  for (int64_t i = 1; i < n; ++i) {
    const int64_t extra = slack / (n - 1) + (i - 1 < slack % (n - 1) ? 1 : 0);
    tiles.start.push_back(tiles.start.back() + step - extra);
  }
  return tiles;
}

ClipGeometry ClipGeometry::Of(const VideoVaeConfig& config) {
  ClipGeometry clip;
  clip.factor = config.temporal_factor();
  clip.frames = config.clip_length;
  clip.latents = (clip.frames + clip.factor - 1) / clip.factor;
  clip.overlap = clip.latents - config.token_drop;
  clip.skipped = clip.latents * clip.factor - clip.frames;
  clip.fade = clip.overlap * clip.factor - clip.skipped;
  return clip;
}

int64_t ClipGeometry::DecodeChunks(int64_t t) const {
  return std::max<int64_t>(1, (t - overlap + latents - 1) / latents);
}

int64_t ClipGeometry::DecodedFrames(int64_t t) const {
  const int64_t rest = t % latents;
  return t / latents * frames + (rest == 0 ? 0 : rest * factor - skipped);
}

int64_t ClipGeometry::FramesFor(int64_t n) const { return std::min(frames, (n - 1) * factor + 1); }

}  // namespace h3rt::video_vae
