// Path B by the published schedule: one warpgroup takes 64 query rows through all keys, 128 at a
// time; Q, K and V tiles have one buffer each; three such blocks share a multiprocessor and hide
// each other's waits.
#pragma once

#include "h3rt/device/ptx/mbarrier.cuh"
#include "h3rt/device/ptx/wgmma.cuh"
#include "h3rt/kernels/attention/sage2_public/row_state.cuh"
#include "h3rt/kernels/attention/sage2_public/wgmma_index.h"

namespace h3rt {

struct alignas(64) TensorMapBytes {
  uint8_t bytes[128];
};
struct Sage2TensorMaps {
  TensorMapBytes q;
  TensorMapBytes k;
  TensorMapBytes v;
};

template <int kDim>
struct WgmmaTiles {
  static constexpr int kQ = 64 * kDim;
  static constexpr int kKv = 128 * kDim;
  static constexpr int kBytes = kQ + 2 * kKv;
};

#ifdef H3RT_HAS_WGMMA

// Where a thread stands: its rows and scales.
template <int kDim>
struct WgmmaPlace {
  int64_t head;    // batch * q_heads + head
  int64_t k_head;  // batch * k_heads + head
  int64_t tile;
  int64_t row;  // the first of the two query rows; the other is 8 below
  int lane;     // 0..3 within the row
  int warp_lane;
};

// Scores of an epoch, from integers to probabilities. kTail: the last epoch, whose scores are
// dequantised before the maximum and masked.
template <int kDim, bool kCapture, bool kTail>
__device__ __forceinline__ void WgmmaSoftmax(const Sage2Arguments& args,
                                             const WgmmaPlace<kDim>& place, int epoch, float dq,
                                             float softmax_scale, int32_t (&score)[64],
                                             RowState (&rows)[2], uint32_t (&p8)[16]) {
  using namespace device;
  namespace index = wgmma_index;
  const float s = kTail ? softmax_scale : MulFtz(softmax_scale, dq);
  float x[64];
  float top[2] = {FromBits(exact::kMasked), FromBits(exact::kMasked)};
  if constexpr (kTail) {
    // Keys of the tile that are there, and the last one that the first row sees, from its start.
    const int keys = static_cast<int>(min(args.k_len - int64_t{epoch} * 128, int64_t{128}));
    const int seen =
        args.causal ? static_cast<int>(min(place.row - int64_t{epoch} * 128, int64_t{128})) : 128;
#pragma unroll
    for (int e = 0; e < 64; ++e) {
      const int key = index::Column(place.warp_lane, e);
      x[e] = MulFtz(IntToFloat(score[e]), dq);
      if (key >= keys || key > seen + 8 * index::Half(e)) x[e] = FromBits(exact::kMasked);
      top[index::Half(e)] = MaxFtz(top[index::Half(e)], x[e]);
    }
  } else {
    // Integers are ordered as their floats are, and none is below the first maximum.
    int32_t most[2] = {score[0], score[2]};
#pragma unroll
    for (int e = 0; e < 64; ++e) most[index::Half(e)] = max(most[index::Half(e)], score[e]);
    top[0] = IntToFloat(most[0]);
    top[1] = IntToFloat(most[1]);
#pragma unroll
    for (int e = 0; e < 64; ++e) x[e] = IntToFloat(score[e]);
  }
  if constexpr (kCapture) {
#pragma unroll
    for (int e = 0; e < 64; ++e) {
      const int64_t key = int64_t{epoch} * 128 + index::Column(place.warp_lane, e);
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
    const float minus_m = -rows[half].m;
#pragma unroll
    for (int group = 0; group < 8; ++group) {
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
          const int64_t key = int64_t{epoch} * 128 + index::Column(place.warp_lane, e);
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
__device__ __forceinline__ void KeepSums(const Sage2Arguments& args, const WgmmaPlace<kDim>& place,
                                         int64_t step, int64_t steps, float* to,
                                         const float (&sums)[kDim / 2]) {
  if (to == nullptr) return;
#pragma unroll
  for (int e = 0; e < kDim / 2; ++e) {
    const int64_t row = place.row + 8 * wgmma_index::Half(e);
    if (row < args.q_len) {
      to[((place.head * args.q_len + row) * steps + step) * kDim +
         wgmma_index::Column(place.warp_lane, e)] = sums[e];
    }
  }
}

// U = P V of an epoch from zero: four chained steps of 32 keys.
template <int kDim, bool kCapture>
__device__ __forceinline__ void WgmmaValues(const Sage2Arguments& args,
                                            const WgmmaPlace<kDim>& place, int epoch,
                                            uint32_t v_address, const uint32_t (&p8)[16],
                                            float (&u)[kDim / 2]) {
  using namespace device;
  WgmmaFence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    WgmmaE4m3(u, p8 + 4 * step, SwizzledOperand<128>(v_address + 32 * step), step);
    if constexpr (kCapture) {
      WgmmaCommit();
      WgmmaWaitAll();
      Pin(u);
      KeepSums<kDim>(args, place, int64_t{epoch} * 4 + step, args.epochs * 4, args.capture.u, u);
      WgmmaFence();
    }
  }
  WgmmaCommit();
  WgmmaWaitAll();
  Pin(u);
}

template <int kDim, bool kCapture, bool kTail>
__device__ __forceinline__ void WgmmaEpoch(const Sage2Arguments& args, const Sage2TensorMaps& maps,
                                           const WgmmaPlace<kDim>& place, uint8_t* shared,
                                           uint64_t* full, int epoch, int epochs, float q_scale,
                                           const float* k_scale, float softmax_scale,
                                           RowState (&rows)[2], float (&out)[kDim / 2]) {
  using namespace device;
  uint8_t* const k_tile = shared + WgmmaTiles<kDim>::kQ;
  uint8_t* const v_tile = k_tile + WgmmaTiles<kDim>::kKv;
  const auto parity = static_cast<uint32_t>(epoch & 1);
  const float dq = MulFtz(q_scale, k_scale[epoch * args.k_lanes]);
  uint32_t p8[16];
  {
    int32_t score[64];
    BarrierWait(&full[1], parity);
    WgmmaFence();
#pragma unroll
    for (int step = 0; step < kDim / 32; ++step) {
      WgmmaS8(score, SwizzledOperand<kDim>(SharedAddress(shared) + 32 * step),
              SwizzledOperand<kDim>(SharedAddress(k_tile) + 32 * step), step);
    }
    WgmmaCommit();
    WgmmaWaitAll();
    Pin(score);
    // Every warp has read the tile before it is overwritten.
    __syncthreads();
    if (threadIdx.x == 0 && epoch + 1 < epochs) {
      BarrierExpect(&full[1], WgmmaTiles<kDim>::kKv);
      CopyBox(k_tile, &maps.k, 0, (epoch + 1) * 128, static_cast<int32_t>(place.k_head), &full[1]);
    }
    WgmmaSoftmax<kDim, kCapture, kTail>(args, place, epoch, dq, softmax_scale, score, rows, p8);
  }
  float u[kDim / 2];
  BarrierWait(&full[2], parity);
  WgmmaValues<kDim, kCapture>(args, place, epoch, SharedAddress(v_tile), p8, u);
  __syncthreads();
  if (threadIdx.x == 0 && epoch + 1 < epochs) {
    BarrierExpect(&full[2], WgmmaTiles<kDim>::kKv);
    CopyBox(v_tile, &maps.v, (epoch + 1) * 128, 0, static_cast<int32_t>(place.k_head), &full[2]);
  }
#pragma unroll
  for (int e = 0; e < kDim / 2; ++e) {
    out[e] = FmaFtz(rows[wgmma_index::Half(e)].a, out[e], u[e]);
  }
  if constexpr (kCapture) KeepSums<kDim>(args, place, epoch, args.epochs, args.capture.ro, out);
}

template <int kDim, bool kCapture>
__device__ __forceinline__ void WgmmaEnd(const Sage2Arguments& args, const WgmmaPlace<kDim>& place,
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
      const int channel = wgmma_index::Column(place.warp_lane, e);
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

#endif  // H3RT_HAS_WGMMA

template <int kDim, bool kCapture>
__global__ void __launch_bounds__(128, kCapture ? 1 : 3)
    sage2_public_wgmma_kernel(const __grid_constant__ Sage2Arguments args,
                              const __grid_constant__ Sage2TensorMaps maps) {
#ifdef H3RT_HAS_WGMMA
  using namespace device;
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ uint64_t full[3];  // Q, K, V
  WgmmaPlace<kDim> place;
  place.head = blockIdx.x / args.tiles;
  place.tile = blockIdx.x % args.tiles;
  place.k_head = KHeadOf(place.head, args.q_heads, args.group);
  place.warp_lane = static_cast<int>(threadIdx.x % 32);
  place.lane = place.warp_lane % 4;
  const int warp = static_cast<int>(threadIdx.x / 32);
  place.row = place.tile * 64 + wgmma_index::Row(warp, place.warp_lane, 0);

  constexpr exact::Geometry kGeometry = exact::GeometryOf(ExactPath::kB);
  // The copy engine's coordinates are 32-bit, so the epochs are.
  const auto epochs =
      static_cast<int>(exact::Epochs(kGeometry, place.tile, args.k_len, args.causal));
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) BarrierInit(&full[i], 1);
    BarrierInitFence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    BarrierExpect(&full[0], WgmmaTiles<kDim>::kQ);
    CopyBox(shared, &maps.q, 0, static_cast<int32_t>(place.tile * 64),
            static_cast<int32_t>(place.head), &full[0]);
    BarrierExpect(&full[1], WgmmaTiles<kDim>::kKv);
    CopyBox(shared + WgmmaTiles<kDim>::kQ, &maps.k, 0, 0, static_cast<int32_t>(place.k_head),
            &full[1]);
    BarrierExpect(&full[2], WgmmaTiles<kDim>::kKv);
    CopyBox(shared + WgmmaTiles<kDim>::kQ + WgmmaTiles<kDim>::kKv, &maps.v, 0, 0,
            static_cast<int32_t>(place.k_head), &full[2]);
  }
  const float q_scale =
      args.prepared.q_scale[place.head * args.q_scales + (place.tile * 4 + warp) * args.q_lanes +
                            place.warp_lane / 4 % args.q_lanes];
  const float* const k_scale =
      args.prepared.k_scale + place.k_head * args.k_scales + place.lane % args.k_lanes;
  const float softmax_scale = MulFtz(args.sm_scale, FromBits(exact::kLog2E));
  RowState rows[2] = {FreshRow(), FreshRow()};
  float out[kDim / 2];
#pragma unroll
  for (int e = 0; e < kDim / 2; ++e) out[e] = 0.0f;
  BarrierWait(&full[0], 0);
#pragma unroll 1
  for (int epoch = 0; epoch + 1 < epochs; ++epoch) {
    WgmmaEpoch<kDim, kCapture, false>(args, maps, place, shared, full, epoch, epochs, q_scale,
                                      k_scale, softmax_scale, rows, out);
  }
  WgmmaEpoch<kDim, kCapture, true>(args, maps, place, shared, full, epochs - 1, epochs, q_scale,
                                   k_scale, softmax_scale, rows, out);
  WgmmaEnd<kDim, kCapture>(args, place, rows, out);
#endif
}

}  // namespace h3rt
