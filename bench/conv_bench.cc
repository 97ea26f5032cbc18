#include <benchmark/benchmark.h>

#include <algorithm>

#include "bench/bench_context.h"
#include "h3rt/kernels/conv/conv.h"

namespace h3rt {
namespace {

void RunConv(benchmark::State& state, const Conv3dParams& p) {
  double best = 1e30;
  for (auto _ : state) {
    const double seconds = bench::SecondsOf([&] {
      if (!Conv3d(p, bench::Context()).ok()) state.SkipWithError("Conv3d failed");
    });
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  const double taps = static_cast<double>(p.weight.elements() / p.weight.dim(0));
  state.counters["gflops"] = 2e-9 * taps * static_cast<double>(p.y.elements()) / best;
}

// The audio decoder: channels, samples, kernel, dilation.
void BM_Conv1d(benchmark::State& state) {
  const int64_t c = state.range(0);
  const int64_t n = state.range(1);
  const int64_t k = state.range(2);
  const std::vector<float> x = bench::Values(c * n, 1);
  const std::vector<float> w = bench::Values(c * c * k, 2);
  std::vector<float> y(x.size());
  Conv3dParams p;
  p.x = ConstTensorView::Of(x.data(), {c, 1, 1, n});
  p.weight = ConstTensorView::Of(w.data(), {c, c, 1, 1, k});
  p.y = TensorView::Of(y.data(), {c, 1, 1, n});
  p.dilation[2] = state.range(3);
  p.pad_begin[2] = p.pad_end[2] = state.range(3) * (k - 1) / 2;
  RunConv(state, p);
}
BENCHMARK(BM_Conv1d)
    ->ArgNames({"c", "n", "k", "dilation"})
    ->Args({512, 1035, 7, 1})
    ->Args({256, 5175, 7, 3})
    ->Args({128, 10350, 7, 3})
    ->Args({64, 20700, 7, 3})
    ->Args({32, 41400, 7, 3})
    ->Args({16, 82800, 7, 3})
    ->Args({8, 165600, 11, 5})
    ->Iterations(3)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// The video encoder: channels in, out, frames, height = width.
void BM_Conv3d(benchmark::State& state) {
  const int64_t ci = state.range(0);
  const int64_t co = state.range(1);
  const int64_t t = state.range(2);
  const int64_t h = state.range(3);
  const std::vector<float> x = bench::Values(ci * t * (h + 2) * (h + 2), 1);
  const std::vector<float> w = bench::Values(co * ci * 27, 2);
  std::vector<float> y(static_cast<size_t>(co * t * h * h));
  Conv3dParams p;
  p.x = ConstTensorView::Of(x.data(), {ci, t, h + 2, h + 2});
  p.weight = ConstTensorView::Of(w.data(), {co, ci, 3, 3, 3});
  p.y = TensorView::Of(y.data(), {co, t, h, h});
  p.pad_begin = {2, 0, 0};
  RunConv(state, p);
}
BENCHMARK(BM_Conv3d)
    ->ArgNames({"ci", "co", "t", "h"})
    ->Args({3, 128, 3, 64})
    ->Args({128, 128, 3, 64})
    ->Args({256, 256, 3, 32})
    ->Args({512, 512, 5, 16})
    ->Iterations(3)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace h3rt
