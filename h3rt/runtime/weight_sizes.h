// Bytes of the weights of a model's parts, read off file headers.
#pragma once

#include <string>

#include "h3rt/base/status.h"
#include "h3rt/runtime/plan.h"
#include "h3rt/tensor/dtype.h"

namespace h3rt {

struct ModelWeightSizes {
  WeightBytes dit_adaln;
  WeightBytes dit_rest;
  WeightBytes vae_encoder;
  WeightBytes vae_decoder;
  WeightBytes audio_decoder;
};

// Reads headers only. A quantised linear costs its file bytes while it is read and its dequantised
// size for good; a weight-norm pair of the audio VAE costs its folded size for good.
absl::StatusOr<ModelWeightSizes> MeasureWeights(const std::string& transformer,
                                                const std::string& video_vae,
                                                const std::string& audio_vae, DType dequantized);

}  // namespace h3rt
