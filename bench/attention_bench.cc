#include <benchmark/benchmark.h>

#include <algorithm>

#include "bench/bench_context.h"
#include "h3rt/kernels/attention/attention.h"

namespace h3rt {
namespace {

void BM_Attention(benchmark::State& state) {
  const int64_t s = state.range(0);
  const int64_t h = state.range(1);
  const int64_t d = state.range(2);
  const std::vector<float> qkv = bench::Values(s * 3 * h * d, 1);
  std::vector<float> o(static_cast<size_t>(s * h * d));
  const int64_t strides[] = {3 * h * d, d, 1};
  const auto view = [&](int64_t part) {
    return ConstTensorView(reinterpret_cast<const std::byte*>(qkv.data() + part * h * d),
                           DType::kF32, {s, h, d}, strides);
  };
  AttentionParams p;
  p.q = view(0);
  p.k = view(1);
  p.v = view(2);
  p.o = TensorView::Of(o.data(), {s, h, d});
  double best = 1e30;
  for (auto _ : state) {
    const double seconds = bench::SecondsOf([&] {
      if (!Attention(p, bench::Context()).ok()) state.SkipWithError("Attention failed");
    });
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["gflops"] =
      4e-9 * static_cast<double>(s) * static_cast<double>(s) * static_cast<double>(h * d) / best;
}

// Fused rows, as the model has them: a DiT block's heads (8 of 56) and the video decoder's.
BENCHMARK(BM_Attention)
    ->ArgNames({"s", "h", "d"})
    ->Args({1024, 8, 128})
    ->Args({4096, 8, 128})
    ->Args({1797, 32, 64})
    ->Iterations(3)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace h3rt
