// One query row of a lane through an epoch and to the end: maximum, rescale factor, denominator,
// and the checkpoints and stores that both kernels share.
#pragma once

#include "h3rt/device/ptx/strict_f32.cuh"
#include "h3rt/kernels/attention/sage2_public/arguments.h"

namespace h3rt {

// The running maximum, the denominator of this lane's columns, and the factor of this epoch.
struct RowState {
  float m;
  float d;
  float a;
};

__device__ __forceinline__ RowState FreshRow() {
  return {device::FromBits(exact::kMasked), 1.0f, 1.0f};
}

// `top` is the largest score of the lane's columns, `scale` what scores are multiplied by.
__device__ __forceinline__ void RaiseMaximum(float top, float scale, RowState& row) {
  float m = device::FmaFtz(top, scale, device::FromBits(exact::kMinusOffset));
  m = device::MaxFtz(m, __shfl_xor_sync(0xffffffffu, m, 1));
  m = device::MaxFtz(m, __shfl_xor_sync(0xffffffffu, m, 2));
  m = device::MaxFtz(row.m, m);
  row.a = device::Ex2Ftz(device::SubFtz(row.m, m));
  row.m = m;
}

// The sum over the four lanes of a row, in the contract's order.
__device__ __forceinline__ float SumOfLanes(float d) {
  d = device::AddFtz(d, __shfl_xor_sync(0xffffffffu, d, 1));
  return device::AddFtz(d, __shfl_xor_sync(0xffffffffu, d, 2));
}

__device__ __forceinline__ uint32_t Narrow(float value, bool f16) {
  return f16 ? device::ToF16(value) : device::ToBf16(value);
}

// Two neighbouring channels of one row of the output; channels that padding added are left out.
__device__ __forceinline__ void StorePair(const Sage2Arguments& args, uint16_t* row, int channel,
                                          float low, float high) {
  const uint32_t first = Narrow(low, args.f16);
  const uint32_t second = Narrow(high, args.f16);
  if (args.pairs) {
    if (channel < args.head_dim) {
      *reinterpret_cast<uint32_t*>(row + channel) = first | (second << 16);
    }
    return;
  }
  if (channel < args.head_dim) row[channel] = static_cast<uint16_t>(first);
  if (channel + 1 < args.head_dim) row[channel + 1] = static_cast<uint16_t>(second);
}

__device__ __forceinline__ uint16_t* OutputRow(const Sage2Arguments& args, int64_t head,
                                               int64_t row) {
  return static_cast<uint16_t*>(args.o.data) + head / args.q_heads * args.o.batch_stride +
         head % args.q_heads * args.o.head_stride + row * args.o.row_stride;
}

// The logarithm of the sum of a finished row, and what is captured of its end.
template <bool kCapture>
__device__ __forceinline__ void StoreEnd(const Sage2Arguments& args, int64_t head, int64_t row,
                                         float m, float d, float r) {
  const int64_t at = head * args.q_len + row;
  const float lse2 = device::AddFtz(device::Lg2Ftz(d), m);
  const float lse = device::MulFtz(lse2, device::FromBits(exact::kLn2));
  if (args.lse_raw != nullptr) args.lse_raw[at] = lse;
  if (args.lse != nullptr) args.lse[at] = lse;
  if constexpr (kCapture) {
    if (args.capture.d != nullptr) args.capture.d[at] = d;
    if (args.capture.r != nullptr) args.capture.r[at] = r;
    if (args.capture.lse2 != nullptr) args.capture.lse2[at] = lse2;
  }
}

// Checkpoints. `at` counts rows over all heads; a null pointer is not captured.
template <typename T>
__device__ __forceinline__ void Keep(T* to, int64_t index, T value) {
  if (to != nullptr) to[index] = value;
}

__device__ __forceinline__ void KeepScales(const Sage2Arguments& args, int64_t at, int64_t epoch,
                                           int lane, float dq, float s) {
  const int64_t index = (at * args.epochs + epoch) * 4 + lane;
  Keep(args.capture.dq, index, dq);
  Keep(args.capture.s, index, s);
}

__device__ __forceinline__ void KeepRow(const Sage2Arguments& args, int64_t at, int64_t epoch,
                                        int lane, const RowState& row) {
  const int64_t index = at * args.epochs + epoch;
  Keep(args.capture.m, index, row.m);
  Keep(args.capture.a, index, row.a);
  Keep(args.capture.d_lane, index * 4 + lane, row.d);
}

}  // namespace h3rt
