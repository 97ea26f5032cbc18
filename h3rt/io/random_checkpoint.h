// Model folders with random weights in the released layout, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/tensor/dtype.h"

namespace h3rt {

struct ModelConfigs {
  DitConfig transformer;
  VideoVaeConfig video_vae;
  AudioVaeConfig audio_vae;
  DType video_vae_dtype = DType::kF32;  // or kF16, as ComfyUI publishes it
};

// The embedded default: head size 128, x16 pixels and 800 samples a latent as released, under 8 MB.
ModelConfigs TinyConfigs();
// The configuration of tests/data/h3/mini.
ModelConfigs MiniConfigs();
// The released model: 66 GB of transformer, 10 GB of video VAE.
ModelConfigs ReleasedConfigs();
// "tiny", "mini" or "released-shape"; kInvalidArgument names those.
absl::StatusOr<ModelConfigs> ConfigsByName(std::string_view name);

struct RandomModelOptions {
  uint64_t seed = 0;
  std::string name = "random";  // goes into modular_model_index.json
  // What a request takes when it says nothing: {"width", "height", "frames", "forwards"}; null: the
  // released model's. Goes into modular_model_index.json.
  Json defaults = nullptr;
  // Bytes written and to be written; an error stops the work.
  std::function<absl::Status(uint64_t done, uint64_t total)> progress = {};
};

// Writes `folder` in the diffusers layout: transformer/, vae/, audio_vae/ with config.json and
// diffusion_pytorch_model.safetensors, scheduler/, audio_scheduler/, text_encoder/config.json (the
// hash conditioner), modular_model_index.json, and SHA256SUMS of all these. Transformer weights are
// BF16 with the F32 islands of the release; audio F32.
//
// Every parameter is random, also those that training starts at 0 or 1 (spec h3 section 14): a
// matrix draws from N(0, gain / sqrt(inputs)), norms from N(1, 0.1), biases from N(0, 0.02), so
// that activations keep their size through the released depth. Each value is a function of seed,
// tensor name and element index alone (a counter through splitmix64, the sum of four 16-bit
// uniforms), so that the bytes are the same on every machine. Memory does not depend on the size.
//
// The folder appears when it is complete. Errors: kInvalidArgument for a bad configuration or a
// folder that exists and is not empty; I/O errors, kResourceExhausted for a full disk.
absl::Status WriteRandomModel(const std::string& folder, const ModelConfigs& configs,
                              const RandomModelOptions& options);

}  // namespace h3rt
