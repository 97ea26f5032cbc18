// An epoch of the contract on the registers of 16 query rows a warp, and the end of a tile: what
// the kernels of mma.sync and of wgmma share.
#pragma once

#include "h3rt/kernels/attention/sage2_public/row_state.cuh"
#include "h3rt/kernels/attention/sage2_public/tile_index.h"

namespace h3rt {

// Where a thread stands: its rows and scales.
struct TilePlace {
  int64_t head;    // batch * q_heads + head
  int64_t k_head;  // batch * k_heads + head
  int64_t row;     // the first of the two query rows; the other is 8 below
  int lane;        // 0..3 within the row
  int warp_lane;
};

// Scores of an epoch, from integers to probabilities. kTail: the last epochs, whose scores
// are dequantised before the maximum and masked.
template <int kGroups, bool kCapture, bool kTail>
__device__ __forceinline__ void EpochSoftmax(const Sage2Arguments& args, const TilePlace& place,
                                             int epoch, float dq, float softmax_scale,
                                             int32_t (&score)[8 * kGroups], RowState (&rows)[2],
                                             uint32_t (&p8)[2 * kGroups]) {
  using namespace device;
  namespace index = tile_index;
  constexpr int kKeys = 16 * kGroups;
  const float s = kTail ? softmax_scale : MulFtz(softmax_scale, dq);
  float x[8 * kGroups];
  float top[2] = {FromBits(exact::kMasked), FromBits(exact::kMasked)};
  if constexpr (kTail) {
    // Keys of the tile that are there, and the last one that the first row sees, from its start.
    const int keys = static_cast<int>(min(args.k_len - int64_t{epoch} * kKeys, int64_t{kKeys}));
    const int seen = args.causal
                         ? static_cast<int>(min(place.row - int64_t{epoch} * kKeys, int64_t{kKeys}))
                         : kKeys;
#pragma unroll
    for (int e = 0; e < 8 * kGroups; ++e) {
      const int key = index::Column(place.warp_lane, e);
      x[e] = MulFtz(IntToFloat(score[e]), dq);
      if (key >= keys || key > seen + 8 * index::Half(e)) x[e] = FromBits(exact::kMasked);
      top[index::Half(e)] = MaxFtz(top[index::Half(e)], x[e]);
    }
  } else {
    // Integers are ordered as their floats are, and none is below the first maximum.
    int32_t most[2] = {score[0], score[2]};
#pragma unroll
    for (int e = 0; e < 8 * kGroups; ++e)
      most[index::Half(e)] = max(most[index::Half(e)], score[e]);
    top[0] = IntToFloat(most[0]);
    top[1] = IntToFloat(most[1]);
#pragma unroll
    for (int e = 0; e < 8 * kGroups; ++e) x[e] = IntToFloat(score[e]);
  }
  if constexpr (kCapture) {
#pragma unroll
    for (int e = 0; e < 8 * kGroups; ++e) {
      const int64_t key = int64_t{epoch} * kKeys + index::Column(place.warp_lane, e);
      const int64_t row = place.row + 8 * index::Half(e);
      if (row < args.q_len && key < args.k_len) {
        const int64_t at = (place.head * args.q_len + row) * args.k_len + key;
        Keep(args.capture.qk, at, score[e]);
        Keep(args.capture.x, at, x[e]);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    RaiseMaximum(top[half], s, rows[half]);
    const float minus_m = Negated(rows[half].m);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      float p[4];
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) {
        p[byte] = Ex2Ftz(FmaFtz(x[index::PackedElement(group, half, byte)], s, minus_m));
      }
      const float sum = AddFtz(AddFtz(AddFtz(p[0], p[1]), p[2]), p[3]);
      rows[half].d =
          group == 0 ? FmaFtz(rows[half].d, rows[half].a, sum) : AddFtz(rows[half].d, sum);
      const uint32_t packed = PackE4m3(p[0], p[1], p[2], p[3]);
      p8[2 * group + half] = packed;
      if constexpr (kCapture) {
        const int64_t row = place.row + 8 * half;
#pragma unroll
        for (int byte = 0; byte < 4; ++byte) {
          const int e = index::PackedElement(group, half, byte);
          const int64_t key = int64_t{epoch} * kKeys + index::Column(place.warp_lane, e);
          if (row < args.q_len && key < args.k_len) {
            const int64_t at = (place.head * args.q_len + row) * args.k_len + key;
            Keep(args.capture.p, at, p[byte]);
            Keep(args.capture.p8, at, static_cast<uint8_t>(packed >> (8 * byte)));
          }
        }
      }
    }
    if constexpr (kCapture) {
      const int64_t row = place.row + 8 * half;
      if (row < args.q_len) {
        const int64_t at = place.head * args.q_len + row;
        KeepScales(args, at, epoch, place.lane, dq, s);
        KeepRow(args, at, epoch, place.lane, rows[half]);
      }
    }
  }
}

template <int kDim>
__device__ __forceinline__ void KeepSums(const Sage2Arguments& args, const TilePlace& place,
                                         int64_t step, int64_t steps, float* to,
                                         const float (&sums)[kDim / 2]) {
  if (to == nullptr) return;
#pragma unroll
  for (int e = 0; e < kDim / 2; ++e) {
    const int64_t row = place.row + 8 * tile_index::Half(e);
    if (row < args.q_len) {
      to[((place.head * args.q_len + row) * steps + step) * kDim +
         tile_index::Column(place.warp_lane, e)] = sums[e];
    }
  }
}

template <int kDim, bool kCapture>
__device__ __forceinline__ void StoreTile(const Sage2Arguments& args, const TilePlace& place,
                                          const RowState (&rows)[2], float (&out)[kDim / 2]) {
  using namespace device;
  const float* const v_scale = args.prepared.v_scale + place.k_head * kDim;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = place.row + 8 * half;
    const float d = SumOfLanes(rows[half].d);
    const float r = RcpFtz(d);
    if (row >= args.q_len) continue;
    uint16_t* const to = OutputRow(args, place.head, row);
#pragma unroll
    for (int pair = 0; pair < kDim / 8; ++pair) {
      const int e = 4 * pair + 2 * half;
      const int channel = tile_index::Column(place.warp_lane, e);
      const float low = MulFtz(MulFtz(out[e], r), v_scale[channel]);
      const float high = MulFtz(MulFtz(out[e + 1], r), v_scale[channel + 1]);
      StorePair(args, to, channel, low, high);
      if constexpr (kCapture) {
        const int64_t at = (place.head * args.q_len + row) * kDim + channel;
        Keep(args.capture.out32, at, low);
        Keep(args.capture.out32, at + 1, high);
      }
    }
    if (place.lane == 0) StoreEnd<kCapture>(args, place.head, row, rows[half].m, d, r);
  }
}

}  // namespace h3rt
