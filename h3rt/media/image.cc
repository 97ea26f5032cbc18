#include "h3rt/media/image.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <new>
#include <utility>

#include "h3rt/base/file.h"
#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/media/image_header.h"

namespace h3rt {
namespace {

constexpr int64_t kMaxSide = 65500;  // what JPEG can say; PNG pictures beyond it are refused too

absl::Status CheckSize(int64_t width, int64_t height, std::string_view where) {
  if (width >= 1 && height >= 1 && width <= kMaxSide && height <= kMaxSide &&
      width * height <= kMaxImagePixels) {
    return absl::OkStatus();
  }
  return InvalidArgument({.what = "picture size",
                          .got = std::to_string(width) + "x" + std::to_string(height),
                          .wanted = "at most " + std::to_string(kMaxImagePixels) +
                                    " pixels, sides from 1 to " + std::to_string(kMaxSide),
                          .where = std::string(where)});
}

int32_t KindOf(ImageKind kind) {
  switch (kind) {
    case ImageKind::kPng:
      return H3RT_MEDIA_IMAGE_PNG;
    case ImageKind::kJpeg:
      return H3RT_MEDIA_IMAGE_JPEG;
    case ImageKind::kWebp:
      return H3RT_MEDIA_IMAGE_WEBP;
  }
  return 0;
}

uint8_t* AllocateImage(void* user, int64_t width, int64_t height) {
  auto* image = static_cast<RgbImage*>(user);
  try {
    image->pixels.resize(static_cast<size_t>(width * height * 3));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  image->width = width;
  image->height = height;
  return image->pixels.data();
}

int32_t AppendBytes(void* user, const uint8_t* data, int64_t bytes) {
  static_cast<std::string*>(user)->append(reinterpret_cast<const char*>(data),
                                          static_cast<size_t>(bytes));
  return H3RT_MEDIA_OK;
}

absl::Status WriteFrame(const std::string& path, const ConstTensorView& frames, int64_t i) {
  H3RT_ASSIGN_OR_RETURN(const RgbImage image, FrameToImage(frames.Select(1, i), i));
  return WritePng(path, image);
}

}  // namespace

RgbImage ApplyOrientation(RgbImage image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool swap = orientation >= 5;
  RgbImage out;
  out.width = swap ? image.height : image.width;
  out.height = swap ? image.width : image.height;
  out.pixels.resize(image.pixels.size());
  // Orientation 1..4: which corner row 0, column 0 shows; 5..8 the same with rows and columns
  // exchanged.
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      int64_t from_x = swap ? y : x;
      int64_t from_y = swap ? x : y;
      if (flip_x) from_x = image.width - 1 - from_x;
      if (flip_y) from_y = image.height - 1 - from_y;
      const auto from = static_cast<size_t>((from_y * image.width + from_x) * 3);
      const auto to = static_cast<size_t>((y * out.width + x) * 3);
      for (size_t c = 0; c < 3; ++c) out.pixels[to + c] = image.pixels[from + c];
    }
  }
  return out;
}

absl::StatusOr<RgbImage> DecodeImage(std::string_view bytes, std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(bytes, where));
  if (header.kind != ImageKind::kWebp) {
    H3RT_RETURN_IF_ERROR(CheckSize(header.width, header.height, where));
  }
  H3RT_ASSIGN_OR_RETURN(const H3rtMediaApi* api, FfmpegApi());
  RgbImage image;
  H3rtMediaError error = {};
  const int32_t code = api->decode_image(
      KindOf(header.kind), reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int64_t>(bytes.size()), kMaxImagePixels, &AllocateImage, &image, &error);
  if (code != H3RT_MEDIA_OK) return StatusOfModule(error, where);
  return ApplyOrientation(std::move(image), header.orientation);
}

absl::StatusOr<RgbImage> ReadImage(const std::string& path) {
  H3RT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, uint64_t{1} << 30));
  return DecodeImage(bytes, path);
}

absl::StatusOr<std::string> EncodePng(const RgbImage& image) {
  H3RT_RETURN_IF_ERROR(CheckSize(image.width, image.height, "PNG"));
  if (static_cast<int64_t>(image.pixels.size()) != image.width * image.height * 3) {
    return InvalidArgument({.what = "picture bytes",
                            .got = std::to_string(image.pixels.size()),
                            .wanted = std::to_string(image.width * image.height * 3)});
  }
  H3RT_ASSIGN_OR_RETURN(const H3rtMediaApi* api, FfmpegApi());
  std::string bytes;
  H3rtMediaError error = {};
  const int32_t code =
      api->encode_png(image.pixels.data(), image.width, image.height, &AppendBytes, &bytes, &error);
  if (code != H3RT_MEDIA_OK) return StatusOfModule(error, "PNG");
  return bytes;
}

absl::Status WritePng(const std::string& path, const RgbImage& image) {
  H3RT_ASSIGN_OR_RETURN(const std::string bytes, EncodePng(image));
  return WriteFileAtomically(path, bytes);
}

absl::Status CheckPngFolder(const std::string& folder) {
  if (const absl::Status ffmpeg = FfmpegApi().status(); !ffmpeg.ok()) return ffmpeg;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(folder, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    // Its parent has to be there and take folders; whether it does, only the attempt tells.
    if (::mkdir(folder.c_str(), 0777) != 0) return ErrnoStatus(errno, "create the folder", folder);
    if (::rmdir(folder.c_str()) != 0) return ErrnoStatus(errno, "remove the folder", folder);
    return absl::OkStatus();
  }
  const bool empty = status.type() == std::filesystem::file_type::directory &&
                     std::filesystem::is_empty(folder, error) && !error;
  if (!empty) {
    // Frames of an earlier, longer clip would stay among the new ones.
    return InvalidArgument({.what = "folder of frames",
                            .got = "something that exists and is not empty",
                            .wanted = "a new or empty folder",
                            .where = folder});
  }
  return PendingFile::Create(folder + "/frame").status();
}

absl::StatusOr<std::vector<std::string>> WritePngFrames(const std::string& folder,
                                                        const ConstTensorView& frames,
                                                        const CancelToken* cancel) {
  if (frames.rank() != 4 || frames.dtype() != DType::kF32 || frames.dim(0) != 3 ||
      frames.dim(1) < 1) {
    return InvalidArgument(
        {.what = "frames",
         .got = std::string(NameOf(frames.dtype())) + " " + frames.shape().ToString(),
         .wanted = "F32 [3, frames, height, width]"});
  }
  H3RT_RETURN_IF_ERROR(CheckPngFolder(folder));
  const bool made = ::mkdir(folder.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) return ErrnoStatus(errno, "create the folder", folder);
  std::vector<std::string> paths;
  absl::Status status;
  for (int64_t i = 0; i < frames.dim(1) && status.ok(); ++i) {
    char name[32];
    std::snprintf(name, sizeof(name), "/frame_%05lld.png", static_cast<long long>(i));
    if (cancel != nullptr && cancel->cancelled()) {
      status = Cancelled("writing frames into " + folder);
      break;
    }
    status = WriteFrame(folder + name, frames, i);
    if (status.ok()) paths.push_back(folder + name);
  }
  if (status.ok()) return paths;
  for (const std::string& path : paths) ::unlink(path.c_str());
  if (made) ::rmdir(folder.c_str());
  return status;
}

}  // namespace h3rt
