// What the kernels of this op share: eight elements at a time, and the steps of the arithmetic.
// Every rounding is written out, so that the compiler can neither fuse nor reorder.
#pragma once

#include <cstdint>

#include "h3rt/device/ptx/cvt_bf16x2.cuh"
#include "h3rt/device/tile/row_plan.h"

namespace h3rt {

using device::RowPlan;

// Eight bfloat16. Elements past the end of a row are zeros, which change no sum.
struct Group {
  uint32_t pair[4];
};

// kVector: rows begin on 16 bytes and hold whole groups. kOnce: read once, so it need not stay in
// the caches that the weights want.
template <bool kVector, bool kOnce>
__device__ inline Group LoadGroup(const uint16_t* from, int64_t first, int64_t end) {
  Group group;
  if constexpr (kVector) {
    const uint4* at = reinterpret_cast<const uint4*>(from + first);
    const uint4 v = kOnce ? __ldcs(at) : __ldg(at);
    group = {{v.x, v.y, v.z, v.w}};
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t e = first + 2 * i;
      const uint32_t low = e < end ? from[e] : 0u;
      const uint32_t high = e + 1 < end ? from[e + 1] : 0u;
      group.pair[i] = low | high << 16;
    }
  }
  return group;
}

template <bool kVector>
__device__ inline void StoreGroup(uint16_t* to, int64_t first, int64_t end, const Group& group) {
  if constexpr (kVector) {
    *reinterpret_cast<uint4*>(to + first) =
        make_uint4(group.pair[0], group.pair[1], group.pair[2], group.pair[3]);
  } else {
#pragma unroll
    for (int i = 0; i < RowPlan::kGroup; ++i) {
      if (first + i < end) {
        to[first + i] = static_cast<uint16_t>(group.pair[i / 2] >> (i % 2 * 16));
      }
    }
  }
}

// h = bf16(x + r)
__device__ inline Group AddGroups(const Group& x, const Group& r) {
  Group h;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    h.pair[i] =
        device::PackBf16(__fadd_rn(device::Bf16Low(x.pair[i]), device::Bf16Low(r.pair[i])),
                         __fadd_rn(device::Bf16High(x.pair[i]), device::Bf16High(r.pair[i])));
  }
  return h;
}

// sum + h0^2 + h1^2 + ... in the order of the elements, one rounding each.
__device__ inline float AddSquares(float sum, const Group& h) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float low = device::Bf16Low(h.pair[i]);
    const float high = device::Bf16High(h.pair[i]);
    sum = __fmaf_rn(low, low, sum);
    sum = __fmaf_rn(high, high, sum);
  }
  return sum;
}

// 1 / sqrt(sum / hidden + eps), each operation rounded to nearest: unlike rsqrt the same on every
// architecture and on the host.
__device__ inline float InverseRms(float sum, int hidden, float eps) {
  return __frcp_rn(__fsqrt_rn(__fadd_rn(__fdiv_rn(sum, static_cast<float>(hidden)), eps)));
}

// y = bf16((h * inverse) * w)
__device__ inline Group ScaleGroup(const Group& h, float inverse, const Group& w) {
  Group y;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    y.pair[i] = device::PackBf16(
        __fmul_rn(__fmul_rn(device::Bf16Low(h.pair[i]), inverse), device::Bf16Low(w.pair[i])),
        __fmul_rn(__fmul_rn(device::Bf16High(h.pair[i]), inverse), device::Bf16High(w.pair[i])));
  }
  return y;
}

}  // namespace h3rt
