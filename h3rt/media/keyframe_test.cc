#include "h3rt/media/keyframe.h"

#include <gtest/gtest.h>

#include "h3rt/base/hash.h"
#include "h3rt/media/media_test_util.h"
#include "h3rt/media/resize.h"

namespace h3rt {
namespace {

// SHA-256 of the follower's pixels by Pillow 13.0.0 with the arithmetic of the specification:
// s = max(W/w, H/h); resize to (max(W, round(w s)), max(H, round(h s))); crop at ((rw-W)//2,
// (rh-H)//2).
TEST(Keyframe, AFollowerIsScaledToCoverAndCroppedAsByPillow) {
  struct Case {
    int64_t w, h, to_w, to_h;
    const char* sha256;
  };
  const Case cases[] = {
      {100, 75, 64, 32, "892b332dfbe1a20051d3fbc9fdf5c5a496142b01bf2c815a5300f3168bd01dba"},
      {75, 100, 64, 32, "35014cbf3744a0c5f00e6a362242aafc53d0ed13db60421e0045d5a5a4cbd42a"},
      {61, 97, 96, 160, "f7ae81f11cd5a080758d6fbad7a13b0fe8724dcd96f80fe05caed7f416b47700"},
      {333, 500, 64, 64, "cc9362352b9b06aa2ccaf68615805aff1ccc28e9ef886a8d391d410fa0d394de"},
      {37, 5, 32, 32, "13373219508b3946e645a281d2b27fd1a91483868cc162cacf55c935d0b708ba"},
      {64, 32, 64, 32, "ef71bf2da17f013190a4f47f03647d65255b17b94ae8c3a441a5ffafb0f51704"},
      {5, 37, 64, 32, "730f6a5117617fbf34232cff2366dd6832fd5ca8867c2996f591bc0907ce6573"},
  };
  for (const Case& c : cases) {
    const auto out = FitKeyframe(FormulaImage(c.w, c.h), c.to_w, c.to_h, KeyframeFit::kCoverCrop);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(out->width, c.to_w);
    EXPECT_EQ(out->height, c.to_h);
    EXPECT_EQ(Sha256Hex(std::as_bytes(std::span(out->pixels))), c.sha256)
        << c.w << "x" << c.h << " onto " << c.to_w << "x" << c.to_h;
  }
}

TEST(Keyframe, TheFirstIsStretchedNotCropped) {
  const RgbImage image = FormulaImage(100, 75);
  const auto stretched = FitKeyframe(image, 64, 32, KeyframeFit::kStretch);
  const auto cropped = FitKeyframe(image, 64, 32, KeyframeFit::kCoverCrop);
  ASSERT_TRUE(stretched.ok() && cropped.ok());
  EXPECT_EQ(*stretched, *ResizeLanczos(image, 64, 32));
  EXPECT_NE(*stretched, *cropped);
}

TEST(Keyframe, TheTensorHoldsBytesOver255PlaneByPlane) {
  const RgbImage image = FormulaImage(64, 32);
  const auto tensor = KeyframeTensor(image, 64, 32, KeyframeFit::kStretch);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->shape(), (Shape{3, 1, 32, 64}));
  const float* data = tensor->as<float>();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < 64 * 32; ++i) {
      const uint8_t byte = image.pixels[static_cast<size_t>(i * 3 + c)];
      ASSERT_EQ(data[c * 64 * 32 + i], static_cast<float>(byte) / 255.0f);
    }
  }
}

TEST(Keyframe, ExtremeAspectsNeedNoExtremeMemoryAndEmptyOnesAreRefused) {
  // Scaled to cover, this one would be 1,720,320 x 768 pixels; only the crop is computed.
  const auto out = FitKeyframe(FormulaImage(4480, 2), 1344, 768, KeyframeFit::kCoverCrop);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->pixels.size(), 1344u * 768u * 3u);
  EXPECT_EQ(FitKeyframe({}, 32, 32, KeyframeFit::kStretch).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FitKeyframe(FormulaImage(3, 3), 0, 32, KeyframeFit::kCoverCrop).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
