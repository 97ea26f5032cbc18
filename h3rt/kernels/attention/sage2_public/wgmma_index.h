// Where a lane's registers lie in the tiles of path B. Plain numbers, so that the host tests them.
#pragma once

#include "h3rt/kernels/attention/exact/contract.h"

namespace h3rt::wgmma_index {

// Element e of 64 integer scores, or of the accumulators of P V: 8 elements a group of 16 columns.
H3RT_HOST_DEVICE constexpr int Row(int warp, int lane, int e) {
  return 16 * warp + lane / 4 + 8 * (e % 4 / 2);
}
H3RT_HOST_DEVICE constexpr int Column(int lane, int e) {
  return 16 * (e / 8) + 2 * (lane % 4) + 8 * (e % 8 / 4) + e % 2;
}
// Which of the lane's two rows an element belongs to.
H3RT_HOST_DEVICE constexpr int Half(int e) { return e % 4 / 2; }
// Element `byte` of word `half` of a group of 16 columns of P, as the A operand takes it.
H3RT_HOST_DEVICE constexpr int PackedElement(int group, int half, int byte) {
  return 8 * group + 2 * half + byte % 2 + 4 * (byte / 2);
}

}  // namespace h3rt::wgmma_index
