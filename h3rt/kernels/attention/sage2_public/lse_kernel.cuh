// What is left to do around attention: the correction of the log-sum-exp for smoothing, and the
// outputs of problems without keys.
#pragma once

#include <cstdint>

#include "h3rt/device/ptx/cvt_bf16x2.cuh"
#include "h3rt/device/ptx/strict_f32.cuh"
#include "h3rt/kernels/attention/exact/contract.h"
#include "h3rt/kernels/attention/sage2_public/prepare_shape.h"

namespace h3rt {

struct ExactLseArguments {
  exact::RowsView q;
  const uint16_t* k_mean;  // [batch, k_heads, dim]; null: a copy
  const float* raw;
  float* lse;
  int64_t blocks;  // of kRowPad rows
  int64_t items;   // batch * blocks * q_heads
  int64_t group;   // q_heads / k_heads
  float sm_scale;
  ExactType type;
  int dim;
};

namespace exact {

__device__ __forceinline__ float WidenAs(ExactType type, uint32_t bits) {
  return type == ExactType::kBf16 ? device::Bf16Low(bits)
                                  : device::FromF16(static_cast<uint16_t>(bits));
}

}  // namespace exact

// kRowPad threads, a row each. The sum is in float64, in the order of the channels: products of two
// 16-bit floats are exact, so that one rounding remains, to odd and then to the type.
__global__ void __launch_bounds__(128) exact_lse_kernel(ExactLseArguments a) {
  constexpr int kPairs = exact::kOctet / 2;
  __shared__ double mean[128];
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    const exact::Place place = exact::PlaceOf(item, a.blocks, a.q.heads);
    const int64_t row = place.block * exact::kRowPad + thread;
    const int64_t out = (place.batch * a.q.heads + place.head) * a.q.len + row;
    if (a.k_mean == nullptr) {
      if (row < a.q.len) a.lse[out] = a.raw[out];
      continue;
    }
    const int64_t k_heads = a.q.heads / a.group;
    const int64_t k_head = place.batch * k_heads + place.head / a.group;
    if (thread < a.dim) {
      mean[thread] = device::ToDouble(exact::WidenAs(a.type, a.k_mean[k_head * a.dim + thread]));
    }
    __syncthreads();
    if (row < a.q.len) {
      const uint16_t* const q = a.q.data + place.batch * a.q.batch_stride +
                                place.head * a.q.head_stride + row * a.q.row_stride;
      double dot = 0.0;
      if (a.q.vector) {
#pragma unroll 4
        for (int c = 0; c < a.q.head_dim; c += exact::kOctet) {
          const uint4 octet = __ldg(reinterpret_cast<const uint4*>(q + c));
          const uint32_t pairs[kPairs] = {octet.x, octet.y, octet.z, octet.w};
#pragma unroll
          for (int i = 0; i < kPairs; ++i) {
            const float low = exact::WidenAs(a.type, pairs[i] & 0xffffu);
            const float high = exact::WidenAs(a.type, pairs[i] >> 16);
            dot = device::FmaDouble(device::ToDouble(low), mean[c + 2 * i], dot);
            dot = device::FmaDouble(device::ToDouble(high), mean[c + 2 * i + 1], dot);
          }
        }
      } else {
#pragma unroll 1
        for (int c = 0; c < a.q.head_dim; ++c) {
          dot = device::FmaDouble(device::ToDouble(exact::WidenAs(a.type, q[c])), mean[c], dot);
        }
      }
      const float odd = device::RoundToOdd(dot);
      const uint16_t rounded =
          a.type == ExactType::kBf16 ? device::ToBf16(odd) : device::ToF16(odd);
      const float correction = exact::WidenAs(a.type, rounded);
      a.lse[out] = device::AddFtz(a.raw[out], device::MulFtz(correction, a.sm_scale));
    }
    __syncthreads();
  }
}

struct ExactEmptyArguments {
  uint16_t* o;
  int64_t batch_stride;
  int64_t row_stride;
  int64_t head_stride;
  float* lse;
  float* lse_raw;
  int64_t len;
  int64_t heads;
  int64_t blocks;  // of kRowPad rows
  int64_t items;   // batch * blocks * heads
  int head_dim;
};

// kRowPad threads, a row each.
__global__ void __launch_bounds__(128) exact_empty_kernel(ExactEmptyArguments a) {
  for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    const exact::Place place = exact::PlaceOf(item, a.blocks, a.heads);
    const int64_t row = place.block * exact::kRowPad + static_cast<int>(threadIdx.x);
    if (row >= a.len) continue;
    uint16_t* const o =
        a.o + place.batch * a.batch_stride + place.head * a.head_stride + row * a.row_stride;
#pragma unroll 1
    for (int c = 0; c < a.head_dim; ++c) o[c] = 0;
    const int64_t out = (place.batch * a.heads + place.head) * a.len + row;
    const float nothing = device::FromBits(0xff800000u);
    if (a.lse != nullptr) a.lse[out] = nothing;
    if (a.lse_raw != nullptr) a.lse_raw[out] = nothing;
  }
}

}  // namespace h3rt
