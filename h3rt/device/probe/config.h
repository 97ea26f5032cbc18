// The launch shape of the probe.
#pragma once

#include <cstdint>

namespace h3rt::device {

struct ProbeConfig {
  static constexpr int kThreads = 256;
  // Enough blocks for every multiprocessor of today's chips to hold several; the kernel strides.
  static constexpr int64_t kMaxBlocks = 4096;
};
static_assert(ProbeConfig::kThreads % 32 == 0, "a block is a whole number of warps");
static_assert(ProbeConfig::kMaxBlocks <= 65535, "a grid that every device accepts");

}  // namespace h3rt::device
