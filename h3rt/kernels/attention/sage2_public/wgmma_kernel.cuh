// Path B by the published schedule: one warpgroup takes 64 query rows through all keys, 128 at a
// time; Q, K and V tiles have one buffer each; three such blocks share a multiprocessor and hide
// each other's waits.
#pragma once

#include "h3rt/device/ptx/mbarrier.cuh"
#include "h3rt/device/ptx/wgmma.cuh"
#include "h3rt/kernels/attention/sage2_public/tile_epoch.cuh"
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

#ifdef H3RT_HAS_WGMMA

// U = P V of an epoch from zero: four chained steps of 32 keys.
template <int kDim, bool kCapture>
__device__ __forceinline__ void WgmmaValues(const Sage2Arguments& args, const TilePlace& place,
                                            int epoch, uint32_t v_tile, uint32_t (&p8)[16],
                                            float (&u)[kDim / 2]) {
  using namespace device;
  using wgmma_index::kVRowBytes;
  Pin(p8);
  WgmmaFence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    WgmmaE4m3(u, p8 + 4 * step, wgmma_index::Operand(kVRowBytes, v_tile, step), step);
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

// `k_scales` are the lane's, from epoch 0; `k_scale` is this epoch's, and the next one's
// afterwards.
template <int kDim, bool kCapture, bool kTail>
__device__ __forceinline__ void WgmmaEpoch(const Sage2Arguments& args, const Sage2TensorMaps& maps,
                                           const TilePlace& place, uint8_t* shared, uint64_t* full,
                                           int epoch, int epochs, float q_scale,
                                           const float* k_scales, float& k_scale,
                                           float softmax_scale, RowState (&rows)[2],
                                           float (&out)[kDim / 2]) {
  using namespace device;
  using Tiles = wgmma_index::Tiles<kDim>;
  uint8_t* const k_tile = shared + Tiles::kKAt;
  uint8_t* const v_tile = shared + Tiles::kVAt;
  const auto parity = static_cast<uint32_t>(epoch & 1);
  const float dq = MulFtz(q_scale, k_scale);
  uint32_t p8[16];
  {
    int32_t score[64];
    BarrierWait(&full[1], parity);
    WgmmaFence();
#pragma unroll
    for (int step = 0; step < kDim / 32; ++step) {
      WgmmaS8(score, wgmma_index::Operand(kDim, SharedAddress(shared), step),
              wgmma_index::Operand(kDim, SharedAddress(k_tile), step), step);
    }
    WgmmaCommit();
    WgmmaWaitAll();
    Pin(score);
    // Every warp has read the tile before it is overwritten.
    __syncthreads();
    if (threadIdx.x == 0 && epoch + 1 < epochs) {
      BarrierExpect(&full[1], Tiles::kKv);
      CopyBox(k_tile, &maps.k, 0, (epoch + 1) * 128, static_cast<int32_t>(place.k_head), &full[1]);
    }
    EpochSoftmax<8, kCapture, kTail>(args, place, epoch, dq, softmax_scale, score, rows, p8);
  }
  // Fetched here, the next scale arrives behind P V; where scores are alive there is no register.
  if constexpr (!kTail) k_scale = k_scales[wgmma_index::KScale(epoch + 1, 0, args.k_lanes)];
  float u[kDim / 2];
  BarrierWait(&full[2], parity);
  WgmmaValues<kDim, kCapture>(args, place, epoch, SharedAddress(v_tile), p8, u);
  __syncthreads();
  if (threadIdx.x == 0 && epoch + 1 < epochs) {
    BarrierExpect(&full[2], Tiles::kKv);
    CopyBox(v_tile, &maps.v, (epoch + 1) * 128, 0, static_cast<int32_t>(place.k_head), &full[2]);
  }
#pragma unroll
  for (int e = 0; e < kDim / 2; ++e) {
    out[e] = FmaFtz(rows[tile_index::Half(e)].a, out[e], u[e]);
  }
  if constexpr (kCapture) KeepSums<kDim>(args, place, epoch, args.epochs, args.capture.ro, out);
}

#endif  // H3RT_HAS_WGMMA

template <int kDim, bool kCapture>
__global__ void __launch_bounds__(128, kCapture ? 1 : 3)
    sage2_public_wgmma_kernel(const __grid_constant__ Sage2Arguments args,
                              const __grid_constant__ Sage2TensorMaps maps) {
#ifdef H3RT_HAS_WGMMA
  using namespace device;
  using Tiles = wgmma_index::Tiles<kDim>;
  extern __shared__ __align__(wgmma_index::kTileAlignment) uint8_t shared[];
  __shared__ uint64_t full[3];  // Q, K, V
  TilePlace place;
  // The grid and the copy engine's coordinates are 32-bit: 64-bit values would cost registers.
  const uint32_t head = blockIdx.x / static_cast<uint32_t>(args.tiles);
  const uint32_t tile = blockIdx.x % static_cast<uint32_t>(args.tiles);
  place.head = head;
  place.k_head = static_cast<uint32_t>(KHeadOf(head, args.q_heads, args.group));
  place.warp_lane = static_cast<int>(threadIdx.x % 32);
  place.lane = place.warp_lane % 4;
  const auto warp = static_cast<int>(threadIdx.x / 32);
  place.row =
      static_cast<uint32_t>(wgmma_index::WarpRow(tile, warp) + tile_index::Row(place.warp_lane, 0));

  constexpr exact::Geometry kGeometry = exact::GeometryOf(ExactPath::kB);
  const auto epochs = static_cast<int>(exact::Epochs(kGeometry, tile, args.k_len, args.causal));
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) BarrierInit(&full[i], 1);
    BarrierInitFence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    BarrierExpect(&full[0], Tiles::kQ);
    CopyBox(shared, &maps.q, 0, static_cast<int32_t>(tile * 64), static_cast<int32_t>(place.head),
            &full[0]);
    BarrierExpect(&full[1], Tiles::kKv);
    CopyBox(shared + Tiles::kKAt, &maps.k, 0, 0, static_cast<int32_t>(place.k_head), &full[1]);
    BarrierExpect(&full[2], Tiles::kKv);
    CopyBox(shared + Tiles::kVAt, &maps.v, 0, 0, static_cast<int32_t>(place.k_head), &full[2]);
  }
  const float q_scale =
      args.prepared.q_scale[place.head * args.q_scales +
                            wgmma_index::QScale(tile, warp, place.warp_lane, args.q_lanes)];
  const float* const k_scales = args.prepared.k_scale + place.k_head * args.k_scales +
                                wgmma_index::KScale(0, place.warp_lane, args.k_lanes);
  const float softmax_scale = MulFtz(args.sm_scale, FromBits(exact::kLog2E));
  float k_scale = k_scales[0];
  RowState rows[2] = {FreshRow(), FreshRow()};
  float out[kDim / 2];
#pragma unroll
  for (int e = 0; e < kDim / 2; ++e) out[e] = 0.0f;
  BarrierWait(&full[0], 0);
#pragma unroll 1
  for (int epoch = 0; epoch + 1 < epochs; ++epoch) {
    WgmmaEpoch<kDim, kCapture, false>(args, maps, place, shared, full, epoch, epochs, q_scale,
                                      k_scales, k_scale, softmax_scale, rows, out);
  }
  WgmmaEpoch<kDim, kCapture, true>(args, maps, place, shared, full, epochs - 1, epochs, q_scale,
                                   k_scales, k_scale, softmax_scale, rows, out);
  StoreTile<kDim, kCapture>(args, place, rows, out);
#endif
}

}  // namespace h3rt
