// Files that a request reads and writes beside its clip.
#pragma once

#include <string>

#include "h3rt/base/status.h"
#include "h3rt/runtime/request.h"

namespace h3rt {

// Reads `prompt_embeds` [n, text_dim] (F32, BF16 or F16; a leading extent of 1 is dropped) and, if
// it is there, `token_tags` [n] (I32 or I64) of a safetensors file into the request. Any other
// tensor is refused by name.
absl::Status ReadPromptEmbeds(const std::string& path, GenerateRequest& request);

// Reads `latents` [24, t, h, w] and `audio_latents` [2, 32, a], normalised; one of them may be
// missing, not both.
absl::Status ReadLatents(const std::string& path, GenerateRequest& request);

// Writes the same two tensors as F32.
absl::Status WriteLatents(const std::string& path, const GenerateResult& result);

// Reads pictures (empty: none) and puts them onto the request's canvas: the first of the two is
// stretched, a second one scaled to cover and cropped.
absl::Status ReadKeyframes(const std::string& first, const std::string& last,
                           GenerateRequest& request);

}  // namespace h3rt
