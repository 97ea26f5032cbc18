// Reading Q, K and V where they lie, and the first pass of preparation: what of K and V must be
// known of all keys before one can be quantised.
//
// The pass is bound by memory: each thread asks for 8 octets before it uses the first.
#pragma once

#include <cstdint>

#include "h3rt/device/ptx/cvt_bf16x2.cuh"
#include "h3rt/device/ptx/strict_f32.cuh"
#include "h3rt/kernels/attention/exact/contract.h"
#include "h3rt/kernels/attention/exact/mean_order.h"
#include "h3rt/kernels/attention/exact/problem.h"
#include "h3rt/kernels/attention/sage2_public/prepare_shape.h"

namespace h3rt {
namespace exact {

// The 16-bit type of the inputs: pairs in 32-bit words, the lower channel in the lower half.
template <ExactType kType>
__device__ __forceinline__ float WidenLow(uint32_t pair) {
  if constexpr (kType == ExactType::kBf16) return device::Bf16Low(pair);
  return device::FromF16(static_cast<uint16_t>(pair & 0xffffu));
}
template <ExactType kType>
__device__ __forceinline__ float WidenHigh(uint32_t pair) {
  if constexpr (kType == ExactType::kBf16) return device::Bf16High(pair);
  return device::FromF16(static_cast<uint16_t>(pair >> 16));
}
template <ExactType kType>
__device__ __forceinline__ uint32_t Narrow(float low, float high) {
  if constexpr (kType == ExactType::kBf16) return device::PackBf16(low, high);
  return device::PackF16(low, high);
}
// Of |a| and of what is a maximum of magnitudes already.
template <ExactType kType>
__device__ __forceinline__ uint32_t MaxMagnitude(uint32_t most, uint32_t a) {
  if constexpr (kType == ExactType::kBf16) return device::MaxBf16x2(most, a & 0x7fff7fffu);
  return device::MaxF16x2(most, a & 0x7fff7fffu);
}

// Eight channels of a row.
union Octet {
  uint4 vector;
  uint32_t pairs[4];
};

// Where channel 8 * octet of row `row` lies.
__device__ __forceinline__ const uint16_t* OctetAt(const RowsView& v, int64_t batch, int64_t head,
                                                   int64_t row, int octet) {
  return v.data + batch * v.batch_stride + head * v.head_stride + row * v.row_stride +
         octet * kOctet;
}

// Octet `octet` at `at` element by element, zeros from channel head_dim on.
__device__ __forceinline__ void LoadElements(const uint16_t* at, int octet, int head_dim,
                                             Octet* to) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int channel = octet * kOctet + 2 * i;
    const uint32_t low = channel < head_dim ? __ldg(at + 2 * i) : 0u;
    const uint32_t high = channel + 1 < head_dim ? __ldg(at + 2 * i + 1) : 0u;
    to->pairs[i] = low | (high << 16);
  }
}

// kCount octets of the rows Steps::At(i) after the one that lies at `at`. Pairs of channels that
// are not there are `absent` from row `have` on, and `absent` or zeros from channel head_dim on:
// both are to be zeros, of either sign.
template <bool kVector, typename Steps, int kCount>
__device__ __forceinline__ void LoadRows(const RowsView& v, const uint16_t* at, int have, int octet,
                                         uint32_t absent, Octet (&to)[kCount]) {
  if (octet * kOctet >= v.head_dim) have = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    to[i].vector = make_uint4(absent, absent, absent, absent);
    if (Steps::At(i) >= have) continue;
    const uint16_t* const from = at + Steps::At(i) * v.row_stride;
    if constexpr (kVector) {
      to[i].vector = __ldg(reinterpret_cast<const uint4*>(from));
    } else {
      LoadElements(from, octet, v.head_dim, to + i);
    }
  }
}
template <typename Steps, int kCount>
__device__ __forceinline__ void LoadRows(const RowsView& v, const uint16_t* at, int have, int octet,
                                         uint32_t absent, Octet (&to)[kCount]) {
  if (v.vector) {
    LoadRows<true, Steps>(v, at, have, octet, absent, to);
  } else {
    LoadRows<false, Steps>(v, at, have, octet, absent, to);
  }
}

// Not zero when an element of the octet is NaN or infinite: adding one to an exponent of ones
// carries into the place of the sign.
template <ExactType kType>
__device__ __forceinline__ uint32_t NotFiniteBits(const Octet& x) {
  constexpr uint32_t kOne = kType == ExactType::kBf16 ? 0x00800080u : 0x04000400u;
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) bits |= (x.pairs[i] & 0x7fff7fffu) + kOne;
  return bits & 0x80008000u;
}

// The rare case: reads one octet of a row again and reports its first element that is not finite.
template <ExactType kType>
__device__ void ReportNotFinite(const RowsView& v, int64_t batch, int64_t head, int64_t row,
                                int octet, uint64_t* first) {
  if (row >= v.len) return;
  constexpr uint32_t kExponent = kType == ExactType::kBf16 ? 0x7f80u : 0x7c00u;
  const uint16_t* const at = OctetAt(v, batch, head, row, octet);
#pragma unroll 1
  for (int i = 0; i < kOctet && octet * kOctet + i < v.head_dim; ++i) {
    if ((at[i] & kExponent) != kExponent) continue;
    const int64_t index =
        ((batch * v.len + row) * v.heads + head) * v.head_dim + octet * kOctet + i;
    atomicMin(reinterpret_cast<unsigned long long*>(first), static_cast<unsigned long long>(index));
    return;
  }
}

}  // namespace exact

struct ExactStatsArguments {
  exact::RowsView k;
  exact::RowsView v;
  float* partials;
  int64_t chunks;
  int dim;
  int octet_bits;  // log2 of the octets of a row
  bool sums;       // of K; zeros otherwise
};

// For each chunk of keys the sum of K, in the order of exact/mean_order.h, and the maximum of |V|.
// 2 D threads: a lane of the order is the D / 8 threads of one row. Even CTAs are of K, odd of V.
template <ExactType kType>
__global__ void __launch_bounds__(256, 3) exact_stats_kernel(ExactStatsArguments a) {
  constexpr int kBatch = 8;                      // octets asked for at once
  constexpr uint32_t kMinusZeros = 0x80008000u;  // x + -0 is x, of -0 too; x + 0 is not
  constexpr int kBatchRows = kBatch * exact::kMeanLanes;
  static_assert(exact::kMeanLanes == exact::kRowStep);
  static_assert(kMeanChunk % kBatchRows == 0);
  __shared__ __align__(16) float lanes[exact::kMeanLanes * 128];
  const int thread = static_cast<int>(threadIdx.x);
  const int octet = thread & ((1 << a.octet_bits) - 1);
  const int lane = thread >> a.octet_bits;
  const int64_t item = blockIdx.x;
  const bool is_v = (item & 1) != 0;
  const exact::RowsView& from = is_v ? a.v : a.k;
  const exact::Place place = exact::PlaceOf(item >> 1, a.chunks, from.heads);
  const int64_t first = place.block * kMeanChunk + lane;
  const int have = is_v || a.sums ? exact::Have(from.len, first, kMeanChunk) : 0;
  float sum[exact::kOctet] = {};
  exact::Octet most;
  most.vector = make_uint4(0, 0, 0, 0);
#pragma unroll 1
  for (int at = 0; at < have; at += kBatchRows) {
    exact::Octet x[kBatch];
    exact::LoadRows<exact::RowSteps>(
        from, exact::OctetAt(from, place.batch, place.head, first + at, octet), have - at, octet,
        kMinusZeros, x);
    if (is_v) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          most.pairs[c] = exact::MaxMagnitude<kType>(most.pairs[c], x[i].pairs[c]);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          sum[2 * c] = device::AddFtz(sum[2 * c], exact::WidenLow<kType>(x[i].pairs[c]));
          sum[2 * c + 1] = device::AddFtz(sum[2 * c + 1], exact::WidenHigh<kType>(x[i].pairs[c]));
        }
      }
    }
  }
  if (is_v) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      sum[2 * c] = device::AbsFtz(exact::WidenLow<kType>(most.pairs[c]));
      sum[2 * c + 1] = device::AbsFtz(exact::WidenHigh<kType>(most.pairs[c]));
    }
  }
  float4* const to = reinterpret_cast<float4*>(lanes + lane * a.dim + octet * exact::kOctet);
  to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
  to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
  __syncthreads();
  if (thread < a.dim) {
    float result = lanes[thread];
#pragma unroll
    for (int r = 1; r < exact::kMeanLanes; ++r) {
      const float next = lanes[r * a.dim + thread];
      result = is_v ? device::MaxFtz(result, next) : device::AddFtz(result, next);
    }
    const int64_t head = place.batch * from.heads + place.head;
    const int64_t half = (head * a.chunks + place.block) * 2 + (is_v ? 1 : 0);
    a.partials[half * a.dim + thread] = result;
  }
}

struct ExactReduceArguments {
  const float* partials;
  const uint16_t* given;  // null: the mean is computed
  uint16_t* k_mean;
  float* v_scale;
  uint64_t* not_finite;
  int64_t heads;  // batch * k_heads
  int64_t chunks;
  float over_len;  // 1 / k_len
  uint32_t v_max;
  ExactType type;
  int dim;
  int head_dim;
  bool smooth;
};

// The mean of K, the scale of V, and kAllFinite into not_finite, before the kernels that look for
// elements that are not. 2 D threads: the first D channels of K, then those of V.
__global__ void __launch_bounds__(256) exact_reduce_kernel(ExactReduceArguments a) {
  const int thread = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0 && thread < 3) a.not_finite[thread] = kAllFinite;
  for (int64_t head = blockIdx.x; head < a.heads; head += gridDim.x) {
    const float* const from = a.partials + head * a.chunks * 2 * a.dim + thread;
    if (thread < a.dim) {
      uint16_t mean = 0;
      if (a.smooth && a.given != nullptr) {
        if (thread < a.head_dim) mean = a.given[head * a.head_dim + thread];
      } else if (a.smooth && a.chunks > 0) {
        float sum = from[0];
#pragma unroll 16
        for (int64_t chunk = 1; chunk < a.chunks; ++chunk) {
          sum = device::AddFtz(sum, __ldg(from + chunk * 2 * a.dim));
        }
        sum = device::MulFtz(sum, a.over_len);
        mean = a.type == ExactType::kBf16 ? device::ToBf16(sum) : device::ToF16(sum);
      }
      a.k_mean[head * a.dim + thread] = mean;
    } else {
      float most = 0.0f;
#pragma unroll 16
      for (int64_t chunk = 0; chunk < a.chunks; ++chunk) {
        most = device::MaxFtz(most, __ldg(from + chunk * 2 * a.dim));
      }
      a.v_scale[head * a.dim + thread - a.dim] =
          device::MulFtz(most, device::RcpFtz(device::FromBits(a.v_max)));
    }
  }
}

}  // namespace h3rt
