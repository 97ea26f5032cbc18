// The rules for frames, canvases and audio lengths.
#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "h3rt/base/check.h"
#include "h3rt/model/packing/packing.h"

namespace h3rt {
namespace {

// A clip of the video VAE is 17 frames; the decoder's overlap adds 5 once.
constexpr int64_t kClipFrames = 17;
constexpr int64_t kOverlapFrames = 5;
// A canvas cell: 16 pixels a latent, 2 latents a patch.
constexpr int64_t kCell = 32;
constexpr double kShortEdge = 768.0;
constexpr double kMaxArea = 768.0 * 1344.0;

int64_t LegalAtMost(int64_t frames) {
  return (frames - kOverlapFrames) / kClipFrames * kClipFrames + kOverlapFrames;
}

std::string NearestFrames(int64_t frames) {
  if (frames <= kOverlapFrames) return fmt::format("{}", kOverlapFrames);
  if (frames >= kMaxFrames) return fmt::format("{}", LegalAtMost(kMaxFrames));
  const int64_t below = LegalAtMost(frames);
  if (below + kClipFrames > kMaxFrames) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, below + kClipFrames);
}

bool LegalSide(int64_t side) {
  return side >= kCell && side <= kMaxCanvasSide && side % kCell == 0;
}

std::string NearestSides(int64_t side) {
  if (LegalSide(side)) return fmt::format("{}", side);
  if (side <= kCell) return fmt::format("{}", kCell);
  if (side >= kMaxCanvasSide) return fmt::format("{}", kMaxCanvasSide);
  const int64_t below = side / kCell * kCell;
  return fmt::format("{} or {}", below, below + kCell);
}

// nearbyint rounds halves to even in the default rounding mode, as Python's round does.
int64_t RoundToCells(double pixels) {
  const double cells = std::nearbyint(pixels / static_cast<double>(kCell));
  return std::max<int64_t>(1, static_cast<int64_t>(cells)) * kCell;
}

}  // namespace

absl::Status CheckFrames(int64_t frames) {
  if (frames >= kOverlapFrames && frames <= kMaxFrames &&
      (frames - kOverlapFrames) % kClipFrames == 0) {
    return absl::OkStatus();
  }
  return InvalidArgument({.what = "frame count is not of the form 17k+5",
                          .got = fmt::format("{}", frames),
                          .wanted = "17k+5, nearest " + NearestFrames(frames),
                          .where = "frames"});
}

absl::StatusOr<int64_t> FramesOfSeconds(double seconds) {
  constexpr double kLimit = static_cast<double>(kMaxFrames) / kFramesPerSecond;
  if (!(std::isfinite(seconds) && seconds > 0.0 && seconds <= kLimit)) {
    return InvalidArgument({.what = "duration is out of range",
                            .got = fmt::format("{} s", seconds),
                            .wanted = fmt::format("more than 0 and at most {:.0f} s", kLimit),
                            .where = "seconds"});
  }
  // The comparison is made in seconds: multiplying by 24 could round a duration that is exactly a
  // legal count up to the next one.
  const auto guess = static_cast<int64_t>(seconds * kFramesPerSecond);
  int64_t frames = std::max(kOverlapFrames, LegalAtMost(std::max(kOverlapFrames, guess - 1)));
  while (static_cast<double>(frames) / kFramesPerSecond < seconds) frames += kClipFrames;
  if (frames > kMaxFrames) {
    return InvalidArgument({.what = "duration is out of range",
                            .got = fmt::format("{} s", seconds),
                            .wanted = fmt::format("at most {} frames", LegalAtMost(kMaxFrames)),
                            .where = "seconds"});
  }
  return frames;
}

int64_t LatentFrames(int64_t frames) {
  H3RT_CHECK(CheckFrames(frames).ok());
  return (frames - kOverlapFrames) / kClipFrames * 5 + 2;
}

int64_t AudioLatents(int64_t frames) {
  H3RT_CHECK(frames >= 0 && frames <= kMaxFrames);
  return (5 * frames + 1) / 3;  // thirds never tie
}

absl::Status CheckCanvas(int64_t width, int64_t height) {
  if (LegalSide(width) && LegalSide(height)) return absl::OkStatus();
  return InvalidArgument(
      {.what = "canvas sides are not multiples of 32 from 32 up",
       .got = fmt::format("{}x{}", width, height),
       .wanted = fmt::format("multiples of 32 from 32 to {}, nearest width {}, nearest height {}",
                             kMaxCanvasSide, NearestSides(width), NearestSides(height)),
       .where = "size"});
}

absl::StatusOr<Canvas> CanvasOfAspect(double aspect) {
  if (!(aspect >= 0.25 && aspect <= 4.0)) {
    return InvalidArgument({.what = "aspect ratio is out of range",
                            .got = fmt::format("{}", aspect),
                            .wanted = "width / height from 0.25 to 4",
                            .where = "aspect"});
  }
  double width = aspect >= 1.0 ? kShortEdge * aspect : kShortEdge;
  double height = aspect >= 1.0 ? kShortEdge : kShortEdge / aspect;
  const double area = width * height;
  if (area > kMaxArea) {
    const double shrink = std::sqrt(kMaxArea / area);
    width *= shrink;
    height *= shrink;
  }
  return Canvas{.width = RoundToCells(width), .height = RoundToCells(height)};
}

}  // namespace h3rt
