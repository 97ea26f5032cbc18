// Where bytes of the mma.sync kernel's tiles lie in shared memory. Plain numbers, so that the host
// tests them.
#pragma once

#include "h3rt/kernels/attention/exact/contract.h"

namespace h3rt::mma_index {

// Byte offset of 16-byte chunk `chunk` of row `row` in a tile whose rows are `row_bytes` (64 or
// 128) long. Chunks of eight neighbouring rows, which ldmatrix reads at once, lie in different
// banks.
H3RT_HOST_DEVICE constexpr int ChunkOffset(int row_bytes, int row, int chunk) {
  const int mixed = row_bytes == 128 ? chunk ^ (row & 7) : chunk ^ ((row >> 1) & 3);
  return row * row_bytes + 16 * mixed;
}

}  // namespace h3rt::mma_index
