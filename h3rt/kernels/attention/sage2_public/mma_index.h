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

// What lane `lane` gives ldmatrix the address of: a row of a tile and a 16-byte chunk of it.
struct Source {
  int row;
  int chunk;
};
// A operand of step `step` (32 channels): 16 query rows from `first_row`.
H3RT_HOST_DEVICE constexpr Source QuerySource(int first_row, int step, int lane) {
  return {first_row + lane % 16, 2 * step + lane / 16};
}
// B operands of step `step`: keys 16 group to + 7, then + 8 to + 15.
H3RT_HOST_DEVICE constexpr Source KeySource(int group, int step, int lane) {
  return {16 * group + lane % 8 + 8 * (lane / 16), 2 * step + lane / 8 % 2};
}
// B operands of both steps (32 positions each) of 8 channels.
H3RT_HOST_DEVICE constexpr Source ValueSource(int column_tile, int lane) {
  return {8 * column_tile + lane % 8, lane / 8};
}
H3RT_HOST_DEVICE constexpr int ChunkOffset(int row_bytes, Source source) {
  return ChunkOffset(row_bytes, source.row, source.chunk);
}

}  // namespace h3rt::mma_index
