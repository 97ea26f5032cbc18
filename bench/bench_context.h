// What the benchmarks of the host ops share.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "h3rt/base/exec.h"

namespace h3rt::bench {

// A pool with every hardware thread this process may use.
inline const ExecContext& Context() {
  static ThreadPool pool(ThreadPool::HardwareThreads());
  static const ExecContext context = {.pool = &pool};
  return context;
}

// Numbers in [-1, 1) that are not denormal or constant; speed does not depend on them otherwise.
inline std::vector<float> Values(int64_t n, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  uint32_t state = seed * 2654435761u + 1u;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

template <typename F>
double SecondsOf(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace h3rt::bench
