#include "h3rt/media/image_header.h"

#include <string>

namespace h3rt {
namespace {

uint32_t Byte(std::string_view s, size_t at) { return static_cast<unsigned char>(s[at]); }

uint32_t Big16(std::string_view s, size_t at) { return Byte(s, at) << 8 | Byte(s, at + 1); }
uint32_t Big32(std::string_view s, size_t at) { return Big16(s, at) << 16 | Big16(s, at + 2); }
uint32_t Little32(std::string_view s, size_t at) {
  return Byte(s, at) | Byte(s, at + 1) << 8 | Byte(s, at + 2) << 16 | Byte(s, at + 3) << 24;
}

// The orientation in a TIFF block, 1 when it holds none or is damaged: a picture is not refused for
// its notes.
int OrientationOf(std::string_view tiff) {
  if (tiff.substr(0, 6) == std::string_view("Exif\0\0", 6)) tiff.remove_prefix(6);
  if (tiff.size() < 8) return 1;
  const bool big = tiff.substr(0, 2) == "MM";
  if (!big && tiff.substr(0, 2) != "II") return 1;
  const auto u16 = [&](size_t at) {
    return big ? Big16(tiff, at) : (Byte(tiff, at) | Byte(tiff, at + 1) << 8);
  };
  const size_t directory = big ? Big32(tiff, 4) : Little32(tiff, 4);
  if (directory > tiff.size() || tiff.size() - directory < 2) return 1;
  const size_t entries = u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at + 12 > tiff.size()) return 1;
    constexpr uint32_t kOrientation = 0x0112;
    if (u16(at) != kOrientation) continue;
    const auto value = static_cast<int>(u16(at + 8));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

absl::Status CutShort(std::string_view kind, std::string_view where) {
  return DataLoss({.what = "picture is damaged",
                   .got = "a " + std::string(kind) + " file that ends too early",
                   .where = std::string(where)});
}

absl::StatusOr<ImageHeader> Png(std::string_view bytes, std::string_view where) {
  ImageHeader header{ImageKind::kPng, 0, 0, 1};
  if (bytes.size() < 33) return CutShort("PNG", where);
  header.width = Big32(bytes, 16);
  header.height = Big32(bytes, 20);
  bool ended = false;
  for (size_t at = 8; at + 12 <= bytes.size() && !ended;) {
    const size_t size = Big32(bytes, at);
    if (size > bytes.size() - at - 12) break;
    const std::string_view id = bytes.substr(at + 4, 4);
    if (id == "eXIf") header.orientation = OrientationOf(bytes.substr(at + 8, size));
    ended = id == "IEND";
    at += size + 12;
  }
  if (!ended) return CutShort("PNG", where);
  return header;
}

absl::StatusOr<ImageHeader> Jpeg(std::string_view bytes, std::string_view where) {
  ImageHeader header{ImageKind::kJpeg, 0, 0, 1};
  size_t at = 2;
  while (at + 4 <= bytes.size()) {
    if (Byte(bytes, at) != 0xFF) return CutShort("JPEG", where);
    const uint32_t marker = Byte(bytes, at + 1);
    if (marker == 0xFF) {  // fill byte
      ++at;
      continue;
    }
    const size_t size = Big16(bytes, at + 2);
    if (size < 2 || size > bytes.size() - at - 2) return CutShort("JPEG", where);
    const std::string_view body = bytes.substr(at + 4, size - 2);
    if (marker == 0xE1 && body.substr(0, 4) == "Exif") header.orientation = OrientationOf(body);
    const bool frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame && body.size() >= 5) {
      header.height = Big16(body, 1);
      header.width = Big16(body, 3);
    }
    at += 2 + size;
    if (marker != 0xDA) continue;
    // The compressed data runs to the end marker. The decoder would fill in what is missing.
    if (bytes.find("\xFF\xD9", at) == std::string_view::npos) return CutShort("JPEG", where);
    return header;
  }
  return CutShort("JPEG", where);
}

absl::StatusOr<ImageHeader> Webp(std::string_view bytes, std::string_view where) {
  ImageHeader header{ImageKind::kWebp, 0, 0, 1};
  if (Little32(bytes, 4) > bytes.size() - 8) return CutShort("WebP", where);
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t size = Little32(bytes, at + 4);
    if (size > bytes.size() - at - 8) return CutShort("WebP", where);
    if (bytes.substr(at, 4) == "EXIF") {
      header.orientation = OrientationOf(bytes.substr(at + 8, size));
    }
    at += 8 + size + size % 2;
  }
  return header;
}

}  // namespace

absl::StatusOr<ImageHeader> ReadImageHeader(std::string_view bytes, std::string_view where) {
  if (bytes.substr(0, 8) == "\x89PNG\r\n\x1A\n") return Png(bytes, where);
  if (bytes.substr(0, 3) == "\xFF\xD8\xFF") return Jpeg(bytes, where);
  if (bytes.size() >= 12 && bytes.substr(0, 4) == "RIFF" && bytes.substr(8, 4) == "WEBP") {
    return Webp(bytes, where);
  }
  return InvalidArgument({.what = "not a picture",
                          .got = bytes.empty() ? "an empty file" : "a file of another kind",
                          .wanted = "PNG, JPEG or WebP",
                          .where = std::string(where)});
}

}  // namespace h3rt
