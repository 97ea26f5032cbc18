// One picture that shows a clip: evenly spaced frames in a grid.
#pragma once

#include <cstdint>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/media/pixels.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

struct ContactSheetOptions {
  int64_t cells = 8;         // at most this many frames; fewer when the clip has fewer
  int64_t columns = 0;       // 0: chosen so that the sheet is about as wide as 16:9
  int64_t gap = 4;           // pixels between frames and around them, dark grey
  int64_t max_width = 1920;  // frames are scaled down (Lanczos) until the sheet is no wider
};

// The frames that a sheet shows: round(i (F - 1) / (N - 1)), so the first and the last are in it.
std::vector<int64_t> ContactSheetFrames(int64_t frames, int64_t cells);

// `frames` is F32 [3, F, H, W] in [0, 1], F >= 1. Frames run left to right, then down; cells that
// stay empty are dark grey. WritePng (image.h) writes the result.
// Errors: kInvalidArgument for another shape or options below 1 (gap below 0); kDataLoss for a NaN
// in a frame that is shown.
absl::StatusOr<RgbImage> MakeContactSheet(const ConstTensorView& frames,
                                          const ContactSheetOptions& options);

}  // namespace h3rt
