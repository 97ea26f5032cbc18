#include "tests/golden/inputs.h"

#include <cmath>
#include <utility>
#include <vector>

#include "tests/golden/ref64/layout.h"

namespace h3rt::golden {

using ref64::Array;

Array WithoutBatch(const Array& x) {
  return ref64::Reshaped(x, std::vector<int64_t>(x.shape.begin() + 1, x.shape.end()));
}

ref64::DitInput FixtureInput(const Fixture& fixture) {
  ref64::DitInput input;
  input.video = WithoutBatch(fixture.Get("in.video"));
  input.audio = WithoutBatch(fixture.Get("in.audio"));
  input.text = WithoutBatch(fixture.Get("in.text"));
  input.positions = fixture.Get("in.position_ids");
  input.timesteps = fixture.Get("in.timestep").data;
  input.row_timestep = fixture.Ints("in.timestep_indices");
  input.tags = fixture.Ints("in.token_tags");
  input.text_indices = fixture.Ints("in.text_indices");
  input.audio_indices = fixture.Ints("in.audio_indices");
  input.video_indices = fixture.Ints("in.video_indices");
  return input;
}

ref64::Tiling FixtureTiling(const VideoVaeConfig& config) {
  int64_t s = 1;
  for (const int64_t f : config.spatial_factors) s *= f;
  return {2 * s, s};
}

int64_t LatentsOf(int64_t frames) { return (frames - 5) / 17 * 5 + 2; }

int64_t AudioLatentsOf(int64_t frames) {
  return static_cast<int64_t>(std::floor(static_cast<double>(frames) * 5.0 / 3.0 + 0.5));
}

ref64::DitInput RandomRequest(const DitConfig& config, const RequestOptions& options) {
  ref64::LayoutInput request;
  request.text_rows = 9;
  request.vision_rows = options.vision_rows;
  request.latent_frames = LatentsOf(options.frames);
  request.latent_height = options.height;
  request.latent_width = options.width;
  request.audio_latents = AudioLatentsOf(options.frames);
  request.first_frame = options.first_frame;
  request.last_frame = options.last_frame;
  ref64::Layout layout = ref64::BuildLayout(request);

  ref64::DitInput input;
  const auto rows = [](const std::vector<int64_t>& list) {
    return static_cast<int64_t>(list.size());
  };
  const uint64_t seed = options.seed;
  input.text = RandomNormal(seed, {request.text_rows, config.text_dim});
  input.video = RandomNormal(seed + 1, {rows(layout.video_indices), config.in_channels * 4});
  input.audio = RandomNormal(seed + 2, {rows(layout.audio_indices), config.audio_in_channels});
  input.timesteps = options.timesteps;
  if (layout.condition_video_rows == 0) input.timesteps.pop_back();
  for (const int64_t tag : layout.tags) input.row_timestep.push_back(tag == 2 ? 1 : 0);
  for (int64_t i = 0; i < layout.condition_video_rows; ++i) {
    input.row_timestep.data()[layout.video_indices.data()[i]] = 2;
  }
  input.positions = std::move(layout.positions);
  input.tags = std::move(layout.tags);
  input.text_indices = std::move(layout.text_indices);
  input.audio_indices = std::move(layout.audio_indices);
  input.video_indices = std::move(layout.video_indices);
  return input;
}

}  // namespace h3rt::golden
