// What the first bytes of a picture file say, without decoding it. Internal to the media library.
#pragma once

#include <cstdint>
#include <string_view>

#include "h3rt/base/status.h"

namespace h3rt {

enum class ImageKind { kPng, kJpeg, kWebp };

struct ImageHeader {
  ImageKind kind = ImageKind::kPng;
  int64_t width = 0;  // 0 when the header was not understood (WebP)
  int64_t height = 0;
  int orientation = 1;  // EXIF, 1 to 8
};

// Recognises PNG, JPEG and WebP by their signatures and reads sizes (PNG, JPEG) and the EXIF
// orientation. kInvalidArgument when it is none of them, kDataLoss when it is cut short.
absl::StatusOr<ImageHeader> ReadImageHeader(std::string_view bytes, std::string_view where);

}  // namespace h3rt
