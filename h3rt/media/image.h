// Single pictures in and out. All of it needs the FFmpeg part: kFailedPrecondition with the reason
// when it is absent (ffmpeg_library.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/status.h"
#include "h3rt/media/pixels.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// More is refused before decoding; 8K video is 33 million.
inline constexpr int64_t kMaxImagePixels = 100'000'000;

// Reads PNG, JPEG or WebP as 8-bit RGB the way diffusers loads one: turned by its EXIF orientation,
// alpha dropped (not blended), grey repeated, palettes looked up, 16-bit samples cut to their high
// byte. JPEG pixels are FFmpeg's: they may differ by a few levels from libjpeg's, whose inverse
// transform and chroma interpolation round differently.
// Errors: kInvalidArgument with the file name when it is not a picture or has too many pixels,
// kDataLoss when it is damaged, and those of ReadFile.
absl::StatusOr<RgbImage> ReadImage(const std::string& path);
// The same from memory; `where` names the source in messages.
absl::StatusOr<RgbImage> DecodeImage(std::string_view bytes, std::string_view where);

// The picture turned as EXIF orientation 1 to 8 says; anything else leaves it as it is.
RgbImage ApplyOrientation(RgbImage image, int orientation);

// 8-bit RGB PNG. The same picture gives the same bytes. The file appears only when complete.
absl::StatusOr<std::string> EncodePng(const RgbImage& image);
absl::Status WritePng(const std::string& path, const RgbImage& image);

// Whether WritePngFrames can take this folder: it is empty, or can be made in its parent (tried,
// and removed again). Errors: kInvalidArgument, kFailedPrecondition without FFmpeg, kNotFound and
// others of the file system.
absl::Status CheckPngFolder(const std::string& folder);

// Writes `frames`, F32 [3, F, H, W] in [0, 1] with F >= 1, as frame_00000.png and so on into
// `folder`, which is new (its parent exists) or empty. On an error or cancellation (kCancelled;
// checked between frames) the files of this call are removed again. Returns the paths.
absl::StatusOr<std::vector<std::string>> WritePngFrames(const std::string& folder,
                                                        const ConstTensorView& frames,
                                                        const CancelToken* cancel);

}  // namespace h3rt
