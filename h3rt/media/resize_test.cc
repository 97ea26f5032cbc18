#include "h3rt/media/resize.h"

#include <gtest/gtest.h>

#include "h3rt/base/hash.h"
#include "h3rt/media/media_test_util.h"

namespace h3rt {
namespace {

// Expected pixels and hashes: numpy.asarray(Image.fromarray(formula).resize((W, H),
// Image.LANCZOS)) of Pillow 13.0.0, the formula picture of media_test_util.h; hashes are SHA-256 of
// the bytes.
TEST(ResizeLanczos, ShrinkingBothSidesEqualsPillow) {
  const std::vector<uint8_t> expected = {
      61,  110, 163, 137, 174, 137, 174, 155, 111, 169, 71,  99,  129, 131, 117, 116, 102, 95,
      129, 37,  126, 72,  76,  126, 77,  139, 163, 134, 174, 148, 117, 167, 192, 46,  104, 198};
  const auto out = ResizeLanczos(FormulaImage(7, 5), 4, 3);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->pixels, expected);
}

TEST(ResizeLanczos, AnUnchangedSideIsNotFiltered) {
  const std::vector<uint8_t> rows = {10,  63,  142, 54,  121, 170, 116, 178, 152, 157, 196, 141,
                                     184, 167, 171, 153, 211, 127, 185, 108, 180, 131, 129, 23,
                                     171, 103, 99,  130, 6,   99,  65,  113, 83,  63,  52,  124,
                                     13,  127, 128, 197, 136, 155, 32,  97,  192};
  const std::vector<uint8_t> columns = {12,  65,  108, 74,  123, 180, 136, 191, 234, 106, 149, 232,
                                        195, 237, 74,  231, 107, 3,   190, 161, 66,  98,  8,   95,
                                        59,  17,  205, 1,   58,  134, 80,  177, 140, 147, 161, 137};
  const auto only_rows = ResizeLanczos(FormulaImage(5, 4), 5, 3);
  const auto only_columns = ResizeLanczos(FormulaImage(5, 4), 3, 4);
  ASSERT_TRUE(only_rows.ok() && only_columns.ok());
  EXPECT_EQ(only_rows->pixels, rows);
  EXPECT_EQ(only_columns->pixels, columns);
  EXPECT_EQ(*ResizeLanczos(FormulaImage(5, 4), 5, 4), FormulaImage(5, 4));
}

TEST(ResizeLanczos, EveryRatioEqualsPillow) {
  struct Case {
    int64_t w, h, to_w, to_h;
    const char* sha256;
  };
  const Case cases[] = {
      {97, 61, 160, 96, "55e91bc4e748af21c3903cb79938937d0d338205a0254b3c7147a5ed3227f24b"},
      {200, 150, 64, 48, "a1c1580993c0a9035c8d424eaf0cf90e7bc790b3fca6d3e694e956058db8dee1"},
      {123, 45, 31, 200, "b3aa44212e973c5cb7a91116a5df15f1be4cc149597f83b97d0fa8b1cc001a21"},
      {640, 360, 1344, 768, "f0f1110de73d5b8a9894decd168447b71b8e726a09620b54064b47719134aa93"},
      {1000, 3, 32, 32, "7263ce0b2e5174c3648ecf00f355753684da28aa00cd96e467ac5264b3131e15"},
      {1, 1, 32, 64, "95fbb46f82dfa149cae561d247115df65d603cde175fd3bd93c3b3f5050c7c83"},
      {2048, 1365, 1344, 768, "0eb341284ff3acde4c295d5b42b1acd44f05c8e76e1a000986a70c7c3cb1bfb5"},
  };
  for (const Case& c : cases) {
    const auto out = ResizeLanczos(FormulaImage(c.w, c.h), c.to_w, c.to_h);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Sha256Hex(std::as_bytes(std::span(out->pixels))), c.sha256)
        << c.w << "x" << c.h << " to " << c.to_w << "x" << c.to_h;
  }
}

TEST(ResizeLanczos, ACropEqualsTheSamePartOfTheWhole) {
  const RgbImage image = FormulaImage(41, 29);
  for (const auto& [w, h] : {std::pair<int64_t, int64_t>{90, 70}, {20, 70}, {41, 70}, {90, 29}}) {
    const auto whole = ResizeLanczos(image, w, h);
    const CropBox box{5, 7, 11, 13};
    const auto part = ResizeLanczosCrop(image, w, h, box);
    ASSERT_TRUE(whole.ok() && part.ok());
    for (int64_t y = 0; y < box.height; ++y) {
      for (int64_t i = 0; i < box.width * 3; ++i) {
        ASSERT_EQ(part->pixels[static_cast<size_t>(y * box.width * 3 + i)],
                  whole->pixels[static_cast<size_t>(((y + 7) * w + 5) * 3 + i)]);
      }
    }
  }
}

TEST(ResizeLanczos, BadSizesAreRefused) {
  const RgbImage image = FormulaImage(4, 4);
  EXPECT_EQ(ResizeLanczos(image, 0, 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ResizeLanczos(image, 4, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ResizeLanczos(image, 4, int64_t{1} << 40).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ResizeLanczos({}, 4, 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ResizeLanczosCrop(image, 8, 8, {5, 0, 4, 4}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
