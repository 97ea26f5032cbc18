#include "h3rt/kernels/activation/cpu/activation_cpu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "h3rt/cpu/convert.h"
#include "h3rt/cpu/math.h"
#include "h3rt/cpu/tasks.h"
#include "h3rt/kernels/activation/activation_check.h"

namespace h3rt {
namespace {

constexpr int64_t kSamplesPerTask = 1 << 14;
// Output samples that AntiAliasedSnake handles at once: its scratch, 5 arrays, stays in the first
// cache.
constexpr int64_t kSnakeBlock = 512;
// Samples of the doubled rate that the down filter reads before and after a block, in pairs.
constexpr int64_t kHalo = 3;

H3RT_MULTIVERSION void SwiGluLoop(const float* gate, const float* value, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = SiluF(gate[i]) * value[i];
}

H3RT_MULTIVERSION void SwiGluRoundedLoop(const float* gate, const float* value, int64_t n,
                                         float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = RoundToBf16(RoundToBf16(SiluF(gate[i])) * value[i]);
}

struct SnakeFilters {
  std::array<float, kSnakeTaps> up;  // with the gain of 2
  std::array<float, kSnakeTaps> down;
};

// even[i] = sum_q up[2 q + 1] x[i + 5 - q], odd[i] = sum_q up[2 q] x[i + 6 - q].
H3RT_MULTIVERSION void Upsample(const float* x, int64_t n, const float* up, float* even,
                                float* odd) {
  for (int64_t i = 0; i < n; ++i) {
    float e = up[1] * x[i + 5];
    float o = up[0] * x[i + 6];
    for (int q = 1; q < 6; ++q) {
      e += up[2 * q + 1] * x[i + 5 - q];
      o += up[2 * q] * x[i + 6 - q];
    }
    even[i] = e;
    odd[i] = o;
  }
}

// y[i] = sum_q down[2 q] odd[i + q] + down[2 q + 1] even[i + q + 1].
H3RT_MULTIVERSION void Downsample(const float* even, const float* odd, int64_t n, const float* down,
                                  float* y) {
  for (int64_t i = 0; i < n; ++i) {
    float sum = down[0] * odd[i];
    sum += down[1] * even[i + 1];
    for (int q = 1; q < 6; ++q) {
      sum += down[2 * q] * odd[i + q];
      sum += down[2 * q + 1] * even[i + q + 1];
    }
    y[i] = sum;
  }
}

// Outputs [begin, end) of one channel of n samples. With p = begin - kHalo + i, even[i] and odd[i]
// are samples 2 p and 2 p + 1 of the doubled rate; the ends of that signal are replicated for the
// down filter, which is not the same as replicating x.
void SnakeBlock(const float* x, int64_t n, int64_t begin, int64_t end, float a, float inverse_b,
                const SnakeFilters& filters, float* y) {
  constexpr int64_t kSize = kSnakeBlock + 2 * kHalo;
  float padded[kSize + 8];
  float even[kSize];
  float odd[kSize];
  const int64_t size = end - begin + 2 * kHalo;
  const int64_t first = begin - kHalo;
  // even[i] needs x[first + i - 3 .. first + i + 2], odd[i] needs one later.
  const int64_t low = first - 3;
  if (low >= 0 && low + size + 6 <= n) {
    std::copy(x + low, x + low + size + 6, padded);
  } else {
    for (int64_t i = 0; i < size + 6; ++i) padded[i] = x[std::clamp<int64_t>(low + i, 0, n - 1)];
  }
  Upsample(padded, size, filters.up.data(), even, odd);
  SnakeRow(even, size, a, inverse_b, even);
  SnakeRow(odd, size, a, inverse_b, odd);
  const float head = first < 0 ? even[-first] : 0.0f;
  for (int64_t p = first; p < 0; ++p) even[p - first] = odd[p - first] = head;
  const float tail = first + size > n ? odd[n - 1 - first] : 0.0f;
  for (int64_t p = n; p < first + size; ++p) even[p - first] = odd[p - first] = tail;
  Downsample(even, odd, end - begin, filters.down.data(), y + begin);
}

int64_t Tasks(int64_t n, int64_t per_task) { return (n + per_task - 1) / per_task; }

}  // namespace

absl::Status SwiGluCpu(const SwiGluParams& params, const ExecContext& context) {
  const int64_t columns = params.gate.dim(1);
  const int64_t rows = RowsPerTask(columns);
  return context.ParallelFor(Tasks(params.gate.dim(0), rows), [&](int64_t task) {
    for (int64_t i = task * rows; i < std::min((task + 1) * rows, params.gate.dim(0)); ++i) {
      const float* gate = params.gate.as<float>() + i * params.gate.stride(0);
      const float* value = params.value.as<float>() + i * params.value.stride(0);
      float* y = params.y.as<float>() + i * params.y.stride(0);
      params.round_bf16 ? SwiGluRoundedLoop(gate, value, columns, y)
                        : SwiGluLoop(gate, value, columns, y);
    }
    return absl::OkStatus();
  });
}

absl::Status ActivateCpu(const ActivateParams& params, const ExecContext& context) {
  const int64_t n = params.x.elements();
  return context.ParallelFor(Tasks(n, kElementsPerTask), [&](int64_t task) {
    const int64_t begin = task * kElementsPerTask;
    const int64_t size = std::min(kElementsPerTask, n - begin);
    const float* x = params.x.as<float>() + begin;
    float* y = params.y.as<float>() + begin;
    params.function == Pointwise::kSilu ? SiluRow(x, size, y) : GeluTanhRow(x, size, y);
    return absl::OkStatus();
  });
}

absl::Status SnakeCpu(const SnakeParams& params, const ExecContext& context) {
  const int64_t n = params.x.dim(1);
  const int64_t tasks = Tasks(n, kSamplesPerTask);
  return context.ParallelFor(params.x.dim(0) * tasks, [&](int64_t task) {
    const int64_t c = task / tasks;
    const int64_t begin = task % tasks * kSamplesPerTask;
    const int64_t size = std::min(kSamplesPerTask, n - begin);
    const float a = params.alpha.as<float>()[c];
    const auto inverse = static_cast<float>(1.0 / (static_cast<double>(a) + 1e-9));
    const float* x = params.x.as<float>() + c * n + begin;
    SnakeRow(x, size, a, inverse, params.y.as<float>() + c * n + begin);
    return absl::OkStatus();
  });
}

absl::Status AntiAliasedSnakeCpu(const AntiAliasedSnakeParams& params, const ExecContext& context) {
  const int64_t n = params.x.dim(1);
  if (n == 0) return absl::OkStatus();
  SnakeFilters filters = {};
  for (size_t k = 0; k < filters.up.size(); ++k) {
    filters.up[k] = 2.0f * params.up_filter.as<float>()[k];
    filters.down[k] = params.down_filter.as<float>()[k];
  }
  const int64_t tasks = Tasks(n, kSamplesPerTask);
  return context.ParallelFor(params.x.dim(0) * tasks, [&](int64_t task) {
    const int64_t c = task / tasks;
    const double b = std::exp(static_cast<double>(params.beta.as<float>()[c])) + 1e-9;
    const auto a = static_cast<float>(std::exp(static_cast<double>(params.alpha.as<float>()[c])));
    const auto inverse = static_cast<float>(1.0 / b);
    const float* x = params.x.as<float>() + c * n;
    float* y = params.y.as<float>() + c * n;
    const int64_t end = std::min((task % tasks + 1) * kSamplesPerTask, n);
    for (int64_t i = task % tasks * kSamplesPerTask; i < end; i += kSnakeBlock) {
      SnakeBlock(x, n, i, std::min(i + kSnakeBlock, end), a, inverse, filters, y);
    }
    return absl::OkStatus();
  });
}

}  // namespace h3rt
