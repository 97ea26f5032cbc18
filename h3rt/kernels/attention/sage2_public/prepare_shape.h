// Index arithmetic of preparation: plain functions, the same on the host and in device code.
#pragma once

#include <cstdint>

#include "h3rt/kernels/attention/exact/contract.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt::exact {

// Channels of one 16-byte load.
inline constexpr int kOctet = 8;
// Rows that the threads of a CTA hold at once: 2 D threads, one octet each.
inline constexpr int kRowStep = 16;
// Octets a thread holds of one block of kRowPad rows, kRowStep rows apart.
inline constexpr int kRowsAThread = static_cast<int>(kRowPad) / kRowStep;

H3RT_HOST_DEVICE constexpr int PrepareThreads(int dim) { return 2 * dim; }

// Whether preparation and attention take the problem: the parts of CheckExactProblem that need no
// message. Offsets that leave 63 bits are not looked for.
constexpr bool ExactTakes(const ExactProblem& p) {
  if (p.path > ExactPath::kB || p.granularity > ExactGranularity::kPerThread) return false;
  if (p.type > ExactType::kF16 || p.padded_dim() == 0) return false;
  if (p.batch < 0 || p.q_heads < 0 || p.k_heads < 0 || p.q_len < 0 || p.k_len < 0) return false;
  if (p.k_heads == 0 ? p.q_heads != 0 : p.q_heads % p.k_heads != 0) return false;
  if (!(p.sm_scale > 1.8e-5f) || p.sm_scale > 3.4028234e38f) return false;
  if (p.batch > 0 && p.q_heads > 0 && p.q_len > 0) {
    if (p.q.data == nullptr || p.o.data == nullptr) return false;
  }
  if (p.batch > 0 && p.k_heads > 0 && p.k_len > 0) {
    if (p.k.data == nullptr || p.v.data == nullptr) return false;
  }
  return true;
}

// A tensor as device code reads it.
struct RowsView {
  const uint16_t* data = nullptr;
  int64_t batch_stride = 0;  // 0 where the extent is below 2
  int64_t row_stride = 0;
  int64_t head_stride = 0;
  int64_t len = 0;
  int64_t heads = 0;
  int head_dim = 0;
  bool vector = false;  // every octet of every row lies on 16 bytes
};

constexpr bool VectorLoads(uint64_t address, const RowsView& v) {
  const int64_t strides = v.batch_stride | v.row_stride | v.head_stride;
  return address % 16 == 0 && v.head_dim % kOctet == 0 && strides % kOctet == 0;
}

inline RowsView ViewOf(const ExactInput& in, int64_t batch, int64_t len, int64_t heads,
                       int64_t head_dim) {
  RowsView v;
  v.data = static_cast<const uint16_t*>(in.data);
  v.batch_stride = batch < 2 ? 0 : in.batch_stride;
  v.row_stride = len < 2 ? 0 : in.row_stride;
  v.head_stride = heads < 2 ? 0 : in.head_stride;
  v.len = len;
  v.heads = heads;
  v.head_dim = static_cast<int>(head_dim);
  v.vector = VectorLoads(reinterpret_cast<uintptr_t>(in.data), v);
  return v;
}

// Grids are flat: x goes to 2^31 - 1, y and z would end at 65535. Preparation has one CTA an item:
// each writes 8 KiB at least, so that no memory holds the outputs of more. Elsewhere CTAs stride.
inline constexpr int64_t kMostCtas = (int64_t{1} << 31) - 1;
constexpr bool OneGrid(int64_t items) { return items <= kMostCtas; }
constexpr unsigned FlatGrid(int64_t items) {
  return static_cast<unsigned>(items < kMostCtas ? items : kMostCtas);
}

// Work item -> block of rows of a (batch, head). Heads go fastest: in NHD the rows of neighbouring
// heads are neighbours in memory.
struct Place {
  int64_t batch = 0;
  int64_t block = 0;
  int64_t head = 0;
};
H3RT_HOST_DEVICE constexpr Place PlaceOf(int64_t item, int64_t blocks, int64_t heads) {
  if (item <= INT32_MAX && blocks <= INT32_MAX && heads <= INT32_MAX) {  // the fast division
    const auto i = static_cast<uint32_t>(item);
    const auto b = static_cast<uint32_t>(blocks);
    const auto h = static_cast<uint32_t>(heads);
    return {i / h / b, i / h % b, i % h};
  }
  return {item / heads / blocks, item / heads % blocks, item % heads};
}

// Rows i and j of an aligned block of kRowPad rows share a scale when i & ~mask == j & ~mask: the
// bits of a row's number that do not matter. Index of a row's scale: row >> span_bits and the
// class of the row within its span.
struct GroupShape {
  int mask = 0;
  int span_bits = 0;    // log2 of the rows of a warp (Q) or of a block (K)
  int classes = 1;      // groups a span
  int class_bits = 0;   // bits of the row that the class is read from, ...
  int class_shift = 0;  // ... without the lowest ones
  int64_t rows = 0;     // scales are stored for rows below this: the length up to whole tiles

  H3RT_HOST_DEVICE constexpr bool Leads(int64_t row) const {
    return row < rows && (row & mask) == 0;
  }
  H3RT_HOST_DEVICE constexpr int64_t ScaleIndex(int64_t row) const {
    return (row >> span_bits) * classes + ((row & class_bits) >> class_shift);
  }
};
constexpr GroupShape GroupShapeOf(const Geometry& g, ExactGranularity granularity, bool is_k,
                                  int64_t len) {
  GroupShape s;
  const int span = is_k ? g.cta_k : g.warp_q;
  while ((1 << s.span_bits) < span) ++s.span_bits;
  s.mask = span - 1;
  s.rows = RoundUp(len, is_k ? g.cta_k : g.cta_q);
  if (granularity == ExactGranularity::kPerThread) {
    s.class_shift = is_k ? 1 : 0;
    s.class_bits = is_k ? 6 : 7;
    s.classes = is_k ? 4 : 8;
    s.mask &= ~s.class_bits;
  }
  return s;
}

// V: a CTA turns kRowPad tokens of all channels round. A word is four tokens of one channel that
// lie together in the permuted order; word w of a tile is word w % 4 of its group of 16 tokens.
inline constexpr int kWordsAGroup = 4;
inline constexpr int kTileWords = static_cast<int>(kRowPad) / 4;

// Token of byte `byte` of word `word`, within the group of 16.
H3RT_HOST_DEVICE constexpr int WordToken(int word, int byte) { return VToken(4 * word + byte); }

// What a thread packs: octet `octet`, word `word` of kTasks groups, kTaskGroups apart.
inline constexpr int kTasks = 2;
inline constexpr int kTaskGroups = 4;
struct VTask {
  int octet = 0;
  int word = 0;
  int group = 0;
};
H3RT_HOST_DEVICE constexpr VTask VTaskOf(int thread, int dim) {
  const int halves = dim / 64;
  const int warp = thread / 32;
  return {thread % 8 + 8 * (warp % halves), thread % 32 / 8, warp / halves};
}
// Rows of a tensor from `row` on, `most` at most.
H3RT_HOST_DEVICE constexpr int Have(int64_t len, int64_t row, int64_t most) {
  const int64_t have = len - row < most ? len - row : most;
  return static_cast<int>(have < 0 ? 0 : have);
}
// Rows of the octets of a thread, from its first on: of V (bytes of a word are tokens 0, 1, 8, 9
// after its first), and of every kRowStep-th row.
struct TaskSteps {
  H3RT_HOST_DEVICE static constexpr int At(int i) {
    return i / 4 * 16 * kTaskGroups + WordToken(0, i % 4);
  }
};
struct RowSteps {
  H3RT_HOST_DEVICE static constexpr int At(int i) { return i * kRowStep; }
};
// Where word `word` of group `group` of a channel lies in shared memory, in words. The group is
// exchanged by octet: the 32 stores of a warp, and 8 neighbouring 16-byte loads, meet 32 banks.
H3RT_HOST_DEVICE constexpr int VSharedWord(int channel, int group, int word) {
  return channel * kTileWords + ((group ^ (channel / kOctet % 8)) * kWordsAGroup) + word;
}

// float32 bits, 2^-100: the scale of a channel of V that is no smaller gives its maximum back.
inline constexpr uint32_t kScaleSafe = 0x0d800000u;

// After three exchanges between the 8 lanes of an aligned group of octets, which of its
// kRowsAThread rows the thread of octet `octet` holds the maximum of.
H3RT_HOST_DEVICE constexpr int HeldRow(int octet) { return octet % 8; }

}  // namespace h3rt::exact
