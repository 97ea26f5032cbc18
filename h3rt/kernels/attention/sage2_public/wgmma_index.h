// How the warpgroup kernel's tiles lie in shared memory, how the instruction is told of them, and
// which scales a lane takes. Plain numbers, so that the host tests them; where registers lie is in
// tile_index.h.
#pragma once

#include "h3rt/kernels/attention/exact/contract.h"

namespace h3rt::wgmma_index {

// Tiles in bytes, one after another: Q, 64 rows of kDim; K, 128 rows of kDim; V, kDim rows of 128.
template <int kDim>
struct Tiles {
  static constexpr int kQ = 64 * kDim;
  static constexpr int kKv = 128 * kDim;
  static constexpr int kKAt = kQ;
  static constexpr int kVAt = kQ + kKv;
  static constexpr int kBytes = kQ + 2 * kKv;
};
inline constexpr int kVRowBytes = 128;
inline constexpr int kStepBytes = 32;  // of depth that one instruction takes
// The swizzle mixes bits of addresses, not of offsets: tiles begin where its pattern does.
inline constexpr int kTileAlignment = 1024;
static_assert(Tiles<64>::kKAt % kTileAlignment == 0 && Tiles<64>::kVAt % kTileAlignment == 0);
static_assert(Tiles<128>::kKAt % kTileAlignment == 0 && Tiles<128>::kVAt % kTileAlignment == 0);

// The descriptor of step `step` of the K-major tile at shared address `address`, whose rows of
// `row_bytes` (64 or 128) are swizzled over as many bytes. In units of 16 bytes: the start (14
// bits); at bit 16 a distance that swizzled operands do not use; at bit 32 that of rows eight
// apart; at bit 62 the kind of swizzle. Sums, not masks: shared addresses have at most 18 bits.
H3RT_HOST_DEVICE constexpr uint64_t Operand(int row_bytes, uint32_t address, int step) {
  const uint32_t low =
      (uint32_t{1} << 16) + (address >> 4) + static_cast<uint32_t>(step * (kStepBytes / 16));
  const uint32_t kind = row_bytes == 128 ? 1 : 2;
  const uint32_t high = (kind << 30) | static_cast<uint32_t>(8 * row_bytes / 16);
  return (uint64_t{high} << 32) | low;
}

// Index of a lane's scale within its (batch, head). `q_lanes` scales a warp's rows, 1 or 8;
// `k_lanes` a key block, 1 or 4.
H3RT_HOST_DEVICE constexpr int64_t QScale(int64_t tile, int warp, int warp_lane, int q_lanes) {
  return (tile * exact::kWarps + warp) * q_lanes + (warp_lane / 4 & (q_lanes - 1));
}
H3RT_HOST_DEVICE constexpr int64_t KScale(int64_t epoch, int warp_lane, int k_lanes) {
  return epoch * k_lanes + (warp_lane % 4 & (k_lanes - 1));
}

// The first query row of a warp; the rows of its lanes are tile_index::Row of it.
H3RT_HOST_DEVICE constexpr int64_t WarpRow(int64_t tile, int warp) { return tile * 64 + 16 * warp; }

}  // namespace h3rt::wgmma_index
