// The numbers of the contract's header and the sizes of prepared buffers, against the contract's
// text and against arithmetic that cannot overflow.
#include "h3rt/kernels/attention/exact/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace h3rt {
namespace {

using exact::GeometryOf;

constexpr ExactPath kPaths[] = {ExactPath::kA16, ExactPath::kA32, ExactPath::kA1, ExactPath::kB};

TEST(ExactContractTest, ConstantsAreTheirDecimals) {
  const auto value = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  EXPECT_EQ(value(exact::kLog2E), 1.44269504f);
  EXPECT_EQ(value(exact::kMinusOffset), -8.807f);
  EXPECT_EQ(value(exact::kMasked), -5000000.0f);
  EXPECT_EQ(value(exact::kOver127), 1.0f / 127.0f);
  EXPECT_EQ(value(exact::kEpsilon), 1e-7f);
  EXPECT_EQ(value(exact::k127), 127.0f);
  EXPECT_EQ(value(exact::kLn2), static_cast<float>(1.0 / 1.44269504));
  EXPECT_EQ(value(exact::k448), 448.0f);
  EXPECT_EQ(value(exact::k2p25), 2.25f);
  EXPECT_EQ(GeometryOf(ExactPath::kA16).v_max, exact::k2p25);
  EXPECT_EQ(GeometryOf(ExactPath::kA1).v_max, exact::k448);
  EXPECT_LT(448 * 2.25 * 64, 65504);  // why 2.25
}

// Section 3.1: which rows share a scale, as the text lists them, and no two groups one index.
TEST(ExactContractTest, ScaleGroups) {
  for (const ExactPath path : kPaths) {
    const exact::Geometry g = GeometryOf(path);
    for (const int64_t len : {1, 31, 64, 127, 128, 129, 257, 1000}) {
      const auto expect = [&](ExactGranularity granularity, auto&& q_group, auto&& k_group) {
        std::map<std::pair<int64_t, int64_t>, int64_t> q_seen;
        std::map<std::pair<int64_t, int64_t>, int64_t> k_seen;
        std::set<int64_t> q_indices;
        std::set<int64_t> k_indices;
        for (int64_t i = 0; i < len; ++i) {
          const int64_t q = exact::QScaleIndex(g, granularity, i);
          const int64_t k = exact::KScaleIndex(g, granularity, i);
          EXPECT_EQ(q_seen.emplace(q_group(i), q).first->second, q);
          EXPECT_EQ(k_seen.emplace(k_group(i), k).first->second, k);
          q_indices.insert(q);
          k_indices.insert(k);
        }
        EXPECT_EQ(q_indices.size(), q_seen.size());
        EXPECT_EQ(k_indices.size(), k_seen.size());
        EXPECT_GE(*q_indices.begin(), 0);
        EXPECT_LT(*q_indices.rbegin(), exact::QScales(g, granularity, len));
        EXPECT_LT(*k_indices.rbegin(), exact::KScales(g, granularity, len));
        // Fewer than one tile of Q, one block of K is padding.
        EXPECT_EQ(exact::QScales(g, granularity, len) % (g.cta_q / g.warp_q), 0);
      };
      using Group = std::pair<int64_t, int64_t>;
      expect(
          ExactGranularity::kPerWarp,
          [&](int64_t i) {
            return Group{i / g.warp_q, 0};
          },
          [&](int64_t i) {
            return Group{i / g.cta_k, 0};
          });
      expect(
          ExactGranularity::kPerThread,
          [&](int64_t i) {
            return Group{i / g.warp_q, i % 8};
          },
          [&](int64_t i) {
            return Group{i / g.cta_k, i % 8 / 2};
          });
    }
  }
  EXPECT_EQ(exact::QScales(GeometryOf(ExactPath::kA1), ExactGranularity::kPerWarp, 129), 8);
  EXPECT_EQ(exact::QScales(GeometryOf(ExactPath::kB), ExactGranularity::kPerThread, 65), 64);
  EXPECT_EQ(exact::KScales(GeometryOf(ExactPath::kB), ExactGranularity::kPerThread, 129), 8);
  EXPECT_EQ(exact::KScales(GeometryOf(ExactPath::kA16), ExactGranularity::kPerWarp, 0), 0);
}

TEST(ExactContractTest, VTokensArePermutedAsTheTextLists) {
  const int position[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
  const int token[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(exact::VPosition(i), position[i]);
    EXPECT_EQ(exact::VToken(i), token[i]);
    EXPECT_EQ(exact::VToken(exact::VPosition(i)), i);
  }
  // Byte s of lane t's register: columns 2t, 2t+1, 2t+8, 2t+9.
  for (int t = 0; t < 4; ++t) {
    for (int s = 0; s < 4; ++s) {
      EXPECT_EQ(exact::VToken(4 * t + s), s < 2 ? 2 * t + s : 2 * t + 8 + s - 2);
    }
  }
}

TEST(ExactContractTest, EpochsCoverWhatATileSees) {
  for (const ExactPath path : kPaths) {
    const exact::Geometry g = GeometryOf(path);
    for (const int64_t k_len : {1, 63, 64, 65, 128, 129, 500}) {
      for (int64_t tile = 0; tile < 6; ++tile) {
        const int64_t all = exact::Epochs(g, tile, k_len, false);
        EXPECT_GE(all * g.cta_k, k_len);
        EXPECT_LT((all - 1) * g.cta_k, k_len);
        const int64_t causal = exact::Epochs(g, tile, k_len, true);
        const int64_t seen = std::min<int64_t>(k_len, (tile + 1) * g.cta_q);
        EXPECT_GE(causal * g.cta_k, seen);
        EXPECT_LT((causal - 1) * g.cta_k, seen);
      }
    }
    EXPECT_EQ(exact::Epochs(g, 0, 0, false), 0);
  }
}

TEST(ExactProblemTest, HeadDimAndScale) {
  EXPECT_EQ(exact::PaddedHeadDim(0), 0);
  EXPECT_EQ(exact::PaddedHeadDim(1), 64);
  EXPECT_EQ(exact::PaddedHeadDim(64), 64);
  EXPECT_EQ(exact::PaddedHeadDim(65), 128);
  EXPECT_EQ(exact::PaddedHeadDim(128), 128);
  EXPECT_EQ(exact::PaddedHeadDim(129), 0);
  EXPECT_EQ(exact::PaddedHeadDim(-1), 0);
  EXPECT_EQ(DefaultSmScale(64), 0.125f);
  EXPECT_EQ(DefaultSmScale(1), 1.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(DefaultSmScale(128)), 0x3db504f3u);
}

ExactProblem Problem(int64_t batch, int64_t heads, int64_t len, int64_t dim, ExactPath path,
                     ExactGranularity granularity) {
  ExactProblem p;
  p.path = path;
  p.granularity = granularity;
  p.batch = batch;
  p.q_heads = p.k_heads = heads;
  p.q_len = p.k_len = len;
  p.head_dim = dim;
  return p;
}

// T4, T5: at and beyond 2^31 and 2^32 elements, against 128-bit integers.
TEST(ExactProblemTest, SizesBeyond32Bits) {
  for (const int64_t len : {99865, 99866, 99867, 199729, 199730, 200064, 5000000}) {
    for (const ExactPath path : kPaths) {
      for (const auto granularity : {ExactGranularity::kPerWarp, ExactGranularity::kPerThread}) {
        const bool per_warp = granularity == ExactGranularity::kPerWarp;
        const bool b = path == ExactPath::kB;
        const ExactPreparedSizes s = PreparedSizes(Problem(3, 56, len, 128, path, granularity));
        const __int128 tensors = 3 * 56;
        const __int128 padded = (len + 127) / 128 * 128;
        EXPECT_TRUE(s.q8 == tensors * padded * 128);
        EXPECT_TRUE(s.k8 == s.q8 && s.v8 == s.q8);
        EXPECT_GT(s.q8, int64_t{1} << 31);
        const __int128 q_scales = (b ? (len + 63) / 64 * 4 : (len + 127) / 128 * 4);
        const __int128 k_scales = (b ? (len + 127) / 128 : (len + 63) / 64);
        EXPECT_TRUE(s.q_scale == tensors * q_scales * (per_warp ? 1 : 8));
        EXPECT_TRUE(s.k_scale == tensors * k_scales * (per_warp ? 1 : 4));
        EXPECT_TRUE(s.v_scale == tensors * 128 && s.k_mean == tensors * 128);
        EXPECT_TRUE(s.partials == tensors * ((len + 255) / 256) * 2 * 128);
        EXPECT_EQ(s.not_finite, 3);
      }
    }
  }
}

TEST(ExactProblemTest, WorkspaceHoldsEachBufferApart) {
  for (const int64_t len : {0, 1, 129, 300}) {
    const ExactProblem p = Problem(2, 3, len, 72, ExactPath::kA16, ExactGranularity::kPerThread);
    const ExactPreparedSizes s = PreparedSizes(p);
    const int64_t bytes = WorkspaceBytes(p);
    std::vector<char> memory(static_cast<size_t>(bytes) + 256);
    const auto start = (reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256;
    const ExactPrepared r = PreparedIn(p, reinterpret_cast<void*>(start));
    const std::pair<const void*, int64_t> pieces[] = {
        {r.q8, s.q8},
        {r.k8, s.k8},
        {r.v8, s.v8},
        {r.q_scale, s.q_scale * 4},
        {r.k_scale, s.k_scale * 4},
        {r.v_scale, s.v_scale * 4},
        {r.k_mean, s.k_mean * 2},
        {r.partials, s.partials * 4},
        {r.not_finite, s.not_finite * 8},
    };
    uintptr_t end = start;
    for (const auto& [data, size] : pieces) {
      const auto at = reinterpret_cast<uintptr_t>(data);
      EXPECT_EQ(at % 256, 0u);
      EXPECT_GE(at, end);
      end = at + static_cast<uintptr_t>(size);
    }
    EXPECT_LE(end, start + static_cast<uintptr_t>(bytes));
  }
}

}  // namespace
}  // namespace h3rt
