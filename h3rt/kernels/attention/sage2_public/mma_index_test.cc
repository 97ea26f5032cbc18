// Where the mma.sync kernel's registers and bytes lie, against the definitions of the instructions.
#include "h3rt/kernels/attention/sage2_public/mma_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "h3rt/kernels/attention/sage2_public/tile_index.h"

namespace h3rt {
namespace {

constexpr int kLanes = 32;
constexpr int kTileKeys = 64;

// The instruction's own maps, m16n8k32 on bytes: which element of A [16, 32], B [32, 8] and
// C [16, 8] a lane's registers hold.
int ARow(int lane, int word) { return lane / 4 + 8 * (word % 2); }
int ADepth(int lane, int word, int byte) { return 16 * (word / 2) + 4 * (lane % 4) + byte; }
int BDepth(int lane, int word, int byte) { return 16 * word + 4 * (lane % 4) + byte; }
int BColumn(int lane) { return lane / 4; }
int CRow(int lane, int k) { return lane / 4 + 8 * (k / 2); }
int CColumn(int lane, int k) { return 2 * (lane % 4) + k % 2; }

TEST(MmaIndexTest, EveryElementOfATileIsHeldOnce) {
  for (const int columns : {64, 128}) {
    std::set<std::pair<int, int>> held;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < columns / 2; ++e) {
        const int row = tile_index::Row(lane, e);
        const int column = tile_index::Column(lane, e);
        ASSERT_TRUE(row >= 0 && row < 16 && column >= 0 && column < columns);
        EXPECT_TRUE(held.insert({row, column}).second) << row << ", " << column;
        EXPECT_EQ(row, lane / 4 + 8 * tile_index::Half(e));
      }
    }
    EXPECT_EQ(held.size(), 16u * static_cast<unsigned>(columns));
  }
}

// Four registers of the accumulator of each 8 columns, one after another.
TEST(MmaIndexTest, ElementsAreTheInstructionsAccumulators) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int e = 0; e < 64; ++e) {
      EXPECT_EQ(tile_index::Row(lane, e), CRow(lane, e % 4));
      EXPECT_EQ(tile_index::Column(lane, e), 8 * (e / 4) + CColumn(lane, e % 4));
    }
  }
}

// A lane's K scale is that of floor((key mod 8) / 2), its Q scale that of the row mod 8.
TEST(MmaIndexTest, ALaneNeedsOneScaleOfEach) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int e = 0; e < 32; ++e) {
      EXPECT_EQ(tile_index::Column(lane, e) % 8 / 2, lane % 4);
      EXPECT_EQ(tile_index::Row(lane, e) % 8, lane / 4);
    }
  }
}

// Byte s of the words of P against the list of the contract: columns 2t, 2t+1, 2t+8, 2t+9.
TEST(MmaIndexTest, PackedBytesAreTheContractsColumns) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const int t = lane % 4;
    const std::array<int, 4> wanted = {2 * t, 2 * t + 1, 2 * t + 8, 2 * t + 9};
    for (int group = 0; group < 4; ++group) {
      for (int half = 0; half < 2; ++half) {
        for (int byte = 0; byte < 4; ++byte) {
          const int e = tile_index::PackedElement(group, half, byte);
          EXPECT_EQ(tile_index::Half(e), half);
          EXPECT_EQ(tile_index::Column(lane, e), 16 * group + wanted[static_cast<unsigned>(byte)]);
        }
      }
    }
  }
}

// Position of V that each byte of P meets in the instruction holds the token of that byte's column,
// and the rows of P are the rows of the sums.
TEST(MmaIndexTest, ProbabilitiesMeetTheirOwnTokens) {
  for (int step = 0; step < 2; ++step) {
    std::set<std::pair<int, int>> met;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int word = 0; word < 4; ++word) {
        for (int byte = 0; byte < 4; ++byte) {
          const int packed = 4 * step + word;
          const int e = tile_index::PackedElement(packed / 2, packed % 2, byte);
          const int slot = 32 * step + ADepth(lane, word, byte);
          const int token = slot / 16 * 16 + exact::VToken(slot % 16);
          EXPECT_EQ(tile_index::Column(lane, e), token);
          EXPECT_EQ(tile_index::Row(lane, e), ARow(lane, word));
          EXPECT_TRUE(met.insert({ARow(lane, word), token}).second);
        }
      }
    }
    EXPECT_EQ(met.size(), 16u * 32u);
  }
}

TEST(MmaIndexTest, ChunksOfATileAreAllDifferent) {
  for (const int row_bytes : {64, 128}) {
    std::set<int> offsets;
    for (int row = 0; row < 128; ++row) {
      for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
        const int offset = mma_index::ChunkOffset(row_bytes, row, chunk);
        EXPECT_EQ(offset % 16, 0);
        EXPECT_EQ(offset / row_bytes, row);
        EXPECT_TRUE(offsets.insert(offset).second) << row << ", " << chunk;
      }
    }
    EXPECT_EQ(static_cast<int>(offsets.size()), 128 * row_bytes / 16);
  }
}

// Eight 16-byte reads are one phase of 32 banks of 4 bytes: they cover them all.
TEST(MmaIndexTest, MatrixReadsHaveNoBankConflicts) {
  for (const int row_bytes : {64, 128}) {
    for (int first = 0; first < 128; first += 8) {
      for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
        std::set<int> banks;
        for (int row = first; row < first + 8; ++row) {
          banks.insert(mma_index::ChunkOffset(row_bytes, row, chunk) % 128 / 16);
        }
        EXPECT_EQ(banks.size(), 8u) << row_bytes << ": " << first << ", " << chunk;
      }
    }
  }
}

// Tiles of distinct bytes through fetch, ldmatrix and the instruction, all as the kernel does them.
class Warp {
 public:
  Warp(int row_bytes, int rows, int seed) : row_bytes_(row_bytes) {
    bytes_.resize(static_cast<unsigned>(row_bytes * rows));
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < row_bytes; ++column) {
        bytes_[At(row, column)] = Value(row, column, seed);
      }
    }
  }
  static int Value(int row, int column, int seed) {
    return (row * 131 + column * 29 + row * column * 7 + seed * 53) % 251 - 125;
  }

  // ldmatrix of four matrices at these rows and chunks: [lane][matrix][byte].
  template <typename Place>
  std::array<std::array<std::array<int, 4>, 4>, kLanes> Load(Place place) const {
    std::array<std::array<std::array<int, 4>, 4>, kLanes> to{};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned matrix = 0; matrix < 4; ++matrix) {
        const auto [row, chunk] = place(static_cast<int>(8 * matrix + lane / 4));
        const int offset = mma_index::ChunkOffset(row_bytes_, row, chunk);
        for (unsigned byte = 0; byte < 4; ++byte) {
          to[lane][matrix][byte] = bytes_[static_cast<unsigned>(offset) + 4 * (lane % 4) + byte];
        }
      }
    }
    return to;
  }

 private:
  unsigned At(int row, int column) const {
    return static_cast<unsigned>(mma_index::ChunkOffset(row_bytes_, row, column / 16) +
                                 column % 16);
  }
  int row_bytes_;
  std::vector<int> bytes_;
};

TEST(MmaIndexTest, FragmentsOfScoresAreTheOperandsOfTheInstruction) {
  for (const int dim : {64, 128}) {
    const Warp q(dim, 128, 1);
    const Warp k(dim, kTileKeys, 2);
    for (int step = 0; step < dim / 32; ++step) {
      for (int first = 0; first < 128; first += 16) {
        const auto a = q.Load([&](int lane) { return mma_index::QuerySource(first, step, lane); });
        for (int lane = 0; lane < kLanes; ++lane) {
          for (int word = 0; word < 4; ++word) {
            for (int byte = 0; byte < 4; ++byte) {
              EXPECT_EQ(
                  a[static_cast<unsigned>(lane)][static_cast<unsigned>(word)]
                   [static_cast<unsigned>(byte)],
                  Warp::Value(first + ARow(lane, word), 32 * step + ADepth(lane, word, byte), 1));
            }
          }
        }
      }
      for (int group = 0; group < kTileKeys / 16; ++group) {
        const auto b = k.Load([&](int lane) { return mma_index::KeySource(group, step, lane); });
        for (int lane = 0; lane < kLanes; ++lane) {
          for (int word = 0; word < 4; ++word) {  // two of the lower 8 keys, two of the upper
            for (int byte = 0; byte < 4; ++byte) {
              EXPECT_EQ(b[static_cast<unsigned>(lane)][static_cast<unsigned>(word)]
                         [static_cast<unsigned>(byte)],
                        Warp::Value(16 * group + 8 * (word / 2) + BColumn(lane),
                                    32 * step + BDepth(lane, word % 2, byte), 2));
            }
          }
        }
      }
    }
  }
}

TEST(MmaIndexTest, FragmentsOfValuesAreTheOperandsOfTheInstruction) {
  const Warp v(kTileKeys, 128, 3);  // rows are channels, columns positions
  for (int column_tile = 0; column_tile < 128 / 8; ++column_tile) {
    const auto b = v.Load([&](int lane) { return mma_index::ValueSource(column_tile, lane); });
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int word = 0; word < 4; ++word) {  // two of the first step, two of the second
        for (int byte = 0; byte < 4; ++byte) {
          EXPECT_EQ(b[static_cast<unsigned>(lane)][static_cast<unsigned>(word)]
                     [static_cast<unsigned>(byte)],
                    Warp::Value(8 * column_tile + BColumn(lane),
                                32 * (word / 2) + BDepth(lane, word % 2, byte), 3));
        }
      }
    }
  }
}

}  // namespace
}  // namespace h3rt
