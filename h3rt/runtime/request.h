// One generation request and its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/runtime/progress.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

// Sizes are of the finished clip. Tensors are borrowed by reference to the request's life.
struct GenerateRequest {
  std::string prompt;                // read when prompt_embeds is empty
  Tensor prompt_embeds;              // [n, text_dim] F32; replaces the conditioner
  std::vector<int32_t> prompt_tags;  // [n] or empty: all text (only with prompt_embeds)
  Tensor first_frame;                // [3, 1, height, width] F32 in [0, 1]; empty: none
  Tensor last_frame;                 // likewise
  int64_t width = 0;
  int64_t height = 0;
  int64_t frames = 0;    // 17 k + 5
  int64_t forwards = 0;  // model evaluations; 0 only decodes injected latents
  uint64_t seed = 42;    // of torch's CPU generator, which uses the low 32 bits
  Tensor latents;        // [24, t, h, w] F32, normalised; the starting state instead of a draw
  Tensor audio_latents;  // [2, 32, a] F32, normalised
};

// Frames are [3, frames, height, width] in [0, 1]; samples [2, latents * hop] in [-1, 1].
struct GenerateResult {
  Tensor frames;
  Tensor samples;
  Tensor latents;        // [24, t, h, w], normalised, as they were decoded
  Tensor audio_latents;  // [2, 32, a]
  std::vector<StageTime> stages;
};

}  // namespace h3rt
