// The comparison of checkpoints is itself what decides about kernels: it has to find each planted
// difference, and to name the first in time.
#include "h3rt/kernels/attention/oracle/compare.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace h3rt {
namespace {

// 4 (batch, head) pairs, 130 rows in two tiles, 200 keys in 4 epochs of 64, D 64, 2 steps.
ExactProblem Problem(bool causal = false) {
  ExactProblem problem;
  problem.path = ExactPath::kA16;
  problem.causal = causal;
  problem.batch = 2;
  problem.q_heads = 2;
  problem.k_heads = 1;
  problem.q_len = 130;
  problem.k_len = 200;
  problem.head_dim = 50;
  return problem;
}
constexpr int64_t kRows = 130;
constexpr int64_t kKeys = 200;
constexpr int64_t kEpochs = 4;
constexpr int64_t kDim = 64;

// One side: every observable, filled with bits that differ from element to element.
struct Side {
  explicit Side(const ExactProblem& problem)
      : memory(static_cast<size_t>(CheckpointBytes(problem))),
        at(CheckpointsIn(problem, memory.data())) {
    uint32_t state = 12345;
    for (unsigned char& byte : memory) {
      state = state * 1664525u + 1013904223u;
      byte = static_cast<unsigned char>(state >> 24);
    }
  }
  std::vector<unsigned char> memory;
  ExactCheckpoints at;
};

struct Planted {
  std::string observable;
  void* data;
  int64_t bytes;
  int64_t index;  // in the observable, from the shapes of checkpoints.h
  int64_t epoch;
  int64_t place;
};

// One element of each observable, of (batch, head) `head` and row `row`, at epoch `epoch`.
std::vector<Planted> OneOfEach(const ExactCheckpoints& c, int64_t head, int64_t row,
                               int64_t epoch) {
  const int64_t at = head * kRows + row;
  const int64_t key = epoch * 64 + 5;
  const int64_t step = (at * kEpochs + epoch) * 2;
  return {{"qk", c.qk, 4, at * kKeys + key, epoch, key},
          {"dq", c.dq, 4, (at * kEpochs + epoch) * 4 + 3, epoch, 3},
          {"s", c.s, 4, (at * kEpochs + epoch) * 4 + 2, epoch, 2},
          {"x", c.x, 4, at * kKeys + key, epoch, key},
          {"m", c.m, 4, at * kEpochs + epoch, epoch, 0},
          {"a", c.a, 4, at * kEpochs + epoch, epoch, 0},
          {"p", c.p, 4, at * kKeys + key, epoch, key},
          {"d_lane", c.d_lane, 4, (at * kEpochs + epoch) * 4 + 1, epoch, 1},
          {"p8", c.p8, 1, at * kKeys + key, epoch, key},
          {"u", c.u, 4, (step + 1) * kDim + 63, epoch, kDim + 63},
          {"ro", c.ro, 4, (at * kEpochs + epoch) * kDim + 17, epoch, 17},
          {"d", c.d, 4, at, -1, 0},
          {"r", c.r, 4, at, -1, 0},
          {"out32", c.out32, 4, at * kDim + 40, -1, 40},
          {"lse2", c.lse2, 4, at, -1, 0}};
}

unsigned char* AddressOf(const Planted& planted) {
  return static_cast<unsigned char*>(planted.data) + planted.index * planted.bytes;
}
uint64_t BitsOf(const Planted& planted) {
  uint64_t bits = 0;
  std::memcpy(&bits, AddressOf(planted), static_cast<size_t>(planted.bytes));
  return bits;
}
void Flip(const Planted& planted) { *AddressOf(planted) ^= 0x10u; }

TEST(CompareCheckpointsTest, SizesAreThoseOfTheShapes) {
  const CheckpointSizes n = SizesOfCheckpoints(Problem());
  EXPECT_EQ(n.qk, 4 * 130 * 200);
  EXPECT_EQ(n.x, n.qk);
  EXPECT_EQ(n.p, n.qk);
  EXPECT_EQ(n.p8, n.qk);
  EXPECT_EQ(n.dq, 4 * 130 * 4 * 4);
  EXPECT_EQ(n.s, n.dq);
  EXPECT_EQ(n.d_lane, n.dq);
  EXPECT_EQ(n.m, 4 * 130 * 4);
  EXPECT_EQ(n.a, n.m);
  EXPECT_EQ(n.u, 4 * 130 * 4 * 2 * 64);
  EXPECT_EQ(n.ro, 4 * 130 * 4 * 64);
  EXPECT_EQ(n.d, 4 * 130);
  EXPECT_EQ(n.r, n.d);
  EXPECT_EQ(n.lse2, n.d);
  EXPECT_EQ(n.out32, 4 * 130 * 64);
  ExactProblem b = Problem();
  b.path = ExactPath::kB;
  EXPECT_EQ(SizesOfCheckpoints(b).u, 4 * 130 * 2 * 4 * 64) << "two epochs of 128 keys, four steps";
}

TEST(CompareCheckpointsTest, PiecesOfTheMemoryDoNotOverlap) {
  const ExactProblem problem = Problem();
  Side side(problem);
  const CheckpointSizes n = SizesOfCheckpoints(problem);
  const auto fill = [](auto* data, int64_t elements, int value) {
    std::memset(data, value, static_cast<size_t>(elements) * sizeof(*data));
  };
  fill(side.at.qk, n.qk, 1);
  fill(side.at.dq, n.dq, 2);
  fill(side.at.s, n.s, 3);
  fill(side.at.x, n.x, 4);
  fill(side.at.p, n.p, 5);
  fill(side.at.p8, n.p8, 6);
  fill(side.at.m, n.m, 7);
  fill(side.at.a, n.a, 8);
  fill(side.at.d_lane, n.d_lane, 9);
  fill(side.at.u, n.u, 10);
  fill(side.at.ro, n.ro, 11);
  fill(side.at.d, n.d, 12);
  fill(side.at.r, n.r, 13);
  fill(side.at.out32, n.out32, 14);
  fill(side.at.lse2, n.lse2, 15);
  int value = 1;
  const auto holds = [&](const auto* data, int64_t elements) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(data);
    for (int64_t i = 0; i < elements * static_cast<int64_t>(sizeof(*data)); ++i) {
      if (bytes[i] != value) return false;
    }
    ++value;
    return true;
  };
  EXPECT_TRUE(holds(side.at.qk, n.qk) && holds(side.at.dq, n.dq) && holds(side.at.s, n.s) &&
              holds(side.at.x, n.x) && holds(side.at.p, n.p) && holds(side.at.p8, n.p8) &&
              holds(side.at.m, n.m) && holds(side.at.a, n.a) && holds(side.at.d_lane, n.d_lane) &&
              holds(side.at.u, n.u) && holds(side.at.ro, n.ro) && holds(side.at.d, n.d) &&
              holds(side.at.r, n.r) && holds(side.at.out32, n.out32) && holds(side.at.lse2, n.lse2))
      << "observable " << value;
}

TEST(CompareCheckpointsTest, EqualSidesAreComparedWhole) {
  const ExactProblem problem = Problem();
  const Side got(problem);
  const Side wanted(problem);
  const CheckpointComparison result = CompareCheckpoints(problem, got.at, wanted.at);
  EXPECT_TRUE(result.first.empty());
  const CheckpointSizes n = SizesOfCheckpoints(problem);
  EXPECT_EQ(result.compared, n.qk + n.x + n.p + n.p8 + n.dq + n.s + n.d_lane + n.m + n.a + n.u +
                                 n.ro + n.d + n.r + n.lse2 + n.out32);
}

TEST(CompareCheckpointsTest, FindsOneBitInEachObservable) {
  const ExactProblem problem = Problem();
  Side got(problem);
  const Side wanted(problem);
  for (const int64_t epoch : {0, 2}) {
    for (const Planted& planted : OneOfEach(got.at, 3, 129, epoch)) {
      SCOPED_TRACE(planted.observable);
      const uint64_t before = BitsOf(planted);
      Flip(planted);
      const CheckpointComparison result = CompareCheckpoints(problem, got.at, wanted.at);
      ASSERT_EQ(result.first.size(), 1u);
      const CheckpointDifference& first = result.first[0];
      EXPECT_EQ(first.observable, planted.observable);
      EXPECT_EQ(first.epoch, planted.epoch);
      EXPECT_EQ(first.row, 129);
      EXPECT_EQ(first.head, 3);
      EXPECT_EQ(first.place, planted.place);
      EXPECT_EQ(first.got, BitsOf(planted));
      EXPECT_EQ(first.wanted, before);
      EXPECT_EQ(first.differing, 1);
      Flip(planted);
    }
  }
  EXPECT_TRUE(CompareCheckpoints(problem, got.at, wanted.at).first.empty());
}

TEST(CompareCheckpointsTest, NamesTheFirstInTime) {
  const ExactProblem problem = Problem();
  Side got(problem);
  const Side wanted(problem);
  // From the last in time to the first: each new one takes the place of all before it, although
  // it stands in a later row and head.
  int64_t row = 0;
  int64_t head = 0;
  for (int64_t epoch = 3; epoch >= 0; --epoch) {
    for (int64_t i = 14; i >= 0; --i) {
      const Planted planted = OneOfEach(got.at, head, row, epoch)[static_cast<size_t>(i)];
      if (planted.epoch < 0 && epoch < 3) continue;  // observables of the end: planted once
      Flip(planted);
      const CheckpointComparison result = CompareCheckpoints(problem, got.at, wanted.at);
      ASSERT_EQ(result.first.size(), 1u);
      EXPECT_EQ(result.first[0].observable, planted.observable);
      EXPECT_EQ(result.first[0].epoch, planted.epoch);
      EXPECT_EQ(result.first[0].row, row);
      EXPECT_EQ(result.first[0].head, head);
      row += 2;
      head = row / 44;
    }
  }
}

TEST(CompareCheckpointsTest, WithinAnEpochHeadThenRowThenPlace) {
  const ExactProblem problem = Problem();
  Side got(problem);
  const Side wanted(problem);
  const auto differs = [&](int64_t head, int64_t row, int64_t key) {
    got.at.x[(head * kRows + row) * kKeys + key] += 1.0f;
    const CheckpointComparison result = CompareCheckpoints(problem, got.at, wanted.at);
    const CheckpointDifference& first = result.first.at(0);
    return first.head == head && first.row == row && first.place == key;
  };
  for (int64_t i = 0; i < 4 * kRows * kKeys; ++i) got.at.x[i] = wanted.at.x[i] = 1.0f;
  EXPECT_TRUE(differs(2, 7, 20));
  EXPECT_TRUE(differs(1, 90, 63));
  EXPECT_TRUE(differs(1, 12, 63));
  EXPECT_TRUE(differs(1, 12, 62));
  EXPECT_FALSE(differs(0, 0, 64)) << "of the next epoch";
  EXPECT_EQ(CompareCheckpoints(problem, got.at, wanted.at).first.at(0).differing, 5);
}

TEST(CompareCheckpointsTest, AnUnwrittenObservableDiffersThroughout) {
  const ExactProblem problem = Problem();
  Side got(problem);
  Side wanted(problem);
  const int64_t elements = SizesOfCheckpoints(problem).ro;
  for (int64_t i = 0; i < elements; ++i) wanted.at.ro[i] = 0.5f;
  std::memset(got.at.ro, 0xff, static_cast<size_t>(elements) * 4);  // poison: NaN
  const CheckpointComparison result = CompareCheckpoints(problem, got.at, wanted.at);
  ASSERT_EQ(result.first.size(), 1u);
  EXPECT_EQ(result.first[0].observable, "ro");
  EXPECT_EQ(result.first[0].differing, elements);
  for (int64_t i = 0; i + 1 < elements; ++i) got.at.ro[i] = 0.5f;  // all but the last
  EXPECT_EQ(CompareCheckpoints(problem, got.at, wanted.at).first.at(0).differing, 1);
}

TEST(CompareCheckpointsTest, ZerosAndNansAreComparedAsBits) {
  const ExactProblem problem = Problem();
  Side got(problem);
  Side wanted(problem);
  got.at.d[3] = -0.0f;
  wanted.at.d[3] = 0.0f;
  const CheckpointComparison zeros = CompareCheckpoints(problem, got.at, wanted.at);
  ASSERT_EQ(zeros.first.size(), 1u);
  EXPECT_EQ(zeros.first[0].got, 0x80000000u);
  EXPECT_EQ(zeros.first[0].wanted, 0u);
  const uint32_t nan = 0x7fffffffu;
  const uint32_t other_nan = 0x7fc00000u;
  std::memcpy(&got.at.d[3], &nan, 4);
  std::memcpy(&wanted.at.d[3], &nan, 4);
  EXPECT_TRUE(CompareCheckpoints(problem, got.at, wanted.at).first.empty());
  std::memcpy(&wanted.at.d[3], &other_nan, 4);
  EXPECT_EQ(CompareCheckpoints(problem, got.at, wanted.at).first.at(0).got, nan);
  wanted.at.d[3] = 1.0f;
  EXPECT_EQ(CompareCheckpoints(problem, got.at, wanted.at).first.size(), 1u);
}

TEST(CompareCheckpointsTest, EpochsThatACausalTileDoesNotVisitAreLeftOut) {
  const ExactProblem problem = Problem(true);
  Side got(problem);
  const Side wanted(problem);
  // Rows 0 to 127 visit epochs 0 and 1, rows 128 and 129 all four.
  got.at.m[127 * kEpochs + 2] += 1.0f;
  got.at.x[127 * kKeys + 128] += 1.0f;
  got.at.p8[0 * kKeys + 199] ^= 1u;
  got.at.u[((127 * kEpochs + 3) * 2) * kDim] += 1.0f;
  const CheckpointComparison result = CompareCheckpoints(problem, got.at, wanted.at);
  EXPECT_TRUE(result.first.empty());
  EXPECT_LT(result.compared, CompareCheckpoints(Problem(), got.at, wanted.at).compared);
  got.at.m[128 * kEpochs + 3] += 1.0f;
  EXPECT_EQ(CompareCheckpoints(problem, got.at, wanted.at).first.at(0).row, 128);
  got.at.p8[127 * kKeys + 127] ^= 1u;
  EXPECT_EQ(CompareCheckpoints(problem, got.at, wanted.at).first.at(0).row, 127);
}

TEST(CompareCheckpointsTest, OnlyObservablesOfBothSidesCount) {
  const ExactProblem problem = Problem();
  const Side side(problem);
  const ExactCheckpoints none;
  EXPECT_EQ(CompareCheckpoints(problem, side.at, none).compared, 0) << "a caller must look at this";
  ExactCheckpoints only_m;
  only_m.m = side.at.m;
  EXPECT_EQ(CompareCheckpoints(problem, only_m, side.at).compared, 4 * 130 * 4);
}

TEST(CompareCheckpointsTest, TextNamesTheTimeThePlaceAndTheBits) {
  CheckpointDifference d;
  d.observable = "m";
  d.epoch = 2;
  d.row = 17;
  d.got = 0x3f800000u;
  d.wanted = 0x3f800001u;
  d.differing = 3;
  EXPECT_EQ(d.Text(), "epoch 2, row 17, head 0: m: got 0x3f800000, wanted 0x3f800001 (3 differ)");
  d.observable = "out32";
  d.epoch = -1;
  d.place = 9;
  EXPECT_EQ(d.Text(),
            "end, row 17, head 0: out32[9]: got 0x3f800000, wanted 0x3f800001 (3 differ)");
}

}  // namespace
}  // namespace h3rt
