#include <benchmark/benchmark.h>

#include <algorithm>

#include "bench/bench_context.h"
#include "h3rt/kernels/activation/activation.h"

namespace h3rt {
namespace {

void BM_AntiAliasedSnake(benchmark::State& state) {
  const int64_t c = state.range(0);
  const int64_t n = state.range(1);
  const std::vector<float> x = bench::Values(c * n, 1);
  const std::vector<float> alpha = bench::Values(c, 2);
  const std::vector<float> filter = bench::Values(12, 3);
  std::vector<float> y(x.size());
  AntiAliasedSnakeParams p;
  p.x = ConstTensorView::Of(x.data(), {c, n});
  p.alpha = p.beta = ConstTensorView::Of(alpha.data(), {c});
  p.up_filter = p.down_filter = ConstTensorView::Of(filter.data(), {12});
  p.y = TensorView::Of(y.data(), {c, n});
  double best = 1e30;
  for (auto _ : state) {
    const double seconds = bench::SecondsOf([&] {
      if (!AntiAliasedSnake(p, bench::Context()).ok()) state.SkipWithError("failed");
    });
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["ns_per_sample"] = 1e9 * best / static_cast<double>(c * n);
}
BENCHMARK(BM_AntiAliasedSnake)
    ->ArgNames({"c", "n"})
    ->Args({512, 1035})
    ->Args({8, 165600})
    ->Iterations(5)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void BM_SwiGlu(benchmark::State& state) {
  const int64_t m = 256;
  const int64_t f = 14336;
  const std::vector<float> u = bench::Values(m * 2 * f, 1);
  std::vector<float> y(static_cast<size_t>(m * f));
  const ConstTensorView rows = ConstTensorView::Of(u.data(), {m, 2 * f});
  const SwiGluParams p = {.gate = rows.Slice(1, 0, f),
                          .value = rows.Slice(1, f, 2 * f),
                          .y = TensorView::Of(y.data(), {m, f})};
  double best = 1e30;
  for (auto _ : state) {
    const double seconds = bench::SecondsOf([&] {
      if (!SwiGlu(p, bench::Context()).ok()) state.SkipWithError("failed");
    });
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["ns_per_element"] = 1e9 * best / static_cast<double>(m * f);
}
BENCHMARK(BM_SwiGlu)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace h3rt
