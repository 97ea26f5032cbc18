// Paths A16, A32 and A1 by the published schedule: four warps take 128 query rows through all keys,
// 64 at a time. K and V tiles have two buffers, so that an epoch needs one barrier and the warps
// may drift apart: one multiplies while another takes exponentials.
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
  static constexpr int kBytes = kQ + 4 * kKv;
};

// kRows rows of kRowBytes, `pitch` bytes apart, to a swizzled tile. What a thread copies lies whole
// swizzle periods apart, so its offsets are constants.
template <int kRowBytes, int kRows>
__device__ __forceinline__ void FetchTile(uint32_t shared, const void* from, int64_t pitch) {
  constexpr int kChunks = kRowBytes / 16;
  constexpr int kAtOnce = exact::kThreads / kChunks;
  static_assert(kRows % kAtOnce == 0 && kAtOnce % 8 == 0);
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const char* source = static_cast<const char*>(from) + row * pitch + 16 * chunk;
  shared += mma_index::ChunkOffset(kRowBytes, row, chunk);
#pragma unroll
  for (int i = 0; i < kRows / kAtOnce; ++i) {
    device::CopyAsync(shared + i * kAtOnce * kRowBytes, source + i * kAtOnce * pitch);
  }
}

// The K tile of an epoch; its V tile follows.
template <int kDim>
__device__ __forceinline__ uint32_t KTile(uint32_t shared, int epoch) {
  return shared + MmaTiles<kDim>::kQ + (epoch & 1) * 2 * MmaTiles<kDim>::kKv;
}

template <int kDim>
__device__ __forceinline__ void FetchEpoch(const Sage2Arguments& args, const TilePlace& place,
                                           uint32_t shared, int epoch) {
  const uint32_t k_tile = KTile<kDim>(shared, epoch);
  const int64_t key = int64_t{epoch} * 64;
  FetchTile<kDim, 64>(k_tile, args.prepared.k8 + (place.k_head * args.k_rows + key) * kDim, kDim);
  FetchTile<64, kDim>(k_tile + MmaTiles<kDim>::kKv,
                      args.prepared.v8 + place.k_head * kDim * args.k_rows + key, args.k_rows);
}

// Integer scores of a warp's 32 query rows (from `first_row` of the tile), 16 a part, and 64 keys.
template <int kDim>
__device__ __forceinline__ void MmaScores(uint32_t q_tile, uint32_t k_tile, int first_row,
                                          int warp_lane, int32_t (&score)[2][32]) {
  using namespace device;
  int32_t c[2][8][4];
#pragma unroll
  for (int e = 0; e < 64; ++e) c[e / 32][e / 4 % 8][e % 4] = 0;
#pragma unroll
  for (int step = 0; step < kDim / 32; ++step) {
    uint32_t a[2][4];
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      LoadMatrices(a[part],
                   q_tile + mma_index::ChunkOffset(kDim, first_row + 16 * part + warp_lane % 16,
                                                   2 * step + warp_lane / 16));
    }
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      uint32_t b[4];
      LoadMatrices(b, k_tile + mma_index::ChunkOffset(
                                   kDim, 16 * group + warp_lane % 8 + 8 * (warp_lane / 16),
                                   2 * step + warp_lane / 8 % 2));
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        MmaS8(c[part][2 * group], a[part], b[0], b[1]);
        MmaS8(c[part][2 * group + 1], a[part], b[2], b[3]);
      }
    }
  }
#pragma unroll
  for (int e = 0; e < 64; ++e) score[e / 32][e % 32] = c[e / 32][e / 4 % 8][e % 4];
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

// P V of an epoch, 8 channels at a time.
template <ExactPath kPath, int kDim, bool kCapture>
__device__ __forceinline__ void MmaColumns(const Sage2Arguments& args, TilePlace place, int epoch,
                                           uint32_t v_tile, const uint32_t (&p8)[2][8],
                                           const RowState (&rows)[2][2],
                                           float (&out)[2][kDim / 2]) {
  using namespace device;
  const int64_t row = place.row;
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
}

// P V of an epoch for A16, 16 channels at a time: the V of the next 16 is loaded, and the sums of
// the last 16 are widened, beside the products of these. The same operations on each element as
// MmaColumn.
template <int kDim>
__device__ __forceinline__ void MmaHalfColumns(const TilePlace& place, uint32_t v_tile,
                                               const uint32_t (&p8)[2][8],
                                               const RowState (&rows)[2][2],
                                               float (&out)[2][kDim / 2]) {
  using namespace device;
  constexpr int kPairs = kDim / 16;
  uint32_t v[2][2][4];     // [buffer][column tile]
  uint32_t u[2][2][2][2];  // [buffer][column tile][part][row half]
  const auto load = [&](int pair) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      LoadMatrices(v[pair % 2][i],
                   v_tile + mma_index::ChunkOffset(
                                64, mma_index::ValueSource(2 * pair + i, place.warp_lane)));
    }
  };
  load(0);
#pragma unroll
  for (int pair = 0; pair <= kPairs; ++pair) {
    if (pair + 1 < kPairs) load(pair + 1);
    if (pair < kPairs) {
      uint32_t(&sums)[2][2][2] = u[pair % 2];
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 4][i / 2 % 2][i % 2] = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int step = i / 4;
        uint32_t(&c)[2] = sums[i / 2 % 2][i % 2];
        const uint32_t(&b)[4] = v[pair % 2][i / 2 % 2];
        MmaE4m3Half(c[0], c[1], p8[i % 2] + 4 * step, b[2 * step], b[2 * step + 1]);
      }
    }
    if (pair > 0) {
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int part = i / 4 % 2;
        const int k = i % 4;
        float& ro = out[part][4 * (2 * (pair - 1) + i / 8) + k];
        const uint32_t sum = u[(pair - 1) % 2][i / 8][part][k / 2];
        ro = FmaFtz(rows[part][k / 2].a, ro, FromF16(static_cast<uint16_t>(sum >> (16 * (k % 2)))));
      }
    }
  }
}

// A thread's two groups of 16 query rows through one epoch.
template <ExactPath kPath, int kDim, bool kCapture, bool kTail>
__device__ __forceinline__ void MmaEpoch(const Sage2Arguments& args, TilePlace place,
                                         uint32_t shared, int epoch, int epochs, float q_scale,
                                         const float* k_scale, float softmax_scale,
                                         RowState (&rows)[2][2], float (&out)[2][kDim / 2]) {
  using namespace device;
  const float dq = MulFtz(q_scale, k_scale[int64_t{epoch} * args.k_lanes]);
  const int64_t row = place.row;
  // This epoch's tiles are there, and every warp has left the other buffer.
  CopyWait<0>();
  __syncthreads();
  if (epoch + 1 < epochs) FetchEpoch<kDim>(args, place, shared, epoch + 1);
  CopyCommit();
  const uint32_t k_tile = KTile<kDim>(shared, epoch);
  const uint32_t v_tile = k_tile + MmaTiles<kDim>::kKv;
  uint32_t p8[2][8];
  {
    int32_t score[2][32];
    MmaScores<kDim>(shared, k_tile, static_cast<int>(threadIdx.x / 32) * 32, place.warp_lane,
                    score);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      place.row = row + 16 * part;
      EpochSoftmax<4, kCapture, kTail>(args, place, epoch, dq, softmax_scale, score[part],
                                       rows[part], p8[part]);
    }
  }
  if constexpr (kPath == ExactPath::kA16 && !kCapture) {
    MmaHalfColumns<kDim>(place, v_tile, p8, rows, out);
  } else {
    place.row = row;
    MmaColumns<kPath, kDim, kCapture>(args, place, epoch, v_tile, p8, rows, out);
  }
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
  FetchTile<kDim, 128>(shared, args.prepared.q8 + (place.head * args.q_rows + tile * 128) * kDim,
                       kDim);
  FetchEpoch<kDim>(args, place, shared, 0);
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
