// The matrix products of one H3 block against one oneDNN matmul of the same shape with all threads.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <dnnl.hpp>

#include "bench/bench_context.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

// oneDNN alone: F32, y = x W^T, both row-major, threads left to it.
class MatmulAlone {
 public:
  MatmulAlone(int64_t m, int64_t n, int64_t k, float* x, float* w, float* y)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Tag = dnnl::memory::format_tag;
    const dnnl::memory::desc x_desc({m, k}, dnnl::memory::data_type::f32, Tag::ab);
    const dnnl::memory::desc w_desc({k, n}, dnnl::memory::data_type::f32, Tag::ba);
    const dnnl::memory::desc y_desc({m, n}, dnnl::memory::data_type::f32, Tag::ab);
    matmul_ = dnnl::matmul(
        dnnl::matmul::primitive_desc(dnnl::matmul::desc(x_desc, w_desc, y_desc), engine_));
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(x_desc, engine_, x)},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(w_desc, engine_, w)},
                  {DNNL_ARG_DST, dnnl::memory(y_desc, engine_, y)}};
  }
  void Run() {
    matmul_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Both run in turn, so that a busy machine slows both; the ratio is of the best times.
void BM_Linear(benchmark::State& state) {
  const int64_t m = state.range(0);
  const int64_t n = state.range(1);
  const int64_t k = state.range(2);
  const bool bf16 = state.range(3) != 0;
  std::vector<float> x = bench::Values(m * k, 1);
  std::vector<float> w = bench::Values(n * k, 2);
  std::vector<uint16_t> narrow(bf16 ? w.size() : 0);
  if (bf16) NarrowToBf16(w.data(), narrow.data(), n * k);
  std::vector<float> y(static_cast<size_t>(m * n));
  LinearParams p;
  p.x = ConstTensorView::Of(x.data(), {m, k});
  p.weight = bf16 ? ConstTensorView(reinterpret_cast<const std::byte*>(narrow.data()), DType::kBF16,
                                    {n, k})
                  : ConstTensorView::Of(w.data(), {n, k});
  p.y = TensorView::Of(y.data(), {m, n});
  omp_set_num_threads(ThreadPool::HardwareThreads());
  MatmulAlone alone(m, n, k, x.data(), w.data(), y.data());
  alone.Run();
  double best = 1e30;
  double best_alone = 1e30;
  for (auto _ : state) {
    best_alone = std::min(best_alone, bench::SecondsOf([&] { alone.Run(); }));
    const double seconds = bench::SecondsOf([&] {
      if (!Linear(p, bench::Context()).ok()) state.SkipWithError("Linear failed");
    });
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  const double gflop = 2e-9 * static_cast<double>(m) * static_cast<double>(n * k);
  state.counters["gflops"] = gflop / best;
  state.counters["onednn_gflops"] = gflop / best_alone;
  state.counters["ratio"] = best_alone / best;
}

// m, n, k, BF16 weights: qkv, out, fc1, fc2 of a block, then the video decoder's w1 and to_out.
BENCHMARK(BM_Linear)
    ->ArgNames({"m", "n", "k", "bf16"})
    ->Args({1024, 21504, 5376, 1})
    ->Args({1024, 5376, 7168, 1})
    ->Args({1024, 28672, 5376, 1})
    ->Args({1024, 5376, 14336, 1})
    ->Args({2048, 5376, 5376, 1})
    ->Args({2048, 5376, 5376, 0})
    ->Args({1797, 16384, 2048, 0})
    ->Args({1797, 2048, 2048, 0})
    ->Args({2, 5376, 2688, 1})
    ->Iterations(3)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace h3rt
