// Inputs that several golden tests share.
#pragma once

#include <cstdint>
#include <vector>

#include "h3rt/io/model_config.h"
#include "tests/golden/fixture.h"
#include "tests/golden/ref64/dit.h"
#include "tests/golden/ref64/video_vae.h"

namespace h3rt::golden {

// [1, ...] -> [...].
ref64::Array WithoutBatch(const ref64::Array& x);

// The in.* tensors of transformer_forward_f32.safetensors.
ref64::DitInput FixtureInput(const Fixture& fixture);

// The tile settings of tiled_decode and long_decode: 2 x 2 latents, an overlap of one.
ref64::Tiling FixtureTiling(const VideoVaeConfig& config);

// A request for the transformer: 9 text rows, of which the first `vision_rows` carry the tag of
// vision blocks, and keyframe conditions.
struct RequestOptions {
  int64_t frames = 22;
  int64_t height = 4;  // of the latents
  int64_t width = 4;
  uint64_t seed = 0;
  int64_t vision_rows = 0;
  bool first_frame = false;
  bool last_frame = false;
  // Of text and target video, of audio, and of condition rows when there are any.
  std::vector<double> timesteps = {0.3125, 0.7001953125, 0.9990234375};
};

// The layout of the reference, with random latents and text.
ref64::DitInput RandomRequest(const DitConfig& config, const RequestOptions& options);

// 17 k + 5 frames have 5 k + 2 latent frames and round(5 F / 3) audio latents.
int64_t LatentsOf(int64_t frames);
int64_t AudioLatentsOf(int64_t frames);

}  // namespace h3rt::golden
