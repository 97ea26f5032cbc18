#include "h3rt/media/pixels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "h3rt/media/contact_sheet.h"
#include "h3rt/media/media_test_util.h"

namespace h3rt {
namespace {

TEST(FrameToRgb, RoundsHalfToEvenAndClamps) {
  // 0.5 * 255 = 127.5 -> 128; 2.5 / 255 and 3.5 / 255 in float32 give products of exactly 2.5 and
  // 3.5 or their neighbours, so the expectation is formed with the same product.
  std::vector<float> in;
  for (int i = -20; i < 540; ++i) in.push_back(static_cast<float>(i) / 510.0f);
  in.push_back(1e30f);
  in.push_back(-1e30f);
  in.push_back(-0.0f);
  in.push_back(0.5f);
  const auto n = static_cast<int64_t>(in.size());
  std::vector<float> planes;
  for (int c = 0; c < 3; ++c) planes.insert(planes.end(), in.begin(), in.end());
  std::vector<uint8_t> rgb(in.size() * 3, 77);
  const auto status =
      FrameToRgb(ConstTensorView::Of(planes.data(), Shape{3, 1, n}), 0, std::span(rgb));
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < in.size(); ++i) {
    const float product = 255.0f * in[i];
    const double expected = std::clamp(std::nearbyint(static_cast<double>(product)), 0.0, 255.0);
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(rgb[3 * i + c], expected) << in[i];
  }
  EXPECT_EQ(rgb[3 * (in.size() - 1)], 128);
}

TEST(FrameToRgb, StridedViewsGiveTheSameBytes) {
  Tensor video = SmoothVideo(3, 6, 10);
  const ConstTensorView frame = static_cast<const Tensor&>(video).view().Select(1, 2);
  const Tensor copy = Tensor::Copy(frame).value();
  std::vector<uint8_t> a(180);
  std::vector<uint8_t> b(180);
  ASSERT_TRUE(FrameToRgb(frame, 0, a).ok());
  ASSERT_TRUE(FrameToRgb(copy.view(), 0, b).ok());
  EXPECT_EQ(a, b);
}

TEST(FrameToRgb, NanAndInfinityNameTheFrameAndThePlace) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    Tensor frame = Tensor::Zeros(DType::kF32, Shape{3, 4, 6}).value();
    frame.as<float>()[1 * 24 + 2 * 6 + 5] = bad;
    std::vector<uint8_t> rgb(72);
    const auto status = FrameToRgb(frame.view(), 41, rgb);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(MessageOf(status).find("frame 41"), std::string::npos) << status;
    EXPECT_NE(MessageOf(status).find("channel 1, row 2, column 5"), std::string::npos) << status;
  }
}

TEST(RgbToYuv420, IsWithinHalfALevelOfTheExactFormula) {
  const RgbImage image = FormulaImage(34, 18);
  std::vector<uint8_t> y(34 * 18);
  std::vector<uint8_t> u(17 * 9);
  std::vector<uint8_t> v(17 * 9);
  RgbToYuv420(image.pixels, 34, 18, {y, u, v});
  const auto at = [&](int64_t px, int64_t py, size_t c) {
    px = std::max<int64_t>(px, 0);
    return static_cast<double>(image.pixels[static_cast<size_t>((py * 34 + px) * 3) + c]);
  };
  const double kr = 0.2126;
  const double kb = 0.0722;
  for (int64_t py = 0; py < 18; ++py) {
    for (int64_t px = 0; px < 34; ++px) {
      const double luma = kr * at(px, py, 0) + (1 - kr - kb) * at(px, py, 1) + kb * at(px, py, 2);
      const double error = 16 + luma * 219 / 255 - y[static_cast<size_t>(py * 34 + px)];
      ASSERT_TRUE(std::fabs(error) <= 0.51) << px << "," << py;
    }
  }
  for (int64_t cy = 0; cy < 9; ++cy) {
    for (int64_t cx = 0; cx < 17; ++cx) {
      double rgb[3];
      for (size_t c = 0; c < 3; ++c) {
        rgb[c] = 0;
        for (const int64_t row : {2 * cy, 2 * cy + 1}) {
          rgb[c] += (at(2 * cx - 1, row, c) + 2 * at(2 * cx, row, c) + at(2 * cx + 1, row, c)) / 8;
        }
      }
      const double luma = kr * rgb[0] + (1 - kr - kb) * rgb[1] + kb * rgb[2];
      const double cb = 128 + (rgb[2] - luma) / 1.8556 * 224 / 255;
      const double cr = 128 + (rgb[0] - luma) / 1.5748 * 224 / 255;
      const auto i = static_cast<size_t>(cy * 17 + cx);
      ASSERT_TRUE(std::fabs(cb - u[i]) <= 0.51) << cx << "," << cy;
      ASSERT_TRUE(std::fabs(cr - v[i]) <= 0.51) << cx << "," << cy;
    }
  }
}

TEST(RgbToYuv420, GreysHaveNoColourAndLumaRunsFrom16To235) {
  for (int grey = 0; grey < 256; ++grey) {
    std::vector<uint8_t> rgb(12, static_cast<uint8_t>(grey));
    std::vector<uint8_t> y(4);
    std::vector<uint8_t> u(1);
    std::vector<uint8_t> v(1);
    RgbToYuv420(rgb, 2, 2, {y, u, v});
    ASSERT_EQ(u[0], 128);
    ASSERT_EQ(v[0], 128);
    ASSERT_EQ(y[0], std::lround(16.0 + grey * 219.0 / 255.0));
  }
}

TEST(ContactSheet, ShowsTheFirstAndTheLastFrameAndSpacesTheRest) {
  EXPECT_EQ(ContactSheetFrames(124, 8), (std::vector<int64_t>{0, 18, 35, 53, 70, 88, 105, 123}));
  EXPECT_EQ(ContactSheetFrames(5, 8), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(ContactSheetFrames(9, 1), (std::vector<int64_t>{0}));
}

TEST(ContactSheet, PutsFramesIntoCellsWithGaps) {
  // Frame f is grey of level 20 f.
  Tensor video = Tensor::Create(DType::kF32, Shape{3, 5, 8, 16}).value();
  float* out = video.as<float>();
  for (int64_t i = 0; i < 3 * 5 * 128; ++i) {
    out[i] = static_cast<float>(20 * (i / 128 % 5)) / 255.0f;
  }
  const auto sheet = MakeContactSheet(video.view(), {.cells = 5, .columns = 3, .gap = 2});
  ASSERT_TRUE(sheet.ok()) << sheet.status();
  EXPECT_EQ(sheet->width, 3 * 18 + 2);
  EXPECT_EQ(sheet->height, 2 * 10 + 2);
  const auto at = [&](int64_t x, int64_t y) {
    return sheet->pixels[static_cast<size_t>((y * sheet->width + x) * 3)];
  };
  for (int64_t f = 0; f < 5; ++f) {
    const int64_t left = 2 + f % 3 * 18;
    const int64_t top = 2 + f / 3 * 10;
    EXPECT_EQ(at(left, top), 20 * f);
    EXPECT_EQ(at(left + 15, top + 7), 20 * f);
    EXPECT_EQ(at(left - 1, top), 32);
    EXPECT_EQ(at(left, top - 1), 32);
  }
  EXPECT_EQ(at(2 + 2 * 18 + 3, 2 + 10 + 3), 32) << "the sixth cell is empty";
}

TEST(ContactSheet, IsNoWiderThanAskedAndRefusesBadInput) {
  const Tensor video = SmoothVideo(9, 96, 160);
  const auto sheet = MakeContactSheet(video.view(), {.cells = 6, .gap = 3, .max_width = 300});
  ASSERT_TRUE(sheet.ok()) << sheet.status();
  EXPECT_LE(sheet->width, 300);
  EXPECT_EQ(MakeContactSheet(video.view().Select(1, 0), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeContactSheet(video.view(), {.cells = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  Tensor bad = SmoothVideo(9, 32, 32);
  bad.as<float>()[8 * 32 * 32] = std::nanf("");
  EXPECT_EQ(MakeContactSheet(bad.view(), {}).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace h3rt
