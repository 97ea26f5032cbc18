// Where a lane's registers lie in a tile of 16 query rows a warp: scores, sums of P V, packed P.
// The accumulators of mma.sync and of wgmma agree. Plain numbers, so that the host tests them.
#pragma once

#include "h3rt/kernels/attention/exact/contract.h"

namespace h3rt::tile_index {

// Element e of a lane: 8 elements a group of 16 columns, which are keys or channels.
H3RT_HOST_DEVICE constexpr int Row(int lane, int e) { return lane / 4 + 8 * (e % 4 / 2); }
H3RT_HOST_DEVICE constexpr int Column(int lane, int e) {
  return 16 * (e / 8) + 2 * (lane % 4) + 8 * (e % 8 / 4) + e % 2;
}
// Which of the lane's two rows an element belongs to.
H3RT_HOST_DEVICE constexpr int Half(int e) { return e % 4 / 2; }
// Element `byte` of word `half` of a group of 16 columns of P. Words 4f to 4f + 3 (word 2 group +
// half) are the A operand of step f, whose byte 4t + s meets position 4t + s of the permuted V.
H3RT_HOST_DEVICE constexpr int PackedElement(int group, int half, int byte) {
  return 8 * group + 2 * half + byte % 2 + 4 * (byte / 2);
}

}  // namespace h3rt::tile_index
