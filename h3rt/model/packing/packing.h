// The packed sequence of a request: geometry rules, positions, tags, index lists, row timesteps.
// Source: spec h3 sections 1 and 3, C12.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

inline constexpr int kFramesPerSecond = 24;
// Limits of what a request may ask for, so that every product of sizes stays far inside 64 bits.
inline constexpr int64_t kMaxFrames = int64_t{1} << 31;
inline constexpr int64_t kMaxCanvasSide = 65536;  // pixels
inline constexpr int64_t kMaxRows = int64_t{1} << 31;

// ---- Geometry ----------------------------------------------------------------------------------
// Legal frame counts are 17 k + 5, k >= 0. kInvalidArgument names the nearest legal values.
absl::Status CheckFrames(int64_t frames);
// The smallest legal count that lasts at least `seconds` (times 24); refuses values that are not
// finite, not positive or beyond 2^31 frames.
absl::StatusOr<int64_t> FramesOfSeconds(double seconds);
// 5 k + 2 latent frames of a legal count.
int64_t LatentFrames(int64_t frames);
// round(5 F / 3) audio latents a channel.
int64_t AudioLatents(int64_t frames);
// Width and height in pixels: multiples of 32 from 32 up. kInvalidArgument names the nearest.
absl::Status CheckCanvas(int64_t width, int64_t height);
// The canvas that the released pipeline picks for an aspect ratio width/height in [1/4, 4]: short
// edge 768, area at most 768 * 1344, rounded half-to-even to multiples of 32.
struct Canvas {
  int64_t width = 0;
  int64_t height = 0;
  friend bool operator==(const Canvas&, const Canvas&) = default;
};
absl::StatusOr<Canvas> CanvasOfAspect(double aspect);

// ---- Layout ------------------------------------------------------------------------------------
enum class RowTag : int32_t { kVideo = 0, kText = 1, kAudio = 2 };

struct LayoutRequest {
  int64_t text_rows = 0;
  std::span<const RowTag> text_tags =
      {};  // [text_rows]; empty: all kText. Vision blocks are kVideo
  int64_t latent_frames = 0;
  int64_t latent_height = 0;  // of the VAE, before 2x2 patches; even
  int64_t latent_width = 0;
  int64_t audio_latents = 0;  // a channel
  bool first_frame = false;   // keyframe conditions (fl2va)
  bool last_frame = false;
};

// Row r of the sequence has position_ids[3 r .. 3 r + 2] = (t, h, w).
// Order: text | first keyframe | last keyframe | audio left | audio right | video.
struct PackedLayout {
  int64_t rows = 0;
  std::vector<double> position_ids;    // [rows, 3]
  std::vector<int32_t> token_tags;     // [rows], RowTag values
  std::vector<int64_t> text_indices;   // rows of the text
  std::vector<int64_t> audio_indices;  // all left latents, then all right
  std::vector<int64_t> video_indices;  // condition rows first, then target rows
  int64_t condition_video_rows = 0;
};

// kInvalidArgument for odd or non-positive latent extents, negative counts, tags of another length,
// or more than 2^31 rows.
absl::StatusOr<PackedLayout> BuildLayout(const LayoutRequest& request);

// ---- Row timesteps -----------------------------------------------------------------------------
// The distinct timesteps of one forward in ascending order and each row's index into them: text and
// target video at t_video, condition rows at max(t_video, 0.999), audio at t_audio.
struct RowTimesteps {
  std::vector<float> timesteps;  // [m], m <= 4
  std::vector<int32_t> index;    // [rows]
};
RowTimesteps BuildRowTimesteps(const PackedLayout& layout, float t_video, float t_audio);

// ---- Patches -----------------------------------------------------------------------------------
// Latents [c, t, h, w] <-> rows [t * (h/2) * (w/2), 4 c], row element c*4 + ph*2 + pw. Sizes are
// the caller's to match.
void Patchify(std::span<const float> latents, int64_t c, int64_t t, int64_t h, int64_t w,
              std::span<float> rows);
void Unpatchify(std::span<const float> rows, int64_t c, int64_t t, int64_t h, int64_t w,
                std::span<float> latents);
// Audio rows [2 a, c] (left, then right) <-> latents [2, c, a].
void AudioRowsToLatents(std::span<const float> rows, int64_t c, int64_t a,
                        std::span<float> latents);
void AudioLatentsToRows(std::span<const float> latents, int64_t c, int64_t a,
                        std::span<float> rows);

}  // namespace h3rt
