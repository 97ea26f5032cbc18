// Decoding and encoding of 37 latents (0.925 s) of two channels with the mini model.
#include <benchmark/benchmark.h>

#include <string>

#include "h3rt/base/check.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/model/audio_vae/audio_vae.h"

namespace h3rt {
namespace {

constexpr int64_t kLatents = 37;

struct Bench {
  AudioVaeCheckpoint checkpoint;
  AudioVae vae;
  ThreadPool pool{ThreadPool::HardwareThreads()};
  ExecContext context{.pool = &pool};

  explicit Bench(AudioVaeCheckpoint opened)
      : checkpoint(std::move(opened)),
        vae(AudioVae::Create(checkpoint.config, checkpoint.weights).value()) {}
  static Bench Open() {
    return Bench(
        OpenAudioVae(std::string(H3RT_SOURCE_DIR) + "/tests/data/h3/mini/audio_vae").value());
  }
};

void Decode37Latents(benchmark::State& state) {
  const Bench bench = Bench::Open();
  Tensor z = Tensor::Create(DType::kF32, {2, bench.vae.config().latent_channels, kLatents}).value();
  for (int64_t i = 0; i < z.elements(); ++i) z.as<float>()[i] = static_cast<float>(i % 5) - 2.0f;
  for (auto _ : state) {
    const auto out = bench.vae.Decode(z.view(), bench.context);
    H3RT_CHECK(out.ok() && out->shape() == Shape({2, kLatents * 800}));
    benchmark::DoNotOptimize(out->as<float>());
  }
}
BENCHMARK(Decode37Latents)->Unit(benchmark::kMillisecond)->UseRealTime();

void Encode37Latents(benchmark::State& state) {
  const Bench bench = Bench::Open();
  Tensor wave = Tensor::Create(DType::kF32, {2, kLatents * 800}).value();
  for (int64_t i = 0; i < wave.elements(); ++i) {
    wave.as<float>()[i] = static_cast<float>(i % 101) * 0.005f - 0.25f;
  }
  for (auto _ : state) {
    const auto out = bench.vae.Encode(wave.view(), bench.context);
    H3RT_CHECK(out.ok() && out->shape()[2] == kLatents);
    benchmark::DoNotOptimize(out->as<float>());
  }
}
BENCHMARK(Encode37Latents)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace h3rt

BENCHMARK_MAIN();
