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
                   q_tile + mma_index::ChunkOffset(kDim, mma_index::RowSource(first_row + 16 * part,
                                                                              step, warp_lane)));
    }
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      uint32_t b[4];
      LoadMatrices(b, k_tile + mma_index::ChunkOffset(
                                   kDim, mma_index::ColumnSource(group, step, warp_lane)));
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

// One step of one column tile of P V: `sums` = P V, plus what it was where
// `step` is not 0. A1 starts from the rescaled RO, the others from zero; A16
// sums in `halves`.
template <ExactPath kPath, bool kCapture>
__device__ __forceinline__ void MmaStep(int step, const uint32_t* p8, uint32_t v0, uint32_t v1,
                                        const RowState (&rows)[2], const float* ro,
                                        uint32_t (&halves)[2], float (&sums)[4]) {
  using namespace device;
  if constexpr (kPath == ExactPath::kA16) {
    if (step == 0) halves[0] = halves[1] = 0;
    MmaE4m3Half(halves[0], halves[1], p8, v0, v1);
    if (kCapture || step == 1) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        sums[k] = FromF16(static_cast<uint16_t>(halves[k / 2] >> (16 * (k % 2))));
      }
    }
  } else {
    if (step == 0) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        sums[k] = kPath == ExactPath::kA1 ? MulFtz(ro[k], rows[k / 2].a) : 0.0f;
      }
    }
    MmaE4m3(sums[0], sums[1], sums[2], sums[3], p8, v0, v1);
  }
}

// P V of an epoch and RO of it. Both steps of two column tiles are taken
// together, so that four chains overlap. A1, whose sums are RO itself, takes a
// step of all tiles before the next step: half as many words of P are unpacked
// at a time.
template <ExactPath kPath, int kDim, bool kCapture>
__device__ __forceinline__ void MmaValues(const Sage2Arguments& args, TilePlace place, int epoch,
                                          uint32_t v_tile, const uint32_t (&p8)[2][8],
                                          const RowState (&rows)[2][2], float (&out)[2][kDim / 2]) {
  using namespace device;
  constexpr int kTogether = kPath == ExactPath::kA1 ? kDim / 16 : 2;
  const int64_t row = place.row;
#pragma unroll
  for (int first = 0; first < kDim / 8; first += kTogether) {
    uint32_t halves[2][kTogether][2];
    float u[2][kTogether][4];
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int i = 0; i < kTogether; i += 2) {
        uint32_t v[4];
        LoadMatrices(
            v, v_tile + mma_index::ChunkOffset(
                            64, mma_index::ColumnSource((first + i) / 2, step, place.warp_lane)));
#pragma unroll
        for (int side = 0; side < 2; ++side) {
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            MmaStep<kPath, kCapture>(step, p8[part] + 4 * step, v[2 * side], v[2 * side + 1],
                                     rows[part], &out[part][4 * (first + i + side)],
                                     halves[part][i + side], u[part][i + side]);
            if constexpr (kCapture) {
              place.row = row + 16 * part;
              KeepFour(args, place, args.capture.u, int64_t{epoch} * 2 + step, args.epochs * 2,
                       kDim, first + i + side, u[part][i + side]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        float* const ro = &out[part][4 * (first + i)];
        float(&sums)[4] = u[part][i];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (kPath != ExactPath::kA1) sums[k] = FmaFtz(rows[part][k / 2].a, ro[k], sums[k]);
          ro[k] = sums[k];
        }
        if constexpr (kCapture) {
          place.row = row + 16 * part;
          KeepFour(args, place, args.capture.ro, epoch, args.epochs, kDim, first + i, sums);
        }
      }
    }
  }
}

// P V of an epoch for A16, 16 channels at a time: the V of the next 16 is loaded, and the sums of
// the last 16 are widened, beside the products of these. The same operations on each element as
// MmaStep and MmaValues.
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
    MmaValues<kPath, kDim, kCapture>(args, place, epoch, v_tile, p8, rows, out);
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
