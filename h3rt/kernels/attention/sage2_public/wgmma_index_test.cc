// The warpgroup kernel's tiles, descriptors and registers, against the definitions of the copy
// engine's swizzle and of the instruction, both written out here a second time.
#include "h3rt/kernels/attention/sage2_public/wgmma_index.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "h3rt/kernels/attention/sage2_public/tile_index.h"

namespace h3rt {
namespace {

constexpr int kLanes = 32;
constexpr int kRows = 64;
constexpr int kKeys = 128;
constexpr int kUnwritten = 1 << 20;  // no byte of a tile

size_t Index(int64_t i) { return static_cast<size_t>(i); }

// Accumulators of m64nNk32: element e of a lane of a warp.
int SumRow(int warp, int lane, int e) { return 16 * warp + lane / 4 + 8 * (e / 2 % 2); }
int SumColumn(int lane, int e) { return 8 * (e / 4) + 2 * (lane % 4) + e % 2; }
// Its A operand in registers, bytes: row and depth of byte `byte` of word `word`.
int ARow(int warp, int lane, int word) { return 16 * warp + lane / 4 + 8 * (word % 2); }
int ADepth(int lane, int word, int byte) { return 16 * (word / 2) + 4 * (lane % 4) + byte; }

// The swizzle of an address: over 128 bytes, bits 4 to 6 are mixed with bits 7 to 9; over 64, bits
// 4 and 5 with bits 7 and 8.
uint32_t Swizzled(uint32_t address, int row_bytes) {
  const uint32_t mask = row_bytes == 128 ? 7 : 3;
  return address ^ ((address >> 7 & mask) << 4);
}

// Shared memory that the copy engine fills with tiles and the instruction reads by descriptor.
class Shared {
 public:
  explicit Shared(uint32_t bytes) : bytes_(bytes, kUnwritten) {}

  template <typename Value>
  void Copy(uint32_t to, int rows, int row_bytes, Value value) {
    for (int row = 0; row < rows; ++row) {
      for (int byte = 0; byte < row_bytes; ++byte) {
        const uint32_t address = to + static_cast<uint32_t>(row * row_bytes + byte);
        int& cell = bytes_.at(Swizzled(address, row_bytes));
        EXPECT_EQ(cell, kUnwritten) << "two bytes of tiles at one address";
        cell = value(row, byte);
      }
    }
  }

  // Row `row`, depth `depth` (0..31) of the operand that a K-major descriptor names.
  int Read(uint64_t descriptor, int row, int depth) const {
    const auto start = static_cast<uint32_t>(descriptor & 0x3fff) << 4;
    const auto eight_rows = static_cast<uint32_t>(descriptor >> 32 & 0x3fff) << 4;
    const auto kind = static_cast<uint32_t>(descriptor >> 62);
    EXPECT_EQ(descriptor >> 49 & 7, 0u) << "tiles begin where the swizzle's pattern does";
    EXPECT_TRUE(kind == 1 || kind == 2) << kind;  // 128 bytes, 64 bytes
    const int row_bytes = kind == 1 ? 128 : 64;
    const uint32_t address = start + static_cast<uint32_t>(row / 8) * eight_rows +
                             static_cast<uint32_t>(row % 8 * row_bytes + depth);
    return bytes_.at(Swizzled(address, row_bytes));
  }

 private:
  std::vector<int> bytes_;
};

int Noise(int tensor, int row, int column) {
  const uint32_t mixed = static_cast<uint32_t>(tensor * 7919 + row * 131 + column) * 2654435761u;
  return static_cast<int>(mixed >> 24) - 128;
}
int Q(int row, int channel) { return Noise(1, row, channel); }
int K(int key, int channel) { return Noise(2, key, channel); }
int V(int key, int channel) { return Noise(3, key, channel); }
int P(int row, int key) { return Noise(4, row, key); }

// All tiles of an epoch, V in the permuted order of its tokens, from address `base`.
template <int kDim>
Shared Filled(uint32_t base) {
  using Tiles = wgmma_index::Tiles<kDim>;
  Shared shared(base + Tiles::kBytes);
  shared.Copy(base, kRows, kDim, Q);
  shared.Copy(base + Tiles::kKAt, kKeys, kDim, K);
  shared.Copy(base + Tiles::kVAt, kDim, wgmma_index::kVRowBytes, [](int channel, int position) {
    return V(position / 16 * 16 + exact::VToken(position % 16), channel);
  });
  return shared;
}

TEST(WgmmaIndexTest, EveryElementOfATileIsHeldOnce) {
  for (const int columns : {64, 128}) {
    std::set<std::pair<int64_t, int>> held;
    for (int warp = 0; warp < exact::kWarps; ++warp) {
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int e = 0; e < columns / 2; ++e) {
          const int64_t row = wgmma_index::WarpRow(0, warp) + tile_index::Row(lane, e);
          const int column = tile_index::Column(lane, e);
          EXPECT_EQ(row, SumRow(warp, lane, e));
          EXPECT_EQ(column, SumColumn(lane, e));
          ASSERT_TRUE(row >= 0 && row < kRows && column >= 0 && column < columns);
          EXPECT_TRUE(held.insert({row, column}).second) << row << ", " << column;
        }
      }
    }
    EXPECT_EQ(held.size(), Index(kRows * columns));
  }
}

// The kernel keeps one row a lane, and finds the other eight below.
TEST(WgmmaIndexTest, ALaneHasTwoRows) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int e = 0; e < 64; ++e) {
      EXPECT_EQ(tile_index::Row(lane, e), tile_index::Row(lane, 0) + 8 * tile_index::Half(e));
    }
  }
}

TEST(WgmmaIndexTest, TheSwizzlePermutesTheBytesOfATile) {
  for (const int row_bytes : {64, 128}) {
    std::set<uint32_t> met;
    const uint32_t bytes = 128u * static_cast<uint32_t>(row_bytes);
    for (uint32_t address = 0; address < bytes; ++address) {
      const uint32_t to = Swizzled(address, row_bytes);
      EXPECT_EQ(Swizzled(to, row_bytes), address);
      EXPECT_EQ(to % 16, address % 16);
      EXPECT_LT(to, bytes);
      met.insert(to);
    }
    EXPECT_EQ(met.size(), bytes);
  }
}

// Sums instead of masks: no part of a descriptor reaches into another, wherever a tile lies.
TEST(WgmmaIndexTest, DescriptorsHaveTheirFields) {
  constexpr uint32_t kSharedWindow = 1 << 18;
  for (const int row_bytes : {64, 128}) {
    for (uint32_t address = 0; address < kSharedWindow; address += wgmma_index::kTileAlignment) {
      for (int step = 0; step < row_bytes / wgmma_index::kStepBytes; ++step) {
        const uint64_t made = wgmma_index::Operand(row_bytes, address, step);
        const uint64_t start = address + static_cast<uint32_t>(step * wgmma_index::kStepBytes);
        const uint64_t kind = row_bytes == 128 ? 1 : 2;
        const auto eight_rows = static_cast<uint64_t>(8 * row_bytes);
        EXPECT_EQ(made, start / 16 | uint64_t{1} << 16 | eight_rows / 16 << 32 | kind << 62);
      }
    }
  }
}

template <int kDim>
void ExpectOperandsOfScores() {
  for (const uint32_t base : {0u, 1024u, 7168u}) {
    const Shared shared = Filled<kDim>(base);
    for (int step = 0; step < kDim / wgmma_index::kStepBytes; ++step) {
      const uint64_t q = wgmma_index::Operand(kDim, base, step);
      const uint64_t k = wgmma_index::Operand(kDim, base + wgmma_index::Tiles<kDim>::kKAt, step);
      for (int depth = 0; depth < wgmma_index::kStepBytes; ++depth) {
        const int channel = step * wgmma_index::kStepBytes + depth;
        for (int row = 0; row < kRows; ++row) {
          ASSERT_EQ(shared.Read(q, row, depth), Q(row, channel)) << row << ", " << channel;
        }
        for (int key = 0; key < kKeys; ++key) {
          ASSERT_EQ(shared.Read(k, key, depth), K(key, channel)) << key << ", " << channel;
        }
      }
    }
  }
}

TEST(WgmmaIndexTest, DescriptorsOfScoresNameTheirRowsAndChannels) {
  ExpectOperandsOfScores<64>();
  ExpectOperandsOfScores<128>();
}

// A descriptor of the other swizzle, or one step further, must not pass.
TEST(WgmmaIndexTest, WrongDescriptorsAreSeen) {
  const Shared shared = Filled<128>(0);
  const uint64_t right = wgmma_index::Operand(128, 0, 1);
  const uint64_t other_swizzle = right ^ uint64_t { 3 } << 62;
  const uint64_t next_step = wgmma_index::Operand(128, 0, 2);
  for (const uint64_t wrong : {other_swizzle, next_step}) {
    int differing = 0;
    for (int row = 0; row < kRows; ++row) {
      for (int depth = 0; depth < wgmma_index::kStepBytes; ++depth) {
        differing += shared.Read(wrong, row, depth) != Q(row, 32 + depth) ? 1 : 0;
      }
    }
    EXPECT_GT(differing, kRows * wgmma_index::kStepBytes / 2);
  }
}

// P V as the kernel forms it, step by step: words of P as they are packed, against V by descriptor.
template <int kDim>
void ExpectProductOfValues() {
  constexpr uint32_t kBase = 1024;
  const Shared shared = Filled<kDim>(kBase);
  std::vector<int64_t> sums(Index(kRows * kDim), 0);
  std::vector<int> met(Index(kRows * kKeys), 0);
  for (int step = 0; step < kKeys / wgmma_index::kStepBytes; ++step) {
    const uint64_t v =
        wgmma_index::Operand(wgmma_index::kVRowBytes, kBase + wgmma_index::Tiles<kDim>::kVAt, step);
    for (int thread = 0; thread < exact::kThreads; ++thread) {
      const int warp = thread / kLanes;
      const int lane = thread % kLanes;
      for (int word = 0; word < 4; ++word) {
        const int packed = 4 * step + word;
        for (int byte = 0; byte < 4; ++byte) {
          const int e = tile_index::PackedElement(packed / 2, packed % 2, byte);
          const auto row =
              static_cast<int>(wgmma_index::WarpRow(0, warp)) + tile_index::Row(lane, e);
          const int key = tile_index::Column(lane, e);
          ASSERT_EQ(ARow(warp, lane, word), row);
          ++met[Index(row * kKeys + key)];
          const int depth = ADepth(lane, word, byte);
          for (int channel = 0; channel < kDim; ++channel) {
            sums[Index(row * kDim + channel)] += P(row, key) * shared.Read(v, channel, depth);
          }
        }
      }
    }
  }
  for (const int times : met) ASSERT_EQ(times, 1);
  for (int row = 0; row < kRows; ++row) {
    for (int channel = 0; channel < kDim; ++channel) {
      int64_t wanted = 0;
      for (int key = 0; key < kKeys; ++key) wanted += P(row, key) * V(key, channel);
      ASSERT_EQ(sums[Index(row * kDim + channel)], wanted) << row << ", " << channel;
    }
  }
}

TEST(WgmmaIndexTest, ProbabilitiesMeetTheirOwnTokens) {
  ExpectProductOfValues<64>();
  ExpectProductOfValues<128>();
}

// A step takes the 32 keys of the contract's chain, not others.
TEST(WgmmaIndexTest, AStepTakesItsOwnKeys) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int packed = 0; packed < 16; ++packed) {
      for (int byte = 0; byte < 4; ++byte) {
        const int e = tile_index::PackedElement(packed / 2, packed % 2, byte);
        EXPECT_EQ(tile_index::Column(lane, e) / 32, packed / 4);
      }
    }
  }
}

TEST(WgmmaIndexTest, ScalesAreThoseOfRowsAndKeys) {
  constexpr exact::Geometry kB = exact::GeometryOf(ExactPath::kB);
  for (const auto granularity : {ExactGranularity::kPerWarp, ExactGranularity::kPerThread}) {
    const bool per_thread = granularity == ExactGranularity::kPerThread;
    const int q_lanes = per_thread ? 8 : 1;
    const int k_lanes = per_thread ? 4 : 1;
    for (const int64_t block : {int64_t{0}, int64_t{5}, int64_t{1} << 30}) {
      for (int thread = 0; thread < exact::kThreads; ++thread) {
        const int warp = thread / kLanes;
        const int lane = thread % kLanes;
        for (int e = 0; e < 64; ++e) {
          const int64_t row = wgmma_index::WarpRow(block, warp) + tile_index::Row(lane, e);
          EXPECT_EQ(wgmma_index::QScale(block, warp, lane, q_lanes),
                    exact::QScaleIndex(kB, granularity, row));
          const int64_t key = block * kKeys + tile_index::Column(lane, e);
          EXPECT_EQ(wgmma_index::KScale(block, lane, k_lanes),
                    exact::KScaleIndex(kB, granularity, key));
          // As the kernel finds it: the lane's first, then whole epochs further.
          EXPECT_EQ(wgmma_index::KScale(0, lane, k_lanes) + wgmma_index::KScale(block, 0, k_lanes),
                    exact::KScaleIndex(kB, granularity, key));
        }
      }
    }
  }
}

}  // namespace
}  // namespace h3rt
