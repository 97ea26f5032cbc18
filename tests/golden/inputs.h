// Inputs that several golden tests share.
#pragma once

#include <cstdint>

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

// A whole t2va request at `frames`, `height` x `width` latents: layout of the reference, two
// timesteps (media video and text at the first, audio at the second), random latents and 9 text
// rows from `seed`.
ref64::DitInput RandomRequest(const DitConfig& config, int64_t frames, int64_t height,
                              int64_t width, uint64_t seed);

// 17 k + 5 frames have 5 k + 2 latent frames and round(5 F / 3) audio latents.
int64_t LatentsOf(int64_t frames);
int64_t AudioLatentsOf(int64_t frames);

}  // namespace h3rt::golden
