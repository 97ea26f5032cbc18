// The video VAE in float64. Source: spec h3 section 6, C8, C9, C10.
#pragma once

#include <cstdint>

#include "h3rt/io/model_config.h"
#include "tests/golden/ref64/array.h"
#include "tests/golden/ref64/weights.h"

namespace h3rt::ref64 {

// Faults that a test plants on purpose, to show that a comparison would see them.
struct VideoVaeFaults {
  bool hard_seams = false;           // tiles are not blended
  bool rope_over_canvas = false;     // coordinates normalised by the canvas, not by the tile
  bool adjacent_rope_pairs = false;  // rotates (2j, 2j + 1)
  bool swapped_ffn_halves = false;   // silu(value) * gate
  bool token_drop = false;           // decode: the body of a clip begins one frame early;
                                     // encode: latents are dropped at the front, not at the end
};

// Tiles in pixels.
struct Tiling {
  int64_t tile = 256;
  int64_t overlap = 64;
};

// Raw latents z [c, t, h, w] -> pixels [3, frames, h * s, w * s], in the network's own space.
Array VideoDecode(const VideoVaeConfig& config, const Weights& weights, const Array& z,
                  const Tiling& tiling, const VideoVaeFaults& faults = {});

// Pixels [3, f, h, w] in the network's space -> moments [2 c, t, h / s, w / s]: mean, then log
// variance clamped to [-30, 20].
Array VideoEncode(const VideoVaeConfig& config, const Weights& weights, const Array& pixels,
                  const Tiling& tiling, const VideoVaeFaults& faults = {});

}  // namespace h3rt::ref64
