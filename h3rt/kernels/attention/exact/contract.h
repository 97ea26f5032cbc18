// The exact attention contract in numbers: paths, tiles, scale groups, the order of V tokens, and
// the constants, as float32 bits. Plain integers, the same on the host and in device code.
// research/vortex_exact_attention/NUMERICAL_CONTRACT.md is the text.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define H3RT_HOST_DEVICE __host__ __device__
#else
#define H3RT_HOST_DEVICE
#endif

namespace h3rt {

// Which sums of P V a kernel forms. A16, A32 and A1 take mma.sync; B takes wgmma.
//   kA16  float16 over 64 keys, then float32    ("fp32+fp16" of the public library's sm89 kernels)
//   kA32  tensor-core float32 over 64 keys, then float32                        ("fp32+fp32")
//   kA1   tensor-core float32 over all keys                                     ("fp32")
//   kB    tensor-core float32 over 128 keys, then float32                       (its sm90 kernel)
enum class ExactPath : uint8_t { kA16, kA32, kA1, kB };

// Which elements of Q and K share an INT8 scale.
enum class ExactGranularity : uint8_t { kPerWarp, kPerThread };

enum class ExactType : uint8_t { kBf16, kF16 };

namespace exact {

// float32 bit patterns.
inline constexpr uint32_t kLog2E = 0x3fb8aa3bu;
inline constexpr uint32_t kMinusOffset = 0xc10ce979u;  // -8.807: P peaks at 2^8.807 = 447.9
inline constexpr uint32_t kMasked = 0xca989680u;       // -5000000: a masked score, and the first m
inline constexpr uint32_t kOver127 = 0x3c010204u;      // 1/127
inline constexpr uint32_t kEpsilon = 0x33d6bf95u;      // 1e-7
inline constexpr uint32_t k127 = 0x42fe0000u;
inline constexpr uint32_t kLn2 = 0x3f317218u;   // 1/1.44269504: log2 to natural logarithm
inline constexpr uint32_t k448 = 0x43e00000u;   // scale_max of V on A32, A1, B
inline constexpr uint32_t k2p25 = 0x40100000u;  // scale_max of V on A16

inline constexpr int kThreads = 128;  // of a CTA of the published schedule
inline constexpr int kWarps = 4;
// Sequences of the prepared buffers are padded to this with zeros, whatever the path.
inline constexpr int64_t kRowPad = 128;

struct Geometry {
  int cta_q = 0;       // query rows a tile
  int cta_k = 0;       // keys an epoch, and keys a group of K scales
  int warp_q = 0;      // query rows a warp, and a group of Q scales
  int tail = 0;        // last epochs whose scores are dequantised before the maximum
  int v_pad = 0;       // the contract pads V to a multiple of this
  uint32_t v_max = 0;  // float32 bits of scale_max
};

H3RT_HOST_DEVICE constexpr Geometry GeometryOf(ExactPath path) {
  if (path == ExactPath::kB) return {64, 128, 16, 1, 128, k448};
  return {128, 64, 32, 2, 64, path == ExactPath::kA16 ? k2p25 : k448};
}

H3RT_HOST_DEVICE constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
H3RT_HOST_DEVICE constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// 64 or 128; 0 for a head dimension that the contract does not take (below 1, above 128).
H3RT_HOST_DEVICE constexpr int PaddedHeadDim(int64_t head_dim) {
  return head_dim < 1 || head_dim > 128 ? 0 : head_dim <= 64 ? 64 : 128;
}

// Scales a (batch, head): query tiles are padded to cta_q, key blocks to cta_k.
H3RT_HOST_DEVICE constexpr int64_t QScales(const Geometry& g, ExactGranularity granularity,
                                           int64_t q_len) {
  const int64_t warps = CeilDiv(q_len, g.cta_q) * (g.cta_q / g.warp_q);
  return granularity == ExactGranularity::kPerWarp ? warps : warps * 8;
}
H3RT_HOST_DEVICE constexpr int64_t KScales(const Geometry& g, ExactGranularity granularity,
                                           int64_t k_len) {
  const int64_t blocks = CeilDiv(k_len, g.cta_k);
  return granularity == ExactGranularity::kPerWarp ? blocks : blocks * 4;
}
// Index of the scale of a row or key within its (batch, head).
H3RT_HOST_DEVICE constexpr int64_t QScaleIndex(const Geometry& g, ExactGranularity granularity,
                                               int64_t row) {
  const int64_t warp = row / g.warp_q;
  return granularity == ExactGranularity::kPerWarp ? warp : warp * 8 + row % 8;
}
H3RT_HOST_DEVICE constexpr int64_t KScaleIndex(const Geometry& g, ExactGranularity granularity,
                                               int64_t key) {
  const int64_t block = key / g.cta_k;
  return granularity == ExactGranularity::kPerWarp ? block : block * 4 + key % 8 / 2;
}

// Epochs of query tile `tile`: keys are visited cta_k at a time, in ascending order, from 0.
// Causal: key c is seen by row r when c <= r, whatever the lengths.
H3RT_HOST_DEVICE constexpr int64_t Epochs(const Geometry& g, int64_t tile, int64_t k_len,
                                          bool causal) {
  const int64_t end = (tile + 1) * g.cta_q;
  return CeilDiv(causal && end < k_len ? end : k_len, g.cta_k);
}

// Where token r of an aligned group of 16 lies in the permuted V, and which token lies at position
// p: byte 4t+s of the group is the token whose probability sits in byte s of lane t's A fragment.
H3RT_HOST_DEVICE constexpr int VPosition(int token) {
  return 2 * (token / 8) + 4 * (token / 2 % 4) + token % 2;
}
H3RT_HOST_DEVICE constexpr int VToken(int position) {
  return 8 * (position / 2 % 2) + 2 * (position / 4) + position % 2;
}

}  // namespace exact
}  // namespace h3rt
