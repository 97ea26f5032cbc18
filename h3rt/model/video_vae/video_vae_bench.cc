// Decoding and encoding of one clip of 22 frames at 64x64 with the mini model.
#include <benchmark/benchmark.h>

#include <string>

#include "h3rt/base/check.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/model/video_vae/video_vae.h"

namespace h3rt {
namespace {

constexpr int64_t kLatentFrames = 7;
constexpr int64_t kLatentSide = 4;

struct Bench {
  VideoVaeCheckpoint checkpoint;
  VideoVae vae;
  ThreadPool pool{ThreadPool::HardwareThreads()};
  ExecContext context{.pool = &pool};

  explicit Bench(VideoVaeCheckpoint opened)
      : checkpoint(std::move(opened)),
        vae(VideoVae::Create(checkpoint.config, checkpoint.weights).value()) {}
  static Bench Open() {
    return Bench(OpenVideoVae(std::string(H3RT_SOURCE_DIR) + "/tests/data/h3/mini/vae").value());
  }
};

Tensor Ramp(const Shape& shape) {
  Tensor t = Tensor::Create(DType::kF32, shape).value();
  for (int64_t i = 0; i < t.elements(); ++i) t.as<float>()[i] = static_cast<float>(i % 17) - 8.0f;
  return t;
}

void Decode22Frames(benchmark::State& state) {
  const Bench bench = Bench::Open();
  const Tensor z =
      Ramp({bench.vae.config().latent_channels, kLatentFrames, kLatentSide, kLatentSide});
  for (auto _ : state) {
    const auto out = bench.vae.Decode(z.view(), {}, bench.context);
    H3RT_CHECK(out.ok() && out->shape() == Shape({3, 22, 64, 64}));
    benchmark::DoNotOptimize(out->as<float>());
  }
}
BENCHMARK(Decode22Frames)->Unit(benchmark::kMillisecond)->UseRealTime();

void Encode22Frames(benchmark::State& state) {
  const Bench bench = Bench::Open();
  const Tensor pixels = Ramp({3, 22, 64, 64});
  for (auto _ : state) {
    const auto out = bench.vae.Encode(pixels.view(), {}, bench.context);
    H3RT_CHECK(out.ok() && out->shape()[1] == kLatentFrames);
    benchmark::DoNotOptimize(out->as<float>());
  }
}
BENCHMARK(Encode22Frames)->Unit(benchmark::kMillisecond)->UseRealTime();

// One full tile of 256x256 pixels: what a large clip consists of.
void DecodeFullTile(benchmark::State& state) {
  const Bench bench = Bench::Open();
  const Tensor z = Ramp({bench.vae.config().latent_channels, kLatentFrames, 16, 16});
  for (auto _ : state) {
    const auto out = bench.vae.Decode(z.view(), {}, bench.context);
    H3RT_CHECK(out.ok());
    benchmark::DoNotOptimize(out->as<float>());
  }
}
BENCHMARK(DecodeFullTile)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace h3rt

BENCHMARK_MAIN();
