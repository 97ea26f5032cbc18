// Pictures as bytes, and the conversions between tensors, RGB and what a video encoder takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

// 8-bit RGB, rows from the top without gaps: pixels[(y * width + x) * 3 + channel].
struct RgbImage {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels;
  friend bool operator==(const RgbImage&, const RgbImage&) = default;
};

// Writes round(255 * x), half to even, clamped to 0..255, of a F32 view [3, H, W] (any strides) to
// `rgb`, which holds H * W * 3 bytes. The product is one float32 multiplication, as in torch.
// Errors: kInvalidArgument for another shape or dtype; kDataLoss when a value is NaN or infinite,
// with the frame number, channel and place.
absl::Status FrameToRgb(const ConstTensorView& frame, int64_t frame_number, std::span<uint8_t> rgb);

// The same as an image.
absl::StatusOr<RgbImage> FrameToImage(const ConstTensorView& frame, int64_t frame_number);

// F32 [3, 1, H, W] with byte / 255, one float32 division, as in torch.
absl::StatusOr<Tensor> ImageToTensor(const RgbImage& image);

// Planes of one 4:2:0 picture: y holds W * H bytes, u and v hold W/2 * H/2 each.
struct Yuv420 {
  std::span<uint8_t> y;
  std::span<uint8_t> u;
  std::span<uint8_t> v;
};

// BT.709, limited range, chroma sited left (between rows, on the even columns) as H.264 assumes:
//   Y  = 16 + 219/255 (0.2126 R + 0.7152 G + 0.0722 B)
//   Cb = 128 + 224/255 (B - Y') / 1.8556,   Cr = 128 + 224/255 (R - Y') / 1.5748
// with Y' the weighted sum above and the chroma taken from (1 2 1)/4 over columns and (1 1)/2 over
// rows, edges repeated. Integer arithmetic, so the bytes are the same on every machine; each result
// is within 0.51 of the exact value. Width and height must be even: our own fault otherwise.
void RgbToYuv420(std::span<const uint8_t> rgb, int64_t width, int64_t height, const Yuv420& out);

}  // namespace h3rt
