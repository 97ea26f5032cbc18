// Where tiles and clips of the video VAE lie. Source: spec h3 sections 6.5 and 6.6, C10.
#pragma once

#include <cstdint>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/model/video_vae/video_vae.h"

namespace h3rt::video_vae {

// The tiles of one axis, in latents or, after Scaled, in pixels. All tiles have the same extent.
struct AxisTiles {
  int64_t extent = 0;          // of the whole axis
  int64_t tile = 0;            // of one tile
  std::vector<int64_t> start;  // of each tile, increasing from 0

  int64_t count() const { return static_cast<int64_t>(start.size()); }
  int64_t Start(int64_t i) const { return start[static_cast<size_t>(i)]; }
  // What tile i shares with the one before it; 0 for the first.
  int64_t Overlap(int64_t i) const { return i == 0 ? 0 : Start(i - 1) + tile - Start(i); }
  int64_t MaxOverlap() const;
  // Tile i writes [Start(i), KeptEnd(i)): its trailing overlap belongs to the next tile.
  int64_t KeptEnd(int64_t i) const { return i + 1 < count() ? Start(i + 1) : extent; }
  AxisTiles Scaled(int64_t factor) const;
};

// One tile of the whole extent when extent <= tile; otherwise the smallest n with
// n * tile - (n - 1) * overlap >= extent, what is too much handed to the overlaps one step (one
// latent) at a time, from the first on. Wants extent > 0, tile > overlap >= 0.
AxisTiles TileAxis(int64_t extent, int64_t tile, int64_t overlap);

// Clips of 17 frames <-> 5 latents, in general form. The decoder sees every clip with the first
// latents of the next one and its frames fade into the next clip's.
struct ClipGeometry {
  int64_t factor = 4;   // temporal factor
  int64_t frames = 17;  // of a clip
  int64_t latents = 5;  // of a clip, ceil(frames / factor)
  int64_t overlap = 2;  // latents shared with the next clip: latents - token_drop
  int64_t skipped = 3;  // decoded frames before the body: latents * factor - frames
  int64_t fade = 5;     // frames of the overlap: overlap * factor - skipped

  // Wants a configuration that passed Validate.
  static ClipGeometry Of(const VideoVaeConfig& config);

  int64_t decoded_latents() const { return latents + overlap; }  // that one decoder call sees
  int64_t decoded_frames() const { return frames + fade; }       // that are kept of one call
  // The frame of the decoder's output that is frame k of decoded_frames().
  int64_t RawFrame(int64_t k) const { return skipped + k + (k < frames ? 0 : skipped); }

  // Decoder calls for t latents, at least 1; the last call repeats the last latent as needed.
  int64_t DecodeChunks(int64_t t) const;
  // Frames that belong to t latents: the first latent of a clip counts factor - skipped, the
  // others factor. 2 -> 5, 3 -> 9, 4 -> 13, 7 -> 22, 37 -> 124.
  int64_t DecodedFrames(int64_t t) const;

  // Encoder calls for f > 1 frames, and the latents that remain.
  int64_t EncodeClips(int64_t f) const { return (f + frames - 1) / frames; }
  int64_t EncodedLatents(int64_t f) const {
    return f == 1 ? 1 : EncodeClips(f) * latents - (latents - overlap);
  }
  // The encoder is causal, so that this many frames settle the first n latents of a clip.
  int64_t FramesFor(int64_t n) const;
};

}  // namespace h3rt::video_vae
