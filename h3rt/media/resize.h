// Lanczos resampling of 8-bit RGB, the same bytes as Pillow's Image.resize(size, LANCZOS).
#pragma once

#include <cstdint>

#include "h3rt/base/status.h"
#include "h3rt/media/pixels.h"

namespace h3rt {

// A part of the resized picture, in its pixels.
struct CropBox {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;
};

// Resizes to width x height with a Lanczos filter of support 3 (3 * scale when shrinking). Numerics
// as in Pillow, bit for bit: weights in float64, normalised, then rounded to 22 fraction bits;
// columns first, an 8-bit picture in between, then rows; each sum starts at one half and is clamped
// to 0..255. A side that keeps its length is not filtered.
// Errors: kInvalidArgument for an empty picture, a size below 1 or a side over 2^24.
absl::StatusOr<RgbImage> ResizeLanczos(const RgbImage& image, int64_t width, int64_t height);

// The same, cut to `crop`: equal to resizing and then cropping, but only the part asked for is ever
// computed or held.
absl::StatusOr<RgbImage> ResizeLanczosCrop(const RgbImage& image, int64_t width, int64_t height,
                                           const CropBox& crop);

}  // namespace h3rt
