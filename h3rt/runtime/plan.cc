#include "h3rt/runtime/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "h3rt/base/units.h"
#include "h3rt/model/audio_vae/audio_vae.h"
#include "h3rt/model/dit/dit.h"
#include "h3rt/model/packing/packing.h"

namespace h3rt {
namespace {

// Measured with `generate --json` (measured_peak_bytes) over sizes from 64x64x5 to 512x512x124; the
// table is in bench/README.md. Code pages and generated code of the host libraries:
constexpr uint64_t kComputeLibraries = 16ull << 20;
// FFmpeg's libraries, loaded before the work to see that the clip can be written:
constexpr uint64_t kMediaLibraries = 22ull << 20;
// x264 holds its look-ahead, each frame padded and with a half-size copy.
constexpr int64_t kEncoderFrames = 50;
constexpr double kEncoderBytesPerPixel = 3.5;
constexpr int64_t kEncoderPadding = 64;

uint64_t EncoderBytes(int64_t frames, int64_t height, int64_t width) {
  const int64_t held = std::min(frames, kEncoderFrames);
  const int64_t pixels = (height + kEncoderPadding) * (width + kEncoderPadding);
  return static_cast<uint64_t>(kEncoderBytesPerPixel * static_cast<double>(held * pixels));
}

uint64_t FloatBytes(int64_t n) { return static_cast<uint64_t>(n) * sizeof(float); }

}  // namespace

uint64_t MemoryPlan::peak() const {
  const PlanStage* stage = peak_stage();
  return program + (stage == nullptr ? 0 : stage->total());
}

const PlanStage* MemoryPlan::peak_stage() const {
  const auto it = std::max_element(
      stages.begin(), stages.end(),
      [](const PlanStage& a, const PlanStage& b) { return a.total() < b.total(); });
  return it == stages.end() ? nullptr : &*it;
}

absl::Status MemoryPlan::CheckFits(uint64_t available) const {
  if (peak() <= available) return absl::OkStatus();
  return ResourceExhausted(
      {.what = "the request does not fit into memory",
       .got = fmt::format("{} needed in stage \"{}\"", FormatBytes(peak()), peak_stage()->name),
       .wanted = fmt::format("at most {} available", FormatBytes(available)),
       .where = "smaller --size or fewer --frames need less"});
}

std::string MemoryPlan::ToText() const {
  std::string out = fmt::format("{:<14} {:>12} {:>12} {:>12} {:>12}\n", "memory plan", "weights",
                                "working", "carried", "total");
  for (const PlanStage& s : stages) {
    out += fmt::format("{:<14} {:>12} {:>12} {:>12} {:>12}\n", s.name, FormatBytes(s.weights),
                       FormatBytes(s.working), FormatBytes(s.carried), FormatBytes(s.total()));
  }
  return out + fmt::format("highest, with {} for libraries: {}", FormatBytes(program),
                           FormatBytes(peak()));
}

Json MemoryPlan::ToJson() const {
  Json json = {{"peak_bytes", peak()}, {"program_bytes", program}, {"stages", Json::array()}};
  for (const PlanStage& s : stages) {
    json["stages"].push_back({{"stage", s.name},
                              {"weights_bytes", s.weights},
                              {"working_bytes", s.working},
                              {"carried_bytes", s.carried},
                              {"total_bytes", s.total()}});
  }
  return json;
}

MemoryPlan MakePlan(const PlanInputs& in) {
  const int64_t factor = in.video_vae.spatial_factor();
  const int64_t h = in.height / factor;
  const int64_t w = in.width / factor;
  const int64_t t = LatentFrames(in.frames);
  const int64_t a = AudioLatents(in.frames);
  const int64_t cells = (h / 2) * (w / 2);
  const int64_t rows = in.text_rows + in.keyframes * cells + 2 * a + t * cells;
  const uint64_t latents = FloatBytes(in.video_vae.latent_channels * t * h * w) +
                           FloatBytes(2 * in.audio_vae.latent_channels * a);
  // Sampler state: rows of both modalities, their velocities, and the layout's index lists.
  const int64_t video_rows = (t + in.keyframes) * cells;
  const uint64_t state = 2 * (FloatBytes(video_rows * in.dit.video_row()) +
                              FloatBytes(2 * a * in.dit.audio_in_channels)) +
                         static_cast<uint64_t>(rows) * (3 * sizeof(double) + 3 * sizeof(int64_t));
  const uint64_t text = FloatBytes(in.text_rows * in.dit.text_dim);
  const uint64_t frames = FloatBytes(3 * in.frames * in.height * in.width);
  const uint64_t samples = FloatBytes(2 * a * in.audio_vae.hop());

  // What loading made (dequantised, folded) stays with the session for its next request.
  const uint64_t dit_owned = in.forwards > 0 ? in.dit_adaln.owned + in.dit_rest.owned : 0;

  MemoryPlan plan;
  plan.program = kComputeLibraries + (in.ffmpeg ? kMediaLibraries : 0);
  if (in.keyframes > 0) {
    plan.stages.push_back({.name = "keyframes",
                           .weights = in.vae_encoder.total(),
                           .working = VideoVae::EncodeBytes(in.video_vae, 1, in.height, in.width,
                                                            in.tiling, in.threads),
                           .carried = text});
  }
  if (in.forwards > 0) {
    const uint64_t adaln = Dit::AdaLnBytes(in.dit, in.distinct_timesteps, 0);
    plan.stages.push_back({.name = "adaln",
                           .weights = in.dit_adaln.mapped + dit_owned,
                           .working = Dit::AdaLnBytes(in.dit, in.distinct_timesteps, in.threads),
                           .carried = state + text});
    plan.stages.push_back({.name = "denoise",
                           .weights = in.dit_rest.mapped + dit_owned,
                           .working = Dit::RequestBytes(in.dit, rows, in.text_rows, in.threads),
                           .carried = state + text + adaln});
  }
  plan.stages.push_back(
      {.name = "decode video",
       .weights = in.vae_decoder.total(),
       .working = VideoVae::DecodeBytes(in.video_vae, t, h, w, in.tiling, in.threads),
       .carried = latents});
  plan.stages.push_back({.name = "decode audio",
                         .weights = in.audio_decoder.total() + dit_owned,
                         .working = AudioVae::DecodeBytes(in.audio_vae, 2, a, in.threads),
                         .carried = latents + frames});
  plan.stages.push_back({.name = "write",
                         .weights = in.audio_decoder.owned + dit_owned,
                         .working = in.ffmpeg ? EncoderBytes(in.frames, in.height, in.width) : 0,
                         .carried = latents + frames + samples});
  return plan;
}

}  // namespace h3rt
