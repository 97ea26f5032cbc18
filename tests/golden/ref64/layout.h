// Positions, tags and index lists of the packed sequence. Source: spec h3 section 3, C12.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/golden/ref64/array.h"

namespace h3rt::ref64 {

struct LayoutInput {
  int64_t text_rows = 0;
  int64_t vision_rows = 0;  // of the text, the first ones: rows of vision blocks
  int64_t latent_frames = 0;
  int64_t latent_height = 0;
  int64_t latent_width = 0;
  int64_t audio_latents = 0;  // a channel
  bool first_frame = false;
  bool last_frame = false;
};

// Faults that a test plants on purpose, to show that a comparison would see them.
struct LayoutFaults {
  bool media_clock_off_by_one = false;  // the media clock starts at N - 1
  bool plain_linspace = false;          // step = r / n instead of ((left + r) - left) / n
  bool running_clock = false;           // the origin takes part in the running sum
};

struct Layout {
  Array positions;  // [rows, 3]
  std::vector<int64_t> tags;
  std::vector<int64_t> text_indices;
  std::vector<int64_t> audio_indices;
  std::vector<int64_t> video_indices;  // condition rows first
  int64_t condition_video_rows = 0;
};

Layout BuildLayout(const LayoutInput& input, const LayoutFaults& faults = {});

}  // namespace h3rt::ref64
