#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/base/check.h"
#include "tests/golden/ref64/ops.h"
#include "tests/golden/ref64/tiles.h"
#include "tests/golden/ref64/video_vae.h"

namespace h3rt::ref64 {
namespace {

// Index i of an axis of n elements, mirrored at both ends without repeating the edge.
int64_t Mirror(int64_t i, int64_t n) {
  if (i < 0) i = -i;
  if (i >= n) i = 2 * (n - 1) - i;
  H3RT_CHECK(i >= 0 && i < n);
  return i;
}

// x [c, t, h, w] with `before` and `after` mirrored rows and columns, and 2 zero frames in front.
Array Padded(const Array& x, int64_t before, int64_t after) {
  const int64_t h = x.dim(2) + before + after;
  const int64_t w = x.dim(3) + before + after;
  Array y({x.dim(0), x.dim(1) + 2, h, w});
  for (int64_t c = 0; c < x.dim(0); ++c) {
    for (int64_t t = 0; t < x.dim(1); ++t) {
      for (int64_t i = 0; i < h; ++i) {
        const int64_t from = (c * x.dim(1) + t) * x.dim(2) + Mirror(i - before, x.dim(2));
        double* to = y.p() + ((c * y.dim(1) + t + 2) * h + i) * w;
        for (int64_t j = 0; j < w; ++j) {
          to[j] = x.p()[from * x.dim(3) + Mirror(j - before, x.dim(3))];
        }
      }
    }
  }
  return y;
}

// A valid convolution of x [c, t, h, w] with name.weight [o, c, kt, kh, kw], stride (st, ss, ss).
Array Convolve(const Array& x, const Weights& weights, const std::string& name, int64_t st,
               int64_t ss) {
  const Array& w = weights.Get(name + ".weight");
  const Array& bias = weights.Get(name + ".bias");
  const int64_t k[3] = {w.dim(2), w.dim(3), w.dim(4)};
  H3RT_CHECK(w.dim(1) == x.dim(0));
  Array y({w.dim(0), (x.dim(1) - k[0]) / st + 1, (x.dim(2) - k[1]) / ss + 1,
           (x.dim(3) - k[2]) / ss + 1});
  const int64_t width = y.dim(3);
  for (int64_t o = 0; o < y.dim(0); ++o) {
    for (int64_t row = 0; row < y.dim(1) * y.dim(2); ++row) {
      const int64_t t = row / y.dim(2);
      const int64_t i = row % y.dim(2);
      double* to = y.p() + (o * y.dim(1) * y.dim(2) + row) * width;
      std::fill(to, to + width, bias.p()[o]);
      for (int64_t tap = 0; tap < x.dim(0) * k[0] * k[1]; ++tap) {
        const int64_t c = tap / (k[0] * k[1]);
        const int64_t kt = tap / k[1] % k[0];
        const int64_t kh = tap % k[1];
        const double* from =
            x.p() + ((c * x.dim(1) + t * st + kt) * x.dim(2) + i * ss + kh) * x.dim(3);
        for (int64_t kw = 0; kw < k[2]; ++kw) {
          const double factor = w.p()[(o * x.dim(0) * k[0] * k[1] + tap) * k[2] + kw];
          for (int64_t j = 0; j < width; ++j) to[j] += factor * from[j * ss + kw];
        }
      }
    }
  }
  return y;
}

// 3x3x3 over mirrored edges and 2 zero frames in front: the size stays.
Array CausalConv(const Array& x, const Weights& weights, const std::string& name) {
  return Convolve(Padded(x, 1, 1), weights, name, 1, 1);
}

// silu(GroupNorm(x)), statistics a frame and a group of channels.
Array NormSilu(const VideoVaeConfig& config, const Array& x, const Weights& weights,
               const std::string& name) {
  const Array& w = weights.Get(name + ".weight");
  const Array& b = weights.Get(name + ".bias");
  const int64_t channels = x.dim(0) / config.norm_groups;
  const int64_t plane = x.dim(2) * x.dim(3);
  const auto count = static_cast<double>(channels * plane);
  Array y = x;
  for (int64_t g = 0; g < config.norm_groups; ++g) {
    for (int64_t t = 0; t < x.dim(1); ++t) {
      const auto at = [&](int64_t c) { return ((g * channels + c) * x.dim(1) + t) * plane; };
      double mean = 0.0;
      double squares = 0.0;
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = 0; i < plane; ++i) mean += x.p()[at(c) + i];
      }
      mean /= count;
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = 0; i < plane; ++i) {
          const double off = x.p()[at(c) + i] - mean;
          squares += off * off;
        }
      }
      const double scale = 1.0 / std::sqrt(squares / count + config.norm_eps);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t channel = g * channels + c;
        for (int64_t i = 0; i < plane; ++i) {
          const double n = (x.p()[at(c) + i] - mean) * scale * w.p()[channel] + b.p()[channel];
          y.p()[at(c) + i] = Silu(n);
        }
      }
    }
  }
  return y;
}

Array ResBlock(const VideoVaeConfig& config, const Array& x, const Weights& weights,
               const std::string& prefix) {
  Array h = NormSilu(config, x, weights, prefix + "norm1");
  h = CausalConv(h, weights, prefix + "conv1");
  h = NormSilu(config, h, weights, prefix + "norm2");
  h = CausalConv(h, weights, prefix + "conv2");
  const std::string shortcut = prefix + "conv_shortcut";
  if (weights.Has(shortcut + ".weight")) return Add(Convolve(x, weights, shortcut, 1, 1), h);
  return Add(x, h);
}

// One tile of one clip: pixels [3, f, h, w] -> moments.
Array EncodeTile(const VideoVaeConfig& config, const Weights& weights, const Array& pixels) {
  Array x = CausalConv(pixels, weights, "encoder.conv_in");
  for (size_t level = 0; level < config.block_out_channels.size(); ++level) {
    const std::string prefix = "encoder.down_blocks." + std::to_string(level) + ".";
    for (int64_t b = 0; b < config.layers_per_block; ++b) {
      x = ResBlock(config, x, weights, prefix + "resnets." + std::to_string(b) + ".");
    }
    const int64_t s = config.spatial_factors[level];
    const int64_t t = config.temporal_factors[level];
    if (s * t > 1) {
      x = Convolve(Padded(x, 0, 1), weights, prefix + "downsamplers.0.conv", t, s);
    }
  }
  x = NormSilu(config, x, weights, "encoder.norm_out");
  x = CausalConv(x, weights, "encoder.conv_out");
  return Convolve(x, weights, "quant_conv", 1, 1);
}

Array EncodeClip(const VideoVaeConfig& config, const Weights& weights, const Array& pixels,
                 const Tiling& tiling, const VideoVaeFaults& faults) {
  int64_t s = 1;
  for (const int64_t f : config.spatial_factors) s *= f;
  const TileAxis rows = TilesOf(pixels.dim(2) / s, tiling.tile / s, tiling.overlap / s);
  const TileAxis columns = TilesOf(pixels.dim(3) / s, tiling.tile / s, tiling.overlap / s);
  std::vector<std::vector<Array>> tiles;
  for (const int64_t y : rows.begin) {
    std::vector<Array> band;
    for (const int64_t x : columns.begin) {
      const Array part =
          Slice(Slice(pixels, 2, y * s, (y + rows.size) * s), 3, x * s, (x + columns.size) * s);
      band.push_back(EncodeTile(config, weights, part));
    }
    tiles.push_back(std::move(band));
  }
  return Stitch(tiles, rows, columns, 1, !faults.hard_seams);
}

}  // namespace

Array VideoEncode(const VideoVaeConfig& config, const Weights& weights, const Array& pixels,
                  const Tiling& tiling, const VideoVaeFaults& faults) {
  const int64_t frames = pixels.dim(1);
  Array moments;
  if (frames == 1) {
    moments = EncodeClip(config, weights, pixels, tiling, faults);
  } else {
    std::vector<Array> parts = {pixels};
    const Array last = Slice(pixels, 1, frames - 1, frames);
    for (int64_t f = frames; f % config.clip_length != 0; ++f) parts.push_back(last);
    const Array all = Concat(parts, 1);
    std::vector<Array> clips;
    for (int64_t f = 0; f < all.dim(1); f += config.clip_length) {
      const Array clip = Slice(all, 1, f, f + config.clip_length);
      clips.push_back(EncodeClip(config, weights, clip, tiling, faults));
    }
    moments = Concat(clips, 1);
    const int64_t begin = faults.token_drop ? config.token_drop : 0;
    moments = Slice(moments, 1, begin, begin + moments.dim(1) - config.token_drop);
  }
  const int64_t half = moments.elements() / 2;
  for (int64_t i = half; i < moments.elements(); ++i) {
    moments.p()[i] = std::clamp(moments.p()[i], -30.0, 20.0);
  }
  return moments;
}

}  // namespace h3rt::ref64
