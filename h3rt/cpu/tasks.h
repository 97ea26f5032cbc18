// How loops over rows are split into tasks: by fixed sizes, never by the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace h3rt {

// Elements that one task of a memory-bound loop handles, about: 128 KiB of F32.
inline constexpr int64_t kElementsPerTask = 1 << 15;

// Rows of `columns` elements that make a task, at least one.
inline int64_t RowsPerTask(int64_t columns) {
  return std::max<int64_t>(kElementsPerTask / std::max<int64_t>(columns, 1), 1);
}

}  // namespace h3rt
