// The memory plan of a request: what each stage holds, and the highest of them. Made from
// configurations and file headers before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "h3rt/base/json.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/model/video_vae/video_vae.h"

namespace h3rt {

// Bytes of one network's weights: those read in place from mapped files, and those that loading
// makes (dequantised, folded).
struct WeightBytes {
  uint64_t mapped = 0;
  uint64_t owned = 0;
  uint64_t total() const { return mapped + owned; }
};

// Everything that decides how much memory a request takes.
struct PlanInputs {
  DitConfig dit;
  VideoVaeConfig video_vae;
  AudioVaeConfig audio_vae;
  WeightBytes dit_adaln;  // of the AdaLN projections, released once the table is made
  WeightBytes dit_rest;   // the other weights of the transformer
  WeightBytes vae_encoder;
  WeightBytes vae_decoder;
  WeightBytes audio_decoder;
  VaeTiling tiling;
  int64_t width = 0;
  int64_t height = 0;
  int64_t frames = 0;
  int64_t forwards = 0;
  int64_t text_rows = 0;
  int64_t distinct_timesteps = 0;
  int64_t keyframes = 0;
  int threads = 1;
  bool ffmpeg = true;  // the clip is encoded; without FFmpeg it is written as it is
};

struct PlanStage {
  std::string name;
  uint64_t weights = 0;  // resident weights
  uint64_t working = 0;  // what the stage allocates
  uint64_t carried = 0;  // what earlier stages left for later ones
  uint64_t total() const { return weights + working + carried; }
};

struct MemoryPlan {
  std::vector<PlanStage> stages;
  uint64_t program = 0;  // libraries and code that loading brings in
  uint64_t peak() const;
  const PlanStage* peak_stage() const;  // null when there is no stage
  // kResourceExhausted with the stage and both numbers when the peak is over `available`.
  absl::Status CheckFits(uint64_t available) const;
  std::string ToText() const;  // one line a stage
  Json ToJson() const;
};

MemoryPlan MakePlan(const PlanInputs& inputs);

}  // namespace h3rt
