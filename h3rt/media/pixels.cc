#include "h3rt/media/pixels.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "h3rt/base/check.h"

namespace h3rt {
namespace {

// Rounds half to even for 0 <= v < 2^22: adding 1.5 * 2^23 leaves no fraction bits. It vectorises
// where a call of nearbyint would not.
float RoundHalfEven(float v) { return (v + 12582912.0f) - 12582912.0f; }

absl::Status NotFinite(float value, int64_t frame, int64_t channel, int64_t y, int64_t x) {
  return DataLoss({.what = "frame " + std::to_string(frame) + " is not a picture",
                   .got = std::isnan(value) ? "NaN" : "infinity",
                   .wanted = "values in [0, 1]",
                   .where = "channel " + std::to_string(channel) + ", row " + std::to_string(y) +
                            ", column " + std::to_string(x)});
}

constexpr int kLumaBits = 20;
constexpr int kChromaBits = 17;  // and 3 more from the sum of eight samples

constexpr int32_t Fixed(double v, int bits) {
  const double scaled = v * static_cast<double>(int64_t{1} << bits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

constexpr double kRed = 0.2126;
constexpr double kBlue = 0.0722;
constexpr double kLumaScale = 219.0 / 255.0;
constexpr double kChromaScale = 224.0 / 255.0;
// Green takes the remainder, so that greys have exactly the sum: white is 235, grey chroma is 128.
constexpr int32_t kYr = Fixed(kRed * kLumaScale, kLumaBits);
constexpr int32_t kYb = Fixed(kBlue * kLumaScale, kLumaBits);
constexpr int32_t kYg = Fixed(kLumaScale, kLumaBits) - kYr - kYb;
constexpr int32_t kUb = Fixed(0.5 * kChromaScale, kChromaBits);
constexpr int32_t kUr = Fixed(-kRed / (2 * (1 - kBlue)) * kChromaScale, kChromaBits);
constexpr int32_t kUg = -kUb - kUr;
constexpr int32_t kVr = Fixed(0.5 * kChromaScale, kChromaBits);
constexpr int32_t kVb = Fixed(-kBlue / (2 * (1 - kRed)) * kChromaScale, kChromaBits);
constexpr int32_t kVg = -kVr - kVb;

void LumaRow(const uint8_t* rgb, int64_t width, uint8_t* y) {
  for (int64_t x = 0; x < width; ++x) {
    const int32_t sum = kYr * rgb[3 * x] + kYg * rgb[3 * x + 1] + kYb * rgb[3 * x + 2];
    y[x] = static_cast<uint8_t>((sum + (16 << kLumaBits) + (1 << (kLumaBits - 1))) >> kLumaBits);
  }
}

void ChromaRow(const uint8_t* top, const uint8_t* bottom, int64_t width, uint8_t* u, uint8_t* v) {
  constexpr int kBits = kChromaBits + 3;
  constexpr int32_t kOffset = (128 << kBits) + (1 << (kBits - 1));
  for (int64_t x = 0; x < width; x += 2) {
    const int64_t left = 3 * std::max<int64_t>(x - 1, 0);
    const int64_t here = 3 * x;
    const int64_t right = 3 * (x + 1);
    int32_t sum[3];
    for (int c = 0; c < 3; ++c) {
      sum[c] = top[left + c] + 2 * top[here + c] + top[right + c] + bottom[left + c] +
               2 * bottom[here + c] + bottom[right + c];
    }
    u[x / 2] =
        static_cast<uint8_t>((kUr * sum[0] + kUg * sum[1] + kUb * sum[2] + kOffset) >> kBits);
    v[x / 2] =
        static_cast<uint8_t>((kVr * sum[0] + kVg * sum[1] + kVb * sum[2] + kOffset) >> kBits);
  }
}

}  // namespace

absl::Status FrameToRgb(const ConstTensorView& frame, int64_t frame_number,
                        std::span<uint8_t> rgb) {
  if (frame.dtype() != DType::kF32 || frame.rank() != 3 || frame.dim(0) != 3) {
    return InvalidArgument(
        {.what = "frame " + std::to_string(frame_number),
         .got = std::string(NameOf(frame.dtype())) + " " + frame.shape().ToString(),
         .wanted = "F32 [3, height, width]"});
  }
  const int64_t height = frame.dim(1);
  const int64_t width = frame.dim(2);
  H3RT_CHECK(static_cast<int64_t>(rgb.size()) == height * width * 3);
  const float* data = frame.as<float>();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const float* row = data + c * frame.stride(0) + y * frame.stride(1);
      const int64_t step = frame.stride(2);
      uint8_t* out = rgb.data() + y * width * 3 + c;
      bool finite = true;
      for (int64_t x = 0; x < width; ++x) {
        const float value = row[x * step];
        finite &= std::fabs(value) <= 3.4028234e38f;  // false for NaN too
        const float clamped = std::min(std::max(value * 255.0f, 0.0f), 255.0f);
        out[3 * x] = static_cast<uint8_t>(static_cast<int32_t>(RoundHalfEven(clamped)));
      }
      if (finite) continue;
      for (int64_t x = 0; x < width; ++x) {
        const float value = row[x * step];
        if (!std::isfinite(value)) return NotFinite(value, frame_number, c, y, x);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RgbImage> FrameToImage(const ConstTensorView& frame, int64_t frame_number) {
  RgbImage image;
  if (frame.rank() == 3) {
    image.height = frame.dim(1);
    image.width = frame.dim(2);
    image.pixels.resize(static_cast<size_t>(image.width * image.height * 3));
  }
  H3RT_RETURN_IF_ERROR(FrameToRgb(frame, frame_number, image.pixels));
  return image;
}

absl::StatusOr<Tensor> ImageToTensor(const RgbImage& image) {
  H3RT_ASSIGN_OR_RETURN(Tensor tensor,
                        Tensor::Create(DType::kF32, Shape{3, 1, image.height, image.width}));
  const int64_t plane = image.width * image.height;
  float* out = tensor.as<float>();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < plane; ++i) {
      out[c * plane + i] =
          static_cast<float>(image.pixels[static_cast<size_t>(3 * i + c)]) / 255.0f;
    }
  }
  return tensor;
}

void RgbToYuv420(std::span<const uint8_t> rgb, int64_t width, int64_t height, const Yuv420& out) {
  const auto pixels = static_cast<size_t>(width * height);
  H3RT_CHECK(width > 0 && height > 0 && width % 2 == 0 && height % 2 == 0);
  H3RT_CHECK(rgb.size() == pixels * 3 && out.y.size() == pixels && out.u.size() == pixels / 4 &&
             out.v.size() == pixels / 4);
  for (int64_t y = 0; y < height; ++y) {
    LumaRow(rgb.data() + y * width * 3, width, out.y.data() + y * width);
  }
  for (int64_t y = 0; y < height; y += 2) {
    const uint8_t* top = rgb.data() + y * width * 3;
    const int64_t to = y / 2 * (width / 2);
    ChromaRow(top, top + width * 3, width, out.u.data() + to, out.v.data() + to);
  }
}

}  // namespace h3rt
