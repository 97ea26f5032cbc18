// How long the canonical layout takes: 1344x768, 124 frames, 98 text rows = 37,808 rows.
#include <benchmark/benchmark.h>

#include "h3rt/base/check.h"
#include "h3rt/model/packing/packing.h"

namespace h3rt {
namespace {

LayoutRequest Canonical() {
  return {.text_rows = 98,
          .latent_frames = LatentFrames(124),
          .latent_height = 768 / 16,
          .latent_width = 1344 / 16,
          .audio_latents = AudioLatents(124)};
}

void CanonicalLayout(benchmark::State& state) {
  for (auto _ : state) {
    absl::StatusOr<PackedLayout> layout = BuildLayout(Canonical());
    H3RT_CHECK(layout.ok() && layout->rows == 37808);
    benchmark::DoNotOptimize(layout->position_ids.data());
  }
}
BENCHMARK(CanonicalLayout)->Unit(benchmark::kMillisecond);

void CanonicalRowTimesteps(benchmark::State& state) {
  const PackedLayout layout = BuildLayout(Canonical()).value();
  for (auto _ : state) {
    RowTimesteps plan = BuildRowTimesteps(layout, 0.25f, 0.5f);
    benchmark::DoNotOptimize(plan.index.data());
  }
}
BENCHMARK(CanonicalRowTimesteps)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace h3rt

BENCHMARK_MAIN();
