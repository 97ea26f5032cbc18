// Encoding a keyframe the way the released pipeline does.
#pragma once

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/model/video_vae/video_vae.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

// Image [3, 1, h, w] F32 in [0, 1] -> normalised latents [c, 1, h/16, w/16]: encode, sample
// mean + exp(logvar / 2) * noise with a fresh generator of seed 42, round to float16, normalise.
// Source: spec h3 section 6.7.
absl::StatusOr<Tensor> EncodeKeyframe(const VideoVae& vae, const Tensor& image,
                                      const VaeTiling& tiling, const ExecContext& context);

}  // namespace h3rt
