// The index arithmetic of preparation on a device, emulated thread by thread on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "h3rt/kernels/attention/oracle/strict_f32.h"
#include "h3rt/kernels/attention/sage2_public/prepare_shape.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt::exact {
namespace {

constexpr ExactPath kPaths[] = {ExactPath::kA16, ExactPath::kA32, ExactPath::kA1, ExactPath::kB};
constexpr ExactGranularity kGranularities[] = {ExactGranularity::kPerWarp,
                                               ExactGranularity::kPerThread};

ExactProblem SmallProblem() {
  static const uint16_t element = 0;
  static uint16_t output = 0;
  ExactProblem p;
  p.batch = p.q_heads = p.k_heads = p.q_len = p.k_len = 1;
  p.head_dim = 64;
  p.sm_scale = 0.125f;
  p.q.data = p.k.data = p.v.data = &element;
  p.o.data = &output;
  return p;
}

TEST(PrepareShape, TakesWhatTheContractTakes) {
  EXPECT_TRUE(ExactTakes(SmallProblem()));
  const auto refused = [](auto&& change) {
    ExactProblem p = SmallProblem();
    change(p);
    return !ExactTakes(p);
  };
  EXPECT_TRUE(refused([](ExactProblem& p) { p.batch = -1; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.q_len = -1; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.k_len = -1; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.head_dim = 0; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.head_dim = 129; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.k_heads = 2; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.k_heads = 0; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.sm_scale = std::nanf(""); }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.sm_scale = INFINITY; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.sm_scale = 0.0f; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.q.data = nullptr; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.v.data = nullptr; }));
  EXPECT_TRUE(refused([](ExactProblem& p) { p.type = static_cast<ExactType>(2); }));
  EXPECT_FALSE(refused([](ExactProblem& p) {
    p.k_len = 0;
    p.k.data = p.v.data = nullptr;
  }));
  EXPECT_FALSE(refused([](ExactProblem& p) {
    p.q_heads = p.k_heads = 0;
    p.q.data = p.k.data = p.v.data = nullptr;
    p.o.data = nullptr;
  }));
}

// Every octet of every row on 16 bytes, and nothing else, takes the wide loads.
TEST(PrepareShape, VectorLoadsAreAligned) {
  alignas(16) static const std::array<uint16_t, 64> memory = {};
  for (const int64_t off : {0, 1, 4, 8}) {
    for (const int64_t head_dim : {64, 72, 100, 128}) {
      for (const int64_t row_stride : {int64_t{128}, int64_t{-136}, int64_t{0}, int64_t{130}}) {
        for (const int64_t len : {1, 3}) {
          const ExactInput in = {memory.data() + off, (int64_t{1} << 61) + 1, row_stride, 256};
          const RowsView v = ViewOf(in, 1, len, 2, head_dim);
          EXPECT_EQ(v.batch_stride, 0);
          EXPECT_EQ(v.row_stride, len < 2 ? 0 : row_stride);
          bool aligned = head_dim % kOctet == 0;
          for (int64_t row = 0; row < len; ++row) {
            for (int64_t head = 0; head < 2; ++head) {
              const int64_t at = off + row * row_stride + head * 256;
              aligned = aligned && at % kOctet == 0;
            }
          }
          EXPECT_EQ(v.vector, aligned) << off << " " << head_dim << " " << row_stride << " " << len;
        }
      }
    }
  }
}

TEST(PrepareShape, RowsThatThereAre) {
  EXPECT_EQ(Have(300, 0, 128), 128);
  EXPECT_EQ(Have(300, 256, 128), 44);
  EXPECT_EQ(Have(300, 300, 128), 0);
  EXPECT_EQ(Have(300, 383, 128), 0);
  EXPECT_EQ(Have(int64_t{1} << 40, 5, 256), 256);
}

TEST(PrepareShape, EveryBlockOfEveryHeadOnce) {
  const int64_t batch = 3, blocks = 5, heads = 7;
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (int64_t item = 0; item < batch * blocks * heads; ++item) {
    const Place p = PlaceOf(item, blocks, heads);
    EXPECT_LT(p.batch, batch);
    EXPECT_LT(p.block, blocks);
    EXPECT_LT(p.head, heads);
    seen.insert({p.batch, p.block, p.head});
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), batch * blocks * heads);
}

TEST(PrepareShape, PlacesBeyond32Bits) {
  const int64_t blocks = 1000003, heads = 70001;
  for (const int64_t batch : {int64_t{0}, int64_t{1}, int64_t{12345}}) {
    const Place p = PlaceOf((batch * blocks + 999999) * heads + 70000, blocks, heads);
    EXPECT_EQ(p.batch, batch);
    EXPECT_EQ(p.block, 999999);
    EXPECT_EQ(p.head, 70000);
  }
  const int64_t many = int64_t{1} << 33;
  const Place wide = PlaceOf(many + 3, 1, many);
  EXPECT_EQ(wide.batch, 1);
  EXPECT_EQ(wide.head, 3);
}

TEST(PrepareShape, GridsStayWithinX) {
  EXPECT_EQ(FlatGrid(70000), 70000u);
  EXPECT_EQ(FlatGrid(kMostCtas), 2147483647u);
  EXPECT_EQ(FlatGrid(int64_t{1} << 40), 2147483647u);
  EXPECT_TRUE(OneGrid(kMostCtas));
  EXPECT_FALSE(OneGrid(kMostCtas + 1));
}

// The mask groups rows as the contract's scale index does, one leader stores each scale, and all
// scales are stored.
TEST(PrepareShape, GroupsAreTheContracts) {
  for (const ExactPath path : kPaths) {
    const Geometry g = GeometryOf(path);
    for (const ExactGranularity granularity : kGranularities) {
      for (const bool is_k : {false, true}) {
        for (const int64_t len : {1, 7, 63, 64, 65, 128, 129, 191, 193, 640}) {
          const GroupShape s = GroupShapeOf(g, granularity, is_k, len);
          const int64_t scales = is_k ? KScales(g, granularity, len) : QScales(g, granularity, len);
          std::vector<int> stored(static_cast<size_t>(scales), 0);
          for (int64_t row = 0; row < RoundUp(len, kRowPad); ++row) {
            const int64_t index =
                is_k ? KScaleIndex(g, granularity, row) : QScaleIndex(g, granularity, row);
            EXPECT_EQ(s.ScaleIndex(row), index);
            for (int64_t other = row / kRowPad * kRowPad; other < row; ++other) {
              const int64_t other_index =
                  is_k ? KScaleIndex(g, granularity, other) : QScaleIndex(g, granularity, other);
              ASSERT_EQ((row & ~s.mask) == (other & ~s.mask), index == other_index)
                  << row << " " << other;
            }
            if (!s.Leads(row)) continue;
            ASSERT_LT(index, scales);
            ++stored[static_cast<size_t>(index)];
          }
          EXPECT_EQ(std::count(stored.begin(), stored.end(), 1), scales) << len;
        }
      }
    }
  }
}

// The kernel's reduction of one block: exchanges between octets, then between the rows of a group
// by shuffles within 32 rows and by shared memory beyond, on plain maxima.
TEST(PrepareShape, ReductionFindsTheMaximumOfEachGroup) {
  for (const int octets : {8, 16}) {
    for (const int mask : {15, 31, 63, 127, 8, 24, 57, 121}) {
      std::vector<int> value(static_cast<size_t>(128 * octets));
      uint32_t state = 7;
      for (int& x : value) x = static_cast<int>((state = state * 1664525u + 1013904223u) >> 8);
      const auto at = [&](int row, int octet) {
        return value[static_cast<size_t>(row * octets + octet)];
      };
      std::array<int, 128> row_max = {};
      for (int lane_row = 0; lane_row < kRowStep; ++lane_row) {
        for (int octet = 0; octet < kRowsAThread; ++octet) {
          const int row = lane_row + RowSteps::At(HeldRow(octet));
          for (int o = 0; o < octets; ++o) {
            row_max[static_cast<size_t>(row)] =
                std::max(row_max[static_cast<size_t>(row)], at(row, o));
          }
        }
      }
      auto most = row_max;
      for (size_t bit = 1; bit < 32; bit *= 2) {
        if ((static_cast<size_t>(mask) & bit) == 0) continue;
        const auto before = most;
        for (size_t t = 0; t < 128; ++t) most[t] = std::max(before[t], before[t ^ bit]);
      }
      if (mask >= 32) {
        const auto shared = most;
        for (size_t t = 0; t < 128; ++t) {
          most[t] = std::max(most[t], shared[t ^ 32]);
          if ((mask & 64) == 0) continue;
          most[t] = std::max({most[t], shared[t ^ 64], shared[t ^ 96]});
        }
      }
      for (int row = 0; row < 128; ++row) {
        int wanted = 0;
        for (int other = 0; other < 128; ++other) {
          if ((row & ~mask) != (other & ~mask)) continue;
          for (int o = 0; o < octets; ++o) wanted = std::max(wanted, at(other, o));
        }
        ASSERT_EQ(most[static_cast<size_t>(row)], wanted) << mask << " " << row;
      }
    }
  }
}

// What a thread holds after the kernel's three exchanges: lane bit 2 chooses between rows 0..3 and
// 4..7, and so on.
TEST(PrepareShape, ExchangesLeaveTheHeldRow) {
  std::array<std::array<int, 8>, 8> held;  // of octet o: which of its rows are left, in order
  std::array<int, 8> count;
  for (size_t o = 0; o < 8; ++o) {
    for (size_t i = 0; i < 8; ++i) held[o][i] = static_cast<int>(i);
    count[o] = 8;
  }
  for (const size_t bit : {4u, 2u, 1u}) {
    for (size_t o = 0; o < 8; ++o) {
      count[o] /= 2;
      const bool upper = (o & bit) != 0;
      for (size_t i = 0; upper && i < static_cast<size_t>(count[o]); ++i) {
        held[o][i] = held[o][static_cast<size_t>(count[o]) + i];
      }
    }
  }
  for (size_t o = 0; o < 8; ++o) {
    EXPECT_EQ(count[o], 1);
    EXPECT_EQ(held[o][0], HeldRow(static_cast<int>(o)));
    EXPECT_EQ(HeldRow(static_cast<int>(o + 8)), HeldRow(static_cast<int>(o)));
  }
}

// Each byte of a V tile is packed once, from the token that the contract puts at its position, and
// lands where the reading threads look for it; stores of a warp meet 32 banks, reads of 8 threads
// too.
TEST(PrepareShape, VTileIsPermutedAndTurned) {
  for (const int dim : {64, 128}) {
    std::vector<std::pair<int, int>> shared(static_cast<size_t>(dim * 128), {-1, -1});
    const int threads = PrepareThreads(dim);
    for (int e = 0; e < kOctet; ++e) {
      for (int j = 0; j < kTasks; ++j) {
        std::map<int, std::set<int>> banks;  // by warp
        for (int thread = 0; thread < threads; ++thread) {
          const VTask task = VTaskOf(thread, dim);
          const int channel = task.octet * kOctet + e;
          const int group = task.group + j * kTaskGroups;
          ASSERT_LT(channel, dim);
          ASSERT_LT(group, 8);
          const int word = VSharedWord(channel, group, task.word);
          banks[thread / 32].insert(word % 32);
          for (int b = 0; b < 4; ++b) {
            const int row = task.group * 16 + WordToken(task.word, 0) + TaskSteps::At(4 * j + b);
            ASSERT_EQ(row, group * 16 + WordToken(task.word, b));
            auto& place = shared[static_cast<size_t>(word * 4 + b)];
            ASSERT_EQ(place.first, -1);
            place = {channel, row};
          }
        }
        for (const auto& [warp, met] : banks) EXPECT_EQ(met.size(), 32u) << warp;
      }
    }
    int read = 0;
    for (int thread = 0; thread < threads; ++thread) {
      for (int i = 0; i < 4; ++i) {
        const int channel = thread / 8 + i * (threads / 8);
        const int word = VSharedWord(channel, thread % 8, 0);
        ASSERT_EQ(word % 4, 0);
        for (int b = 0; b < 16; ++b, ++read) {
          const auto& [c, row] = shared[static_cast<size_t>(word * 4 + b)];
          ASSERT_EQ(c, channel);
          const int position = thread % 8 * 16 + b;
          ASSERT_EQ(row / 16 * 16 + VPosition(row % 16), position);
        }
      }
    }
    EXPECT_EQ(read, dim * 128);
    for (int first = 0; first < threads; first += 8) {
      std::set<int> banks;
      for (int thread = first; thread < first + 8; ++thread) {
        for (int w = 0; w < 4; ++w) {
          banks.insert((VSharedWord(thread / 8, thread % 8, 0) + w) % 32);
        }
      }
      EXPECT_EQ(banks.size(), 32u);
    }
  }
}

// The V kernel takes the maximum of a channel back out of its scale. For every magnitude of both
// types, with the reciprocal of the special-function unit off by up to two units either way: where
// the scale is at or above the kernel's limit, the maximum comes back.
TEST(PrepareShape, ScaleGivesTheMaximumBack) {
  using strict::FromBits;
  using strict::MulFtz;
  using strict::ToBits;
  for (const uint32_t v_max : {k448, k2p25}) {
    for (int ulp = -2; ulp <= 2; ++ulp) {
      const uint32_t rcp = ToBits(strict::Rcp(FromBits(v_max))) + static_cast<uint32_t>(ulp);
      int below = 0;
      for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
        const float bf16 = Bf16ToFloat(static_cast<uint16_t>(bits));
        const float scale = MulFtz(bf16, FromBits(rcp));
        if (ToBits(scale) < kScaleSafe) {
          ++below;
          continue;
        }
        ASSERT_EQ(FloatToBf16(MulFtz(scale, FromBits(v_max))), bits);
      }
      // The rest are the smallest: below 2^-100 * 448.
      EXPECT_GT(below, 0);
      EXPECT_LT(Bf16ToFloat(static_cast<uint16_t>(below)), 0x1p-91f);
      for (uint32_t bits = 1; bits < 0x7c00; ++bits) {
        const float scale = MulFtz(F16ToFloat(static_cast<uint16_t>(bits)), FromBits(rcp));
        ASSERT_GE(ToBits(scale), kScaleSafe);
        ASSERT_EQ(FloatToF16(MulFtz(scale, FromBits(v_max))), bits);
      }
    }
  }
}

}  // namespace
}  // namespace h3rt::exact
