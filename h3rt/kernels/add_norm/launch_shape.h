// How many blocks and which access width a launch takes. Plain numbers, so that the host tests
// them.
#pragma once

#include <cstdint>

#include "h3rt/device/tile/row_plan.h"

namespace h3rt {

// One block a row up to the largest grid; blocks stride over the rest. `at_most` <= 0: no other
// limit.
constexpr int64_t AddNormBlocks(int64_t rows, int64_t at_most) {
  constexpr int64_t kLargestGrid = 2147483647;
  const int64_t limit = at_most > 0 && at_most < kLargestGrid ? at_most : kLargestGrid;
  return rows < limit ? rows : limit;
}

// 16-byte accesses need rows of whole groups and a base on 16 bytes (`addresses`: all of them,
// or-ed).
constexpr bool AddNormVector(uint64_t addresses, int64_t hidden) {
  return addresses % 16 == 0 && hidden % device::RowPlan::kGroup == 0;
}

constexpr bool AddNormTakes(int64_t rows, int64_t hidden) {
  return rows >= 0 && hidden >= 1 && hidden <= device::RowPlan::kMaxHidden;
}

}  // namespace h3rt
