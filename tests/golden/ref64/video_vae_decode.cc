#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/base/check.h"
#include "tests/golden/ref64/ops.h"
#include "tests/golden/ref64/tiles.h"
#include "tests/golden/ref64/video_vae.h"

namespace h3rt::ref64 {
namespace {

int64_t Product(const std::vector<int64_t>& factors) {
  int64_t n = 1;
  for (const int64_t f : factors) n *= f;
  return n;
}

// The grid of tokens of one tile, and the extents by which its coordinates are normalised.
struct Grid {
  int64_t t = 0, h = 0, w = 0;
  int64_t norm_h = 0, norm_w = 0;  // the tile's own, unless a fault is planted
};

// [tokens + suffix, rd / 2] rotary angles; the suffix tokens sit at coordinate 0.
Array RopeAngles(const VideoVaeConfig& config, const Grid& grid, int64_t suffix) {
  const auto rotated = static_cast<int64_t>(static_cast<double>(config.decoder_head_dim) *
                                            config.decoder_rope_ratio);
  const int64_t f = rotated / 6;
  Array angles({grid.t * grid.h * grid.w + suffix, 3 * f});
  for (int64_t token = 0; token < grid.t * grid.h * grid.w; ++token) {
    const int64_t index[3] = {token / (grid.h * grid.w), token / grid.w % grid.h, token % grid.w};
    const int64_t extent[3] = {grid.t, grid.norm_h, grid.norm_w};
    for (int64_t axis = 0; axis < 3; ++axis) {
      const double coordinate =
          2.0 * (static_cast<double>(index[axis]) + 0.5) / static_cast<double>(extent[axis]) - 1.0;
      for (int64_t k = 0; k < f; ++k) {
        const double frequency =
            std::pow(config.decoder_rope_theta, -static_cast<double>(k) / static_cast<double>(f));
        angles.p()[token * 3 * f + axis * f + k] = coordinate * 2.0 * std::numbers::pi * frequency;
      }
    }
  }
  return angles;
}

void Rotate(const VideoVaeConfig& config, const Array& angles, const VideoVaeFaults& faults,
            Array& x) {
  const int64_t pairs = angles.dim(1);
  for (int64_t r = 0; r < x.dim(0); ++r) {
    for (int64_t head = 0; head < config.decoder_heads; ++head) {
      double* q = x.p() + (r * config.decoder_heads + head) * config.decoder_head_dim;
      for (int64_t j = 0; j < pairs; ++j) {
        const int64_t first = faults.adjacent_rope_pairs ? 2 * j : j;
        const int64_t second = faults.adjacent_rope_pairs ? 2 * j + 1 : j + pairs;
        const double c = std::cos(angles.p()[r * pairs + j]);
        const double s = std::sin(angles.p()[r * pairs + j]);
        const double a = q[first];
        const double b = q[second];
        q[first] = a * c - b * s;
        q[second] = b * c + a * s;
      }
    }
  }
}

Array NormHeads(const VideoVaeConfig& config, const Array& x) {
  const int64_t rows = x.dim(0);
  const int64_t width = x.dim(1);
  const Array split = Reshaped(x, {rows * config.decoder_heads, config.decoder_head_dim});
  return Reshaped(RmsNorm(split, nullptr, config.decoder_norm_eps), {rows, width});
}

// x += branch * scale, channel by channel.
void AddScaled(const Array& branch, const Array& scale, Array& x) {
  for (int64_t r = 0; r < x.dim(0); ++r) {
    for (int64_t c = 0; c < x.dim(1); ++c) {
      x.p()[r * x.dim(1) + c] += branch.p()[r * x.dim(1) + c] * scale.p()[c];
    }
  }
}

void DecoderBlock(const VideoVaeConfig& config, const Weights& weights, const std::string& prefix,
                  const Array& angles, const VideoVaeFaults& faults, Array& x) {
  Array n = RmsNorm(x, &weights.Get(prefix + "norm1.weight"), config.decoder_norm_eps);
  Array q = NormHeads(config, Linear(n, weights, prefix + "attn.to_q"));
  Array k = NormHeads(config, Linear(n, weights, prefix + "attn.to_k"));
  const Array v = Linear(n, weights, prefix + "attn.to_v");
  Rotate(config, angles, faults, q);
  Rotate(config, angles, faults, k);
  const Array o = Attention(q, k, v, config.decoder_heads, /*causal=*/false);
  AddScaled(Linear(o, weights, prefix + "attn.to_out.0"), weights.Get(prefix + "scale1"), x);

  n = RmsNorm(x, &weights.Get(prefix + "norm2.weight"), config.decoder_norm_eps);
  Array gate = Linear(n, weights, prefix + "ff.gate");
  Array value = Linear(n, weights, prefix + "ff.value");
  if (faults.swapped_ffn_halves) std::swap(gate, value);
  for (int64_t i = 0; i < gate.elements(); ++i) gate.p()[i] = Silu(gate.p()[i]) * value.p()[i];
  AddScaled(Linear(gate, weights, prefix + "ff.net.2"), weights.Get(prefix + "scale2"), x);
}

// Token vectors [t h w, c * pt * s * s] -> pixels [c, t * pt, h * s, w * s].
Array PlacePatches(const Array& tokens, const Grid& grid, int64_t c, int64_t pt, int64_t s) {
  Array pixels({c, grid.t * pt, grid.h * s, grid.w * s});
  const int64_t width = c * pt * s * s;
  for (int64_t channel = 0; channel < c; ++channel) {
    for (int64_t f = 0; f < grid.t * pt; ++f) {
      for (int64_t y = 0; y < grid.h * s; ++y) {
        for (int64_t x = 0; x < grid.w * s; ++x) {
          const int64_t token = (f / pt * grid.h + y / s) * grid.w + x / s;
          const int64_t inside = ((channel * pt + f % pt) * s + y % s) * s + x % s;
          pixels.p()[((channel * pixels.dim(1) + f) * pixels.dim(2) + y) * pixels.dim(3) + x] =
              tokens.p()[token * width + inside];
        }
      }
    }
  }
  return pixels;
}

// One tile of one clip: z [c, t, h, w] -> [3, t * pt, h * s, w * s].
Array DecodeTile(const VideoVaeConfig& config, const Weights& weights, const Array& z, Grid grid,
                 const VideoVaeFaults& faults) {
  const int64_t tokens = grid.t * grid.h * grid.w;
  Array x = Transposed(Reshaped(z, {z.dim(0), tokens}));
  x = Linear(x, weights, "post_quant_conv");
  x = Linear(x, weights, "decoder.proj_in");
  const Array& registers = weights.Get("decoder.register_tokens");
  const int64_t width = x.dim(1);
  x = Concat({x, Reshaped(registers, {registers.elements() / width, width}), Array({1, width})}, 0);
  const Array angles = RopeAngles(config, grid, x.dim(0) - tokens);
  for (int64_t b = 0; b < config.decoder_layers; ++b) {
    DecoderBlock(config, weights, "decoder.transformer_blocks." + std::to_string(b) + ".", angles,
                 faults, x);
  }
  x = LayerNorm(x, weights.Get("decoder.norm_out.weight"), weights.Get("decoder.norm_out.bias"),
                config.decoder_norm_eps);
  x = Linear(Slice(x, 0, 0, tokens), weights, "decoder.proj_out");
  return PlacePatches(x, grid, config.out_channels, Product(config.temporal_factors),
                      Product(config.spatial_factors));
}

// All tiles of one clip, stitched.
Array DecodeClip(const VideoVaeConfig& config, const Weights& weights, const Array& z,
                 const Tiling& tiling, const VideoVaeFaults& faults) {
  const int64_t s = Product(config.spatial_factors);
  const TileAxis rows = TilesOf(z.dim(2), tiling.tile / s, tiling.overlap / s);
  const TileAxis columns = TilesOf(z.dim(3), tiling.tile / s, tiling.overlap / s);
  Grid grid{z.dim(1), rows.size, columns.size, rows.size, columns.size};
  if (faults.rope_over_canvas) {
    grid.norm_h = z.dim(2);
    grid.norm_w = z.dim(3);
  }
  std::vector<std::vector<Array>> tiles;
  for (const int64_t y : rows.begin) {
    std::vector<Array> band;
    for (const int64_t x : columns.begin) {
      const Array part = Slice(Slice(z, 2, y, y + rows.size), 3, x, x + columns.size);
      band.push_back(DecodeTile(config, weights, part, grid, faults));
    }
    tiles.push_back(std::move(band));
  }
  return Stitch(tiles, rows, columns, s, !faults.hard_seams);
}

// The first frames of `body` fade from `before`, frame k with weight k / count.
void CrossFade(const Array& before, Array& body) {
  const int64_t count = before.dim(1);
  const int64_t plane = body.dim(2) * body.dim(3);
  for (int64_t c = 0; c < body.dim(0); ++c) {
    for (int64_t k = 0; k < count; ++k) {
      const double weight = static_cast<double>(k) / static_cast<double>(count);
      const double* old = before.p() + (c * count + k) * plane;
      double* now = body.p() + (c * body.dim(1) + k) * plane;
      for (int64_t i = 0; i < plane; ++i) now[i] = old[i] * (1.0 - weight) + now[i] * weight;
    }
  }
}

}  // namespace

Array VideoDecode(const VideoVaeConfig& config, const Weights& weights, const Array& z,
                  const Tiling& tiling, const VideoVaeFaults& faults) {
  const int64_t factor = Product(config.temporal_factors);
  const int64_t clip = config.clip_length;
  const int64_t group = (clip + factor - 1) / factor;  // latents of a clip, 5
  const int64_t skipped = group * factor - clip;       // frames before a body, 3
  const int64_t shared = group - config.token_drop;    // latents that clips share, 2
  const int64_t overlap = shared * factor - skipped;   // frames that clips share, 5
  const int64_t latents = z.dim(1);

  // Group boundaries are counted as if token_drop latents stood in front.
  int64_t counted = latents + config.token_drop;
  int64_t padded = (group - counted % group) % group;
  if ((counted + padded) / group < 2) padded += group;  // T = 2 still needs one chunk
  counted += padded;
  std::vector<Array> parts = {z};
  const Array last = Slice(z, 1, latents - 1, latents);
  int64_t surplus = 0;  // frames that the padding adds
  for (int64_t i = latents; i < latents + padded; ++i) {
    parts.push_back(last);
    surplus += i % group == 0 ? factor - skipped : factor;
  }
  const Array all = Concat(parts, 1);

  std::vector<Array> out;
  Array before;
  const int64_t first = faults.token_drop ? skipped - 1 : skipped;
  for (int64_t i = 0; i < counted / group - 1; ++i) {
    const Array part = Slice(all, 1, group * i, group * i + group + shared);
    const Array frames = DecodeClip(config, weights, part, tiling, faults);
    Array body = Slice(frames, 1, first, first + clip);
    if (i > 0) CrossFade(before, body);
    out.push_back(std::move(body));
    before = Slice(frames, 1, frames.dim(1) - overlap, frames.dim(1));
  }
  out.push_back(before);
  const Array joined = Concat(out, 1);
  return Slice(joined, 1, 0, joined.dim(1) - surplus);
}

}  // namespace h3rt::ref64
