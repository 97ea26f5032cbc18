// How the threads of one block share out a row, and with that the order in which a row is summed.
// Kernels and their host emulation read the same numbers.
#pragma once

#include <cstdint>

namespace h3rt::device {

// Thread t takes the groups t, t + threads, t + 2 threads; a group is kGroup neighbouring elements,
// 16 bytes of bfloat16. 5376 elements are 672 groups: 224 threads with three groups each, none
// idle.
struct RowPlan {
  static constexpr int kGroup = 8;
  static constexpr int kGroupsPerThread = 3;
  static constexpr int kWarp = 32;
  static constexpr int64_t kMaxHidden = 16384;

  static constexpr int GroupsFor(int64_t hidden) {
    return static_cast<int>((hidden + kGroup - 1) / kGroup);
  }
  // A whole number of warps. For 1 <= hidden <= kMaxHidden.
  static constexpr int ThreadsFor(int64_t hidden) {
    const int wanted = (GroupsFor(hidden) + kGroupsPerThread - 1) / kGroupsPerThread;
    return (wanted + kWarp - 1) / kWarp * kWarp;
  }
  static constexpr int kMaxThreads = 704;
  static constexpr int kMaxWarps = kMaxThreads / kWarp;
};
static_assert(RowPlan::kGroup * 2 == 16, "a group of bfloat16 is one 16-byte access");
static_assert((RowPlan::kMaxHidden / RowPlan::kGroup + RowPlan::kGroupsPerThread - 1) /
                      RowPlan::kGroupsPerThread <=
                  RowPlan::kMaxThreads,
              "the widest row fits one block");
static_assert(RowPlan::kMaxThreads <= 1024 && RowPlan::kMaxWarps <= RowPlan::kWarp,
              "one warp sums what the warps found");

}  // namespace h3rt::device
