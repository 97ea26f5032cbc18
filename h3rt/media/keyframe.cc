#include "h3rt/media/keyframe.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "h3rt/media/resize.h"

namespace h3rt {

absl::StatusOr<RgbImage> FitKeyframe(const RgbImage& image, int64_t width, int64_t height,
                                     KeyframeFit fit) {
  if (width < 1 || height < 1 || image.width < 1 || image.height < 1) {
    return InvalidArgument({.what = "cannot fit a keyframe",
                            .got = std::to_string(image.width) + "x" +
                                   std::to_string(image.height) + " onto " + std::to_string(width) +
                                   "x" + std::to_string(height),
                            .wanted = "sides of at least 1"});
  }
  if (image.width == width && image.height == height) return image;
  if (fit == KeyframeFit::kStretch) return ResizeLanczos(image, width, height);
  const auto w = static_cast<double>(image.width);
  const auto h = static_cast<double>(image.height);
  const double scale = std::max(static_cast<double>(width) / w, static_cast<double>(height) / h);
  // nearbyint rounds half to even, as Python's round does.
  const int64_t resized_width = std::max(width, static_cast<int64_t>(std::nearbyint(w * scale)));
  const int64_t resized_height = std::max(height, static_cast<int64_t>(std::nearbyint(h * scale)));
  return ResizeLanczosCrop(
      image, resized_width, resized_height,
      {(resized_width - width) / 2, (resized_height - height) / 2, width, height});
}

absl::StatusOr<Tensor> KeyframeTensor(const RgbImage& image, int64_t width, int64_t height,
                                      KeyframeFit fit) {
  H3RT_ASSIGN_OR_RETURN(const RgbImage fitted, FitKeyframe(image, width, height, fit));
  return ImageToTensor(fitted);
}

}  // namespace h3rt
