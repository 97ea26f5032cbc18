#include "h3rt/media/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "h3rt/media/resize.h"

namespace h3rt {
namespace {

constexpr uint8_t kGround = 32;  // dark grey

struct Grid {
  int64_t columns = 1;
  int64_t rows = 1;
  int64_t cell_width = 1;
  int64_t cell_height = 1;
};

Grid WithColumns(int64_t columns, int64_t cells, int64_t width, int64_t height,
                 const ContactSheetOptions& options) {
  Grid grid;
  grid.columns = std::min(columns, cells);
  grid.rows = (cells + grid.columns - 1) / grid.columns;
  const int64_t room =
      std::max<int64_t>((options.max_width - (grid.columns + 1) * options.gap) / grid.columns, 1);
  grid.cell_width = std::min(width, room);
  const double scale = static_cast<double>(grid.cell_width) / static_cast<double>(width);
  grid.cell_height = std::max<int64_t>(
      static_cast<int64_t>(std::nearbyint(static_cast<double>(height) * scale)), 1);
  return grid;
}

Grid ChooseGrid(int64_t cells, int64_t width, int64_t height, const ContactSheetOptions& options) {
  if (options.columns > 0) return WithColumns(options.columns, cells, width, height, options);
  Grid best;
  double best_miss = std::numeric_limits<double>::infinity();
  for (int64_t columns = 1; columns <= cells; ++columns) {
    const Grid grid = WithColumns(columns, cells, width, height, options);
    const double aspect = static_cast<double>(grid.columns * grid.cell_width) /
                          static_cast<double>(grid.rows * grid.cell_height);
    // Empty cells cost as much as the same factor of aspect.
    const double waste = static_cast<double>(grid.columns * grid.rows) / static_cast<double>(cells);
    const double miss = std::fabs(std::log(aspect * 9.0 / 16.0)) + std::log(waste);
    if (miss >= best_miss) continue;
    best_miss = miss;
    best = grid;
  }
  return best;
}

}  // namespace

std::vector<int64_t> ContactSheetFrames(int64_t frames, int64_t cells) {
  const int64_t n = std::min(frames, cells);
  std::vector<int64_t> shown;
  for (int64_t i = 0; i < n; ++i) {
    shown.push_back(n == 1 ? 0 : (2 * i * (frames - 1) + (n - 1)) / (2 * (n - 1)));
  }
  return shown;
}

absl::StatusOr<RgbImage> MakeContactSheet(const ConstTensorView& frames,
                                          const ContactSheetOptions& options) {
  if (frames.rank() != 4 || frames.dim(0) != 3 || frames.dtype() != DType::kF32 ||
      frames.elements() == 0) {
    return InvalidArgument(
        {.what = "frames of a contact sheet",
         .got = std::string(NameOf(frames.dtype())) + " " + frames.shape().ToString(),
         .wanted = "F32 [3, frames, height, width]"});
  }
  if (options.cells < 1 || options.cells > 1000 || options.columns < 0 || options.gap < 0 ||
      options.gap > 1000 || options.max_width < 1 || options.max_width > 65500) {
    return InvalidArgument({.what = "options of a contact sheet",
                            .wanted = "cells 1 to 1000, gap 0 to 1000, width 1 to 65500"});
  }
  const std::vector<int64_t> shown = ContactSheetFrames(frames.dim(1), options.cells);
  const auto cells = static_cast<int64_t>(shown.size());
  const Grid grid = ChooseGrid(cells, frames.dim(3), frames.dim(2), options);
  RgbImage sheet;
  sheet.width = grid.columns * (grid.cell_width + options.gap) + options.gap;
  sheet.height = grid.rows * (grid.cell_height + options.gap) + options.gap;
  sheet.pixels.assign(static_cast<size_t>(sheet.width * sheet.height * 3), kGround);
  for (int64_t i = 0; i < cells; ++i) {
    const int64_t number = shown[static_cast<size_t>(i)];
    H3RT_ASSIGN_OR_RETURN(const RgbImage frame, FrameToImage(frames.Select(1, number), number));
    H3RT_ASSIGN_OR_RETURN(const RgbImage cell,
                          ResizeLanczos(frame, grid.cell_width, grid.cell_height));
    const int64_t left = options.gap + i % grid.columns * (grid.cell_width + options.gap);
    const int64_t top = options.gap + i / grid.columns * (grid.cell_height + options.gap);
    for (int64_t y = 0; y < cell.height; ++y) {
      std::copy_n(cell.pixels.data() + y * cell.width * 3, cell.width * 3,
                  sheet.pixels.data() + ((top + y) * sheet.width + left) * 3);
    }
  }
  return sheet;
}

}  // namespace h3rt
