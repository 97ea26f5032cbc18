#include "h3rt/media/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace h3rt {
namespace {

constexpr double kSupport = 3.0;
// 32 bits less 8 for the sample and 2 for the overshoot of the filter.
constexpr int kPrecisionBits = 32 - 8 - 2;
constexpr int64_t kMaxSide = int64_t{1} << 24;

double Sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double Lanczos(double x) { return -3.0 <= x && x < 3.0 ? Sinc(x) * Sinc(x / 3) : 0.0; }

// Weights of the output positions [begin, end) of one axis.
struct Taps {
  struct Position {
    int64_t first;  // input index of the first weight
    int64_t count;
    size_t at;  // of its weights
  };
  std::vector<Position> positions;
  std::vector<int32_t> weights;
  int64_t input_begin = 0;  // the input range that any position reads
  int64_t input_end = 0;
};

Taps MakeTaps(int64_t in_size, int64_t out_size, int64_t begin, int64_t end) {
  Taps taps;
  const double scale = static_cast<double>(in_size) / static_cast<double>(out_size);
  const double filter_scale = std::max(scale, 1.0);
  const double support = kSupport * filter_scale;
  const double inverse = 1.0 / filter_scale;
  std::vector<double> row;
  taps.input_begin = in_size;
  for (int64_t i = begin; i < end; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    // Truncation toward zero, then the clamp: the order matters for negative values.
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), in_size);
    const int64_t count = last - first;
    row.assign(static_cast<size_t>(count), 0.0);
    double sum = 0.0;
    for (int64_t k = 0; k < count; ++k) {
      const double w = Lanczos((static_cast<double>(k + first) - center + 0.5) * inverse);
      row[static_cast<size_t>(k)] = w;
      sum += w;
    }
    taps.positions.push_back({first, count, taps.weights.size()});
    for (double w : row) {
      if (sum != 0.0) w /= sum;
      const double fixed = w * (1 << kPrecisionBits);
      taps.weights.push_back(static_cast<int32_t>(fixed < 0 ? fixed - 0.5 : fixed + 0.5));
    }
    taps.input_begin = std::min(taps.input_begin, first);
    taps.input_end = std::max(taps.input_end, last);
  }
  return taps;
}

uint8_t Clip8(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

constexpr int32_t kHalf = 1 << (kPrecisionBits - 1);

// Filters the rows [row_begin, row_end) of `in` along x; the result keeps only those rows.
RgbImage FilterColumns(const RgbImage& in, const Taps& taps, int64_t row_begin, int64_t row_end) {
  RgbImage out;
  out.width = static_cast<int64_t>(taps.positions.size());
  out.height = row_end - row_begin;
  out.pixels.resize(static_cast<size_t>(out.width * out.height * 3));
  for (int64_t y = 0; y < out.height; ++y) {
    const uint8_t* from = in.pixels.data() + (y + row_begin) * in.width * 3;
    uint8_t* to = out.pixels.data() + y * out.width * 3;
    for (const Taps::Position& p : taps.positions) {
      const int32_t* w = taps.weights.data() + p.at;
      const uint8_t* pixel = from + p.first * 3;
      int32_t r = kHalf;
      int32_t g = kHalf;
      int32_t b = kHalf;
      for (int64_t k = 0; k < p.count; ++k) {
        r += pixel[3 * k] * w[k];
        g += pixel[3 * k + 1] * w[k];
        b += pixel[3 * k + 2] * w[k];
      }
      *to++ = Clip8(r);
      *to++ = Clip8(g);
      *to++ = Clip8(b);
    }
  }
  return out;
}

// Filters along y; `in` begins at row `row_begin` of the picture that the weights refer to.
RgbImage FilterRows(const RgbImage& in, const Taps& taps, int64_t row_begin) {
  RgbImage out;
  out.width = in.width;
  out.height = static_cast<int64_t>(taps.positions.size());
  const int64_t row_bytes = in.width * 3;
  out.pixels.resize(static_cast<size_t>(row_bytes * out.height));
  std::vector<int32_t> sums(static_cast<size_t>(row_bytes));
  for (int64_t y = 0; y < out.height; ++y) {
    const Taps::Position& p = taps.positions[static_cast<size_t>(y)];
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int64_t k = 0; k < p.count; ++k) {
      const int32_t w = taps.weights[p.at + static_cast<size_t>(k)];
      const uint8_t* from = in.pixels.data() + (p.first + k - row_begin) * row_bytes;
      for (int64_t i = 0; i < row_bytes; ++i) sums[static_cast<size_t>(i)] += from[i] * w;
    }
    uint8_t* to = out.pixels.data() + y * row_bytes;
    for (int64_t i = 0; i < row_bytes; ++i) to[i] = Clip8(sums[static_cast<size_t>(i)]);
  }
  return out;
}

RgbImage Crop(const RgbImage& in, const CropBox& box) {
  RgbImage out{box.width, box.height, {}};
  out.pixels.reserve(static_cast<size_t>(box.width * box.height * 3));
  for (int64_t y = 0; y < box.height; ++y) {
    const uint8_t* from = in.pixels.data() + ((y + box.top) * in.width + box.left) * 3;
    out.pixels.insert(out.pixels.end(), from, from + box.width * 3);
  }
  return out;
}

}  // namespace

absl::StatusOr<RgbImage> ResizeLanczos(const RgbImage& image, int64_t width, int64_t height) {
  return ResizeLanczosCrop(image, width, height, {0, 0, width, height});
}

absl::StatusOr<RgbImage> ResizeLanczosCrop(const RgbImage& image, int64_t width, int64_t height,
                                           const CropBox& crop) {
  const auto bad_side = [](int64_t side) { return side < 1 || side > kMaxSide; };
  if (bad_side(width) || bad_side(height) || bad_side(image.width) || bad_side(image.height) ||
      static_cast<int64_t>(image.pixels.size()) != image.width * image.height * 3) {
    return InvalidArgument({.what = "cannot resize a picture",
                            .got = std::to_string(image.width) + "x" +
                                   std::to_string(image.height) + " to " + std::to_string(width) +
                                   "x" + std::to_string(height),
                            .wanted = "sides from 1 to " + std::to_string(kMaxSide)});
  }
  if (crop.left < 0 || crop.top < 0 || crop.width < 1 || crop.height < 1 ||
      crop.left > width - crop.width || crop.top > height - crop.height) {
    return InvalidArgument({.what = "crop box lies outside the resized picture"});
  }
  const bool columns = width != image.width;
  const bool rows = height != image.height;
  if (!columns && !rows) return Crop(image, crop);
  if (!rows) {
    const Taps x = MakeTaps(image.width, width, crop.left, crop.left + crop.width);
    return FilterColumns(image, x, crop.top, crop.top + crop.height);
  }
  const Taps y = MakeTaps(image.height, height, crop.top, crop.top + crop.height);
  if (!columns) {
    const RgbImage part =
        Crop(image, {crop.left, y.input_begin, crop.width, y.input_end - y.input_begin});
    return FilterRows(part, y, y.input_begin);
  }
  const Taps x = MakeTaps(image.width, width, crop.left, crop.left + crop.width);
  return FilterRows(FilterColumns(image, x, y.input_begin, y.input_end), y, y.input_begin);
}

}  // namespace h3rt
