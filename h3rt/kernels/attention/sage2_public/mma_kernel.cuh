// Paths A16, A32 and A1 by the published schedule: four warps take 128 query rows through all keys,
// 64 at a time; K and V tiles have one buffer each and are fetched in turn.
#pragma once

#include "h3rt/device/ptx/mbarrier.cuh"
#include "h3rt/device/ptx/mma_sync.cuh"
#include "h3rt/kernels/attention/sage2_public/mma_index.h"
#include "h3rt/kernels/attention/sage2_public/tile_epoch.cuh"

namespace h3rt {

template <int kDim>
struct MmaTiles {
  static constexpr int kQ = 128 * kDim;
  static constexpr int kKv = 64 * kDim;
  static constexpr int kBytes = kQ + 2 * kKv;
};

// `rows` rows of kRowBytes, `pitch` bytes apart, to a swizzled tile.
template <int kRowBytes>
__device__ __forceinline__ void FetchTile(uint32_t shared, const void* from, int64_t pitch,
                                          int rows) {
  constexpr int kChunks = kRowBytes / 16;
  const auto thread = static_cast<int>(threadIdx.x);
  const char* source =
      static_cast<const char*>(from) + thread / kChunks * pitch + 16 * (thread % kChunks);
#pragma unroll
  for (int row = thread / kChunks; row < rows; row += exact::kThreads / kChunks) {
    device::CopyAsync(shared + mma_index::ChunkOffset(kRowBytes, row, thread % kChunks), source);
    source += exact::kThreads / kChunks * pitch;
  }
}

// Integer scores of 16 query rows a warp (from `first_row` of the tile) and 64 keys.
template <int kDim>
__device__ __forceinline__ void MmaScores(uint32_t q_tile, uint32_t k_tile, int first_row,
                                          int warp_lane, int32_t (&score)[32]) {
  using namespace device;
  int32_t c[8][4];
#pragma unroll
  for (auto& tile : c) {
#pragma unroll
    for (int32_t& value : tile) value = 0;
  }
#pragma unroll
  for (int step = 0; step < kDim / 32; ++step) {
    uint32_t a[4];
    LoadMatrices(a, q_tile + mma_index::ChunkOffset(
                                 kDim, mma_index::QuerySource(first_row, step, warp_lane)));
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      uint32_t b[4];
      LoadMatrices(
          b, k_tile + mma_index::ChunkOffset(kDim, mma_index::KeySource(group, step, warp_lane)));
      MmaS8(c[2 * group], a, b[0], b[1]);
      MmaS8(c[2 * group + 1], a, b[2], b[3]);
    }
  }
#pragma unroll
  for (int e = 0; e < 32; ++e) score[e] = c[e / 4][e % 4];
}

// What is captured of the accumulators of one column tile of 8 channels.
__device__ __forceinline__ void KeepFour(const Sage2Arguments& args, const TilePlace& place,
                                         float* to, int64_t step, int64_t steps, int dim,
                                         int column_tile, const float (&c)[4]) {
  if (to == nullptr) return;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int64_t row = place.row + 8 * (k / 2);
    if (row < args.q_len) {
      to[((place.head * args.q_len + row) * steps + step) * dim + 8 * column_tile + 2 * place.lane +
         k % 2] = c[k];
    }
  }
}

// One column tile of P V over the two steps of an epoch, and RO of it.
template <ExactPath kPath, int kDim, bool kCapture>
__device__ __forceinline__ void MmaColumn(const Sage2Arguments& args, const TilePlace& place,
                                          int64_t epoch, int column_tile, const uint32_t (&p8)[8],
                                          const uint32_t (&v)[4], const RowState (&rows)[2],
                                          float* out) {
  using namespace device;
  const float a[2] = {rows[0].a, rows[1].a};
  float u[4];
  if constexpr (kPath == ExactPath::kA1) {
#pragma unroll
    for (int k = 0; k < 4; ++k) u[k] = MulFtz(out[k], a[k / 2]);
  } else {
#pragma unroll
    for (float& value : u) value = 0.0f;
  }
  uint32_t halves[2] = {0, 0};
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    if constexpr (kPath == ExactPath::kA16) {
      MmaE4m3Half(halves[0], halves[1], p8 + 4 * step, v[2 * step], v[2 * step + 1]);
    } else {
      MmaE4m3(u[0], u[1], u[2], u[3], p8 + 4 * step, v[2 * step], v[2 * step + 1]);
    }
    if (kPath == ExactPath::kA16 && (kCapture || step == 1)) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        u[k] = FromF16(static_cast<uint16_t>(halves[k / 2] >> (16 * (k % 2))));
      }
    }
    if constexpr (kCapture) {
      KeepFour(args, place, args.capture.u, epoch * 2 + step, args.epochs * 2, kDim, column_tile,
               u);
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[k] = kPath == ExactPath::kA1 ? u[k] : FmaFtz(a[k / 2], out[k], u[k]);
  }
}

// A thread's two groups of 16 query rows through one epoch.
template <ExactPath kPath, int kDim, bool kCapture, bool kTail>
__device__ __forceinline__ void MmaEpoch(const Sage2Arguments& args, TilePlace place,
                                         uint32_t shared, int epoch, int epochs, float q_scale,
                                         const float* k_scale, float softmax_scale,
                                         RowState (&rows)[2][2], float (&out)[2][kDim / 2]) {
  using namespace device;
  const uint32_t k_tile = shared + MmaTiles<kDim>::kQ;
  const uint32_t v_tile = k_tile + MmaTiles<kDim>::kKv;
  const float dq = MulFtz(q_scale, k_scale[int64_t{epoch} * args.k_lanes]);
  const int first_row = static_cast<int>(threadIdx.x / 32) * 32;
  const int64_t row = place.row;
  uint32_t p8[2][8];
  CopyWait<1>();  // K is there; V may be on its way
  __syncthreads();
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    int32_t score[32];
    MmaScores<kDim>(shared, k_tile, first_row + 16 * part, place.warp_lane, score);
    if (part == 1) {
      __syncthreads();
      if (epoch + 1 < epochs) {
        FetchTile<kDim>(
            k_tile,
            args.prepared.k8 + (place.k_head * args.k_rows + (int64_t{epoch} + 1) * 64) * kDim,
            kDim, 64);
      }
      CopyCommit();
    }
    place.row = row + 16 * part;
    EpochSoftmax<4, kCapture, kTail>(args, place, epoch, dq, softmax_scale, score, rows[part],
                                     p8[part]);
  }
  CopyWait<1>();  // V is there; the next K may be on its way
  __syncthreads();
#pragma unroll
  for (int column_tile = 0; column_tile < kDim / 8; ++column_tile) {
    uint32_t v[4];
    LoadMatrices(v, v_tile + mma_index::ChunkOffset(
                                 64, mma_index::ValueSource(column_tile, place.warp_lane)));
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      place.row = row + 16 * part;
      MmaColumn<kPath, kDim, kCapture>(args, place, epoch, column_tile, p8[part], v, rows[part],
                                       &out[part][4 * column_tile]);
      if constexpr (kCapture) {
        const float c[4] = {out[part][4 * column_tile], out[part][4 * column_tile + 1],
                            out[part][4 * column_tile + 2], out[part][4 * column_tile + 3]};
        KeepFour(args, place, args.capture.ro, epoch, args.epochs, kDim, column_tile, c);
      }
    }
  }
  __syncthreads();
  if (epoch + 1 < epochs) {
    FetchTile<64>(v_tile,
                  args.prepared.v8 + place.k_head * kDim * args.k_rows + (int64_t{epoch} + 1) * 64,
                  args.k_rows, kDim);
  }
  CopyCommit();
}

template <ExactPath kPath, int kDim, bool kCapture>
__global__ void __launch_bounds__(128, kCapture ? 1 : 2)
    sage2_public_mma_kernel(const __grid_constant__ Sage2Arguments args) {
  using namespace device;
  extern __shared__ __align__(128) uint8_t tiles[];
  const uint32_t shared = SharedAddress(tiles);
  const int64_t tile = blockIdx.x % args.tiles;
  TilePlace place;
  place.head = blockIdx.x / args.tiles;
  place.k_head = KHeadOf(place.head, args.q_heads, args.group);
  place.warp_lane = static_cast<int>(threadIdx.x % 32);
  place.lane = place.warp_lane % 4;
  const int warp = static_cast<int>(threadIdx.x / 32);
  place.row = tile * 128 + 32 * warp + tile_index::Row(place.warp_lane, 0);

  const auto epochs =
      static_cast<int>(exact::Epochs(exact::GeometryOf(kPath), tile, args.k_len, args.causal));
  FetchTile<kDim>(shared, args.prepared.q8 + (place.head * args.q_rows + tile * 128) * kDim, kDim,
                  128);
  FetchTile<kDim>(shared + MmaTiles<kDim>::kQ, args.prepared.k8 + place.k_head * args.k_rows * kDim,
                  kDim, 64);
  CopyCommit();
  FetchTile<64>(shared + MmaTiles<kDim>::kQ + MmaTiles<kDim>::kKv,
                args.prepared.v8 + place.k_head * kDim * args.k_rows, args.k_rows, kDim);
  CopyCommit();

  const float q_scale =
      args.prepared.q_scale[place.head * args.q_scales + (tile * 4 + warp) * args.q_lanes +
                            place.warp_lane / 4 % args.q_lanes];
  const float* const k_scale =
      args.prepared.k_scale + place.k_head * args.k_scales + place.lane % args.k_lanes;
  const float softmax_scale = MulFtz(args.sm_scale, FromBits(exact::kLog2E));
  RowState rows[2][2] = {{FreshRow(), FreshRow()}, {FreshRow(), FreshRow()}};
  float out[2][kDim / 2];
#pragma unroll
  for (auto& part : out) {
#pragma unroll
    for (float& value : part) value = 0.0f;
  }
#pragma unroll 1
  for (int epoch = 0; epoch < epochs - 2; ++epoch) {
    MmaEpoch<kPath, kDim, kCapture, false>(args, place, shared, epoch, epochs, q_scale, k_scale,
                                           softmax_scale, rows, out);
  }
#pragma unroll 1
  for (int epoch = max(epochs - 2, 0); epoch < epochs; ++epoch) {
    MmaEpoch<kPath, kDim, kCapture, true>(args, place, shared, epoch, epochs, q_scale, k_scale,
                                          softmax_scale, rows, out);
  }
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    TilePlace here = place;
    here.row = place.row + 16 * part;
    StoreTile<kDim, kCapture>(args, here, rows[part], out[part]);
  }
}

}  // namespace h3rt
