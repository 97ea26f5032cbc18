// Puts keyframes onto the canvas of a clip.
#pragma once

#include <cstdint>

#include "h3rt/base/status.h"
#include "h3rt/media/pixels.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

// The first keyframe of a request gives the geometry and is stretched; a later one follows and is
// cropped. A lone last keyframe is the first of its request.
enum class KeyframeFit { kStretch, kCoverCrop };

// kStretch: resized to exactly width x height. kCoverCrop: scale s = max(width / w, height / h) in
// float64, resized to (max(width, round(w s)), max(height, round(h s))) with round half to even,
// then cut at left = (rw - width) / 2, top = (rh - height) / 2, rounded down. Both resize with
// Pillow's Lanczos; a picture that already has the size is taken as it is.
// Errors: kInvalidArgument for an empty picture or canvas, or a resized side over 2^24.
// Source: specification section 6.7 and pitfall 21.
absl::StatusOr<RgbImage> FitKeyframe(const RgbImage& image, int64_t width, int64_t height,
                                     KeyframeFit fit);

// FitKeyframe, then F32 [3, 1, height, width] in [0, 1] (byte / 255).
absl::StatusOr<Tensor> KeyframeTensor(const RgbImage& image, int64_t width, int64_t height,
                                      KeyframeFit fit);

}  // namespace h3rt
