// The second pass of preparation: INT8 codes of Q and K, e4m3 codes of V. One CTA takes kRowPad
// rows of one head and holds them in registers between the maximum and the codes, so that each
// input is read once.
#pragma once

#include <cstdint>

#include "h3rt/kernels/attention/sage2_public/prepare_kernel.cuh"

namespace h3rt {
namespace exact {

// Rows whose octets one CTA holds.
inline constexpr int kBlock = static_cast<int>(kRowPad);

// Of kRowsAThread maxima, one a row, the maximum over the octets of row HeldRow(octet): each
// exchange halves the rows that a thread keeps.
__device__ __forceinline__ float RowMaximum(const float (&m)[kRowsAThread], int octet,
                                            int octet_bits) {
  constexpr uint32_t kAll = 0xffffffffu;
  float four[4];
  float two[2];
  const bool upper4 = (octet & 4) != 0;
  const bool upper2 = (octet & 2) != 0;
  const bool upper1 = (octet & 1) != 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float kept = upper4 ? m[4 + i] : m[i];
    const float given = upper4 ? m[i] : m[4 + i];
    four[i] = device::MaxFtz(kept, __shfl_xor_sync(kAll, given, 4));
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float kept = upper2 ? four[2 + i] : four[i];
    const float given = upper2 ? four[i] : four[2 + i];
    two[i] = device::MaxFtz(kept, __shfl_xor_sync(kAll, given, 2));
  }
  const float kept = upper1 ? two[1] : two[0];
  const float given = upper1 ? two[0] : two[1];
  float most = device::MaxFtz(kept, __shfl_xor_sync(kAll, given, 1));
  if (octet_bits == 4) most = device::MaxFtz(most, __shfl_xor_sync(kAll, most, 8));
  return most;
}

// Makes the compiler take the octet for another: what was derived from it before is not kept in
// registers until it is wanted again, where deriving it again is cheaper.
__device__ __forceinline__ void Renew(Octet& x) {
#pragma unroll
  for (int c = 0; c < 4; ++c) asm volatile("" : "+r"(x.pairs[c]));
}

// Half away from zero, as one addition rounded to float32.
__device__ __forceinline__ int32_t AwayFromZero(float y) {
  const float half = device::FromBits((__float_as_uint(y) & 0x80000000u) | 0x3f000000u);
  return device::TruncateToInt(device::AddFtz(y, half));
}

}  // namespace exact

struct ExactQuantiseArguments {
  exact::RowsView rows;
  const uint16_t* mean;  // [batch, heads, dim]; null: nothing is taken away
  int8_t* codes;
  float* scales;
  uint64_t* not_finite;
  int64_t blocks;  // of kRowPad rows
  int64_t scales_a_head;
  exact::GroupShape group;
  int dim;
  int octet_bits;
};

// kRounded: the arithmetic of per_thread, which rounds smoothed K to its type and adds an epsilon
// to the scale; else that of per_warp. The contract's per_thread operations keep subnormals; here
// they are flushed, which changes no code and no scale: beside the epsilon of 1e-7 a subnormal is
// nothing. Groups are GroupShape's.
template <ExactType kType, bool kRounded>
__global__ void __launch_bounds__(256, 3) exact_quantise_kernel(ExactQuantiseArguments a) {
  constexpr int kRows = exact::kRowsAThread;
  constexpr uint32_t kAll = 0xffffffffu;
  __shared__ float row_max[exact::kBlock];
  __shared__ float inverse[exact::kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  const int octet = thread & ((1 << a.octet_bits) - 1);
  const int lane_row = thread >> a.octet_bits;  // 0..kRowStep - 1
  const int64_t item = blockIdx.x;
  const exact::Place place = exact::PlaceOf(item, a.blocks, a.rows.heads);
  const int64_t head = place.batch * a.rows.heads + place.head;
  const int64_t first = place.block * exact::kBlock;
  const int64_t row = first + lane_row;
  exact::Octet x[kRows];
  const int have = exact::Have(a.rows.len, row, exact::kBlock);
  exact::LoadRows<exact::RowSteps>(
      a.rows, exact::OctetAt(a.rows, place.batch, place.head, row, octet), have, octet, 0, x);
  exact::Octet mean;
  mean.vector = make_uint4(0, 0, 0, 0);
  if (a.mean != nullptr) {
    mean.vector = __ldg(reinterpret_cast<const uint4*>(a.mean + head * a.dim) + octet);
  }
  uint32_t bad = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) bad |= exact::NotFiniteBits<kType>(x[i]);
  if (bad != 0) {
#pragma unroll 1
    for (int i = 0; i < kRows; ++i) {
      exact::ReportNotFinite<kType>(a.rows, place.batch, place.head, row + exact::RowSteps::At(i),
                                    octet, a.not_finite);
    }
  }
  float m[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const bool inside = exact::RowSteps::At(i) < have;
    if constexpr (kRounded) {
      uint32_t most = 0;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        uint32_t pair = x[i].pairs[c];
        if (a.mean != nullptr) {
          const float low =
              device::SubFtz(exact::WidenLow<kType>(pair), exact::WidenLow<kType>(mean.pairs[c]));
          const float high =
              device::SubFtz(exact::WidenHigh<kType>(pair), exact::WidenHigh<kType>(mean.pairs[c]));
          pair = inside ? exact::Narrow<kType>(low, high) : 0u;
          x[i].pairs[c] = pair;
        }
        most = exact::MaxMagnitude<kType>(most, pair);
      }
      m[i] = device::MaxFtz(device::AbsFtz(exact::WidenLow<kType>(most)),
                            device::AbsFtz(exact::WidenHigh<kType>(most)));
    } else {
      float most = 0.0f;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float low = device::SubFtz(exact::WidenLow<kType>(x[i].pairs[c]),
                                         exact::WidenLow<kType>(mean.pairs[c]));
        const float high = device::SubFtz(exact::WidenHigh<kType>(x[i].pairs[c]),
                                          exact::WidenHigh<kType>(mean.pairs[c]));
        most = device::MaxFtz(most, device::AbsFtz(low));
        most = device::MaxFtz(most, device::AbsFtz(high));
      }
      m[i] = inside ? most : 0.0f;
    }
  }
  const float held = exact::RowMaximum(m, octet, a.octet_bits);
  if (octet < kRows) row_max[lane_row + exact::HeldRow(octet) * exact::kRowStep] = held;
  __syncthreads();
  // From here thread t is row t, for t below kBlock.
  const bool is_row = thread < exact::kBlock;
  float most = 0.0f;
  if (is_row) {  // whole warps
    most = row_max[thread];
#pragma unroll
    for (int bit = 1; bit < 32; bit *= 2) {
      if ((a.group.mask & bit) == 0) continue;
      most = device::MaxFtz(most, __shfl_xor_sync(kAll, most, bit));
    }
  }
  if (a.group.mask >= 32) {
    if (is_row) row_max[thread] = most;  // each warp rewrites what it alone has read
    __syncthreads();
    if (is_row) {
      most = device::MaxFtz(most, row_max[thread ^ 32]);
      if ((a.group.mask & 64) != 0) {
        most = device::MaxFtz(most, row_max[thread ^ 64]);
        most = device::MaxFtz(most, row_max[thread ^ 96]);
      }
    }
  }
  if (is_row) {
    const float epsilon = device::FromBits(exact::kEpsilon);
    const float over_127 = device::FromBits(exact::kOver127);
    float scale;
    if constexpr (kRounded) {
      scale = device::FmaFtz(most, over_127, epsilon);
      inverse[thread] = device::RcpFtz(scale);
    } else {
      most = device::MaxFtz(most, epsilon);
      scale = device::MulFtz(most, over_127);
      inverse[thread] = device::MulFtz(device::RcpFtz(most), device::FromBits(exact::k127));
    }
    if (a.group.Leads(first + thread)) {
      a.scales[head * a.scales_a_head + a.group.ScaleIndex(first + thread)] = scale;
    }
  }
  __syncthreads();
  int8_t* const codes =
      a.codes +
      ((head * a.blocks + place.block) * exact::kBlock + lane_row) * static_cast<int64_t>(a.dim) +
      octet * exact::kOctet;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const bool inside = exact::RowSteps::At(i) < have;
    exact::Renew(x[i]);
    if constexpr (!kRounded) exact::Renew(mean);
    const float factor = inverse[lane_row + i * exact::kRowStep];
    int32_t q[exact::kOctet];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float low = exact::WidenLow<kType>(x[i].pairs[c]);
      const float high = exact::WidenHigh<kType>(x[i].pairs[c]);
      if constexpr (kRounded) {
        q[2 * c] = exact::AwayFromZero(device::MulFtz(low, factor));
        q[2 * c + 1] = exact::AwayFromZero(device::MulFtz(high, factor));
      } else {
        const float from_low = device::SubFtz(low, exact::WidenLow<kType>(mean.pairs[c]));
        const float from_high = device::SubFtz(high, exact::WidenHigh<kType>(mean.pairs[c]));
        q[2 * c] = device::RoundToInt(device::MulFtz(from_low, factor));
        q[2 * c + 1] = device::RoundToInt(device::MulFtz(from_high, factor));
      }
    }
    uint2 packed =
        make_uint2(device::PackS8(q[0], q[1], q[2], q[3]), device::PackS8(q[4], q[5], q[6], q[7]));
    if (!inside) packed = make_uint2(0, 0);
    *reinterpret_cast<uint2*>(codes + i * exact::kRowStep * a.dim) = packed;
  }
}

struct ExactVArguments {
  exact::RowsView v;
  const float* v_scale;
  const float* partials;
  uint8_t* codes;
  uint64_t* not_finite;
  int64_t blocks;         // of kRowPad tokens
  int64_t chunks;         // of kMeanChunk tokens
  int64_t contract_rows;  // tokens that the contract quantises, its padding too
  uint32_t v_max;
  int dim;
  bool zero_nan;
};

namespace exact {

// The maximum of |v| of a channel, from its scale RN(maximum * RN(1 / v_max)). The maximum has 11
// bits at most and the error of scale * v_max is below 2^-21 of it, so rounding that to the type
// gives the maximum back; but not where the scale was flushed or lost bits: then from the partials.
template <ExactType kType>
__device__ __forceinline__ float ChannelMaximum(float scale, uint32_t v_max, const float* partials,
                                                int64_t chunks, int dim) {
  if (__float_as_uint(scale) >= kScaleSafe) {
    const float near = device::MulFtz(scale, device::FromBits(v_max));
    return WidenLow<kType>(Narrow<kType>(near, near));
  }
  float most = 0.0f;
#pragma unroll 1
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    most = device::MaxFtz(most, __ldg(partials + chunk * 2 * dim));
  }
  return most;
}

}  // namespace exact

// e4m3 codes of V: token and channel exchanged, tokens in permuted order, by way of shared memory.
// 2 D threads; see VTask.
template <ExactType kType>
__global__ void __launch_bounds__(256, 3) exact_quantise_v_kernel(ExactVArguments a) {
  __shared__ __align__(16) uint32_t words[128 * exact::kTileWords];
  __shared__ float inverse[128];
  __shared__ uint32_t keep[128];  // of the bits of a channel's codes: none where it is all zeros
  const int thread = static_cast<int>(threadIdx.x);
  const exact::VTask task = exact::VTaskOf(thread, a.dim);
  const int64_t item = blockIdx.x;
  const exact::Place place = exact::PlaceOf(item, a.blocks, a.v.heads);
  const int64_t head = place.batch * a.v.heads + place.head;
  const int64_t first = place.block * exact::kBlock + task.group * 16;
  const int64_t row = first + exact::WordToken(task.word, 0);
  exact::Octet x[4 * exact::kTasks];
  exact::LoadRows<exact::TaskSteps>(a.v,
                                    exact::OctetAt(a.v, place.batch, place.head, row, task.octet),
                                    exact::Have(a.v.len, row, exact::kBlock), task.octet, 0, x);
  if (thread < a.dim) {
    float most = 0.0f;
    if (thread < a.v.head_dim) {
      most = exact::ChannelMaximum<kType>(a.v_scale[head * a.dim + thread], a.v_max,
                                          a.partials + (head * a.chunks * 2 + 1) * a.dim + thread,
                                          a.chunks, a.dim);
    }
    inverse[thread] = device::MulFtz(device::RcpFtz(most), device::FromBits(a.v_max));
    keep[thread] = __float_as_uint(most) != 0 || a.zero_nan ? 0xffffffffu : 0u;
  }
  __syncthreads();
  uint32_t bad = 0;
#pragma unroll
  for (int i = 0; i < 4 * exact::kTasks; ++i) bad |= exact::NotFiniteBits<kType>(x[i]);
  if (bad != 0) {
#pragma unroll 1
    for (int i = 0; i < 4 * exact::kTasks; ++i) {
      exact::ReportNotFinite<kType>(a.v, place.batch, place.head, row + exact::TaskSteps::At(i),
                                    task.octet, a.not_finite);
    }
  }
#pragma unroll
  for (int j = 0; j < exact::kTasks; ++j) {
    const int group = task.group + j * exact::kTaskGroups;
    const bool inside = first + j * exact::kTaskGroups * 16 < a.contract_rows;
#pragma unroll
    for (int e = 0; e < exact::kOctet; ++e) {
      const int channel = task.octet * exact::kOctet + e;
      const float factor = inverse[channel];
      float y[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const uint32_t pair = x[4 * j + b].pairs[e / 2];
        const float value =
            e % 2 == 0 ? exact::WidenLow<kType>(pair) : exact::WidenHigh<kType>(pair);
        y[b] = device::MulFtz(value, factor);
      }
      const uint32_t word = device::PackE4m3(y[0], y[1], y[2], y[3]) & keep[channel];
      words[exact::VSharedWord(channel, group, task.word)] = inside ? word : 0u;
    }
  }
  __syncthreads();
  const int channel = thread / 8;
  const int rows = exact::PrepareThreads(a.dim) / 8;  // channels a pass
  const int64_t padded = a.blocks * exact::kBlock;
  uint8_t* const to =
      a.codes + (head * a.dim + channel) * padded + place.block * exact::kBlock + thread % 8 * 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int c = channel + i * rows;
    *reinterpret_cast<uint4*>(to + i * rows * padded) =
        *reinterpret_cast<const uint4*>(words + exact::VSharedWord(c, thread % 8, 0));
  }
}

}  // namespace h3rt
