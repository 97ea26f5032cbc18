#include "h3rt/cpu/sgemm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "h3rt/base/count_allocations.h"
#include "h3rt/cpu/reduce.h"
#include "h3rt/cpu/scratch.h"
#include "h3rt/cpu/test_support.h"

namespace h3rt {
namespace {

using test::RandomFloats;

TEST(Sgemm, EveryTranspositionMatchesALoop) {
  const int64_t m = 7;
  const int64_t n = 9;
  const int64_t k = 5;
  const std::vector<float> a = RandomFloats(64, 1);
  const std::vector<float> b = RandomFloats(128, 2);
  const std::vector<float> c = RandomFloats(m * 11, 3);
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const int64_t lda = (ta ? m : k) + 1;
      const int64_t ldb = (tb ? k : n) + 2;
      std::vector<float> got = c;
      ASSERT_TRUE(Sgemm({.trans_a = ta,
                         .trans_b = tb,
                         .m = m,
                         .n = n,
                         .k = k,
                         .alpha = 0.5f,
                         .a = a.data(),
                         .lda = lda,
                         .b = b.data(),
                         .ldb = ldb,
                         .beta = 2.0f,
                         .c = got.data(),
                         .ldc = 11})
                      .ok());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < 11; ++j) {
          const auto at = static_cast<size_t>(i * 11 + j);
          double expected = static_cast<double>(c[at]);
          if (j < n) {
            double sum = 0.0;
            for (int64_t l = 0; l < k; ++l) {
              const auto ai = static_cast<size_t>(ta ? l * lda + i : i * lda + l);
              const auto bi = static_cast<size_t>(tb ? j * ldb + l : l * ldb + j);
              sum += static_cast<double>(a[ai]) * static_cast<double>(b[bi]);
            }
            expected = 0.5 * sum + 2.0 * expected;
          }
          EXPECT_NEAR(static_cast<double>(got[at]), expected, 1e-5);
        }
      }
    }
  }
}

TEST(Sgemm, BetaZeroDoesNotReadTheResultAndNoDepthScalesIt) {
  const std::vector<float> a = {1.0f, 2.0f};
  std::vector<float> c(4, std::nanf(""));
  ASSERT_TRUE(Sgemm({.m = 2,
                     .n = 2,
                     .k = 1,
                     .a = a.data(),
                     .lda = 1,
                     .b = a.data(),
                     .ldb = 2,
                     .c = c.data(),
                     .ldc = 2})
                  .ok());
  EXPECT_EQ(c, (std::vector<float>{1, 2, 2, 4}));
  ASSERT_TRUE(Sgemm({.m = 2, .n = 2, .k = 0, .beta = 3.0f, .c = c.data(), .ldc = 2}).ok());
  EXPECT_EQ(c, (std::vector<float>{3, 6, 6, 12}));
  ASSERT_TRUE(Sgemm({.m = 2, .n = 2, .k = 0, .c = c.data(), .ldc = 2}).ok());
  EXPECT_EQ(c, (std::vector<float>(4, 0.0f)));
}

TEST(Sgemm, RowsThatOverlapAreRefused) {
  const std::vector<float> a(16);
  std::vector<float> c(16);
  EXPECT_FALSE(Sgemm({.m = 3,
                      .n = 2,
                      .k = 4,
                      .a = a.data(),
                      .lda = 3,
                      .b = a.data(),
                      .ldb = 2,
                      .c = c.data(),
                      .ldc = 2})
                   .ok());
}

// The property that the ops lean on: with more than one column, how far rows lie apart does not
// change a byte. (For one column it can: then a Linear may depend on the row distance of its x.)
TEST(Sgemm, DeterminismRowDistancesDoNotChangeBytes) {
  for (const int64_t m : {1, 17, 128, 300}) {
    for (const int64_t n : {2, 64, 200}) {
      for (const int64_t k : {7, 128, 1024}) {
        std::vector<float> first;
        for (const int64_t gap : {0, 3, 1024 - 7}) {
          const std::vector<float> a = RandomFloats(m * k, 1);
          const std::vector<float> b = RandomFloats(n * k, 2);
          std::vector<float> wide(static_cast<size_t>(m * (k + gap)));
          for (int64_t i = 0; i < m; ++i) {
            std::copy(a.begin() + i * k, a.begin() + (i + 1) * k, wide.begin() + i * (k + gap));
          }
          std::vector<float> c(static_cast<size_t>(m * n));
          ASSERT_TRUE(Sgemm({.trans_b = true,
                             .m = m,
                             .n = n,
                             .k = k,
                             .a = wide.data(),
                             .lda = k + gap,
                             .b = b.data(),
                             .ldb = k,
                             .c = c.data(),
                             .ldc = n})
                          .ok());
          if (first.empty()) first = c;
          EXPECT_TRUE(Identical(CompareFloats(c, first))) << m << ' ' << n << ' ' << k;
        }
      }
    }
  }
}

TEST(Sgemm, AllocatesNoMoreThanItSays) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  int64_t most = 0;
  for (const int64_t m : {1, 16, 128, 1024}) {
    for (const int64_t n : {1, 24, 512, 3000}) {
      for (const int64_t k : {1, 7, 64, 384, 1024}) {
        for (const bool trans_b : {false, true}) {
          const std::vector<float> a = RandomFloats(m * k, 1);
          const std::vector<float> b = RandomFloats(n * k, 2);
          std::vector<float> c(static_cast<size_t>(m * n));
          const SgemmParams p = {.trans_b = trans_b,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a = a.data(),
                                 .lda = k,
                                 .b = b.data(),
                                 .ldb = trans_b ? k : n,
                                 .c = c.data(),
                                 .ldc = n};
          ASSERT_TRUE(Sgemm(p).ok());  // generates its code, which it keeps
          const AllocationPeak peak;
          ASSERT_TRUE(Sgemm(p).ok());
          EXPECT_LE(peak.bytes(), SgemmPackingBytes(m, n, k)) << m << ' ' << n << ' ' << k;
          most = std::max(most, peak.bytes());
        }
      }
    }
  }
  RecordProperty("most_bytes", std::to_string(most));
}

TEST(Sgemm, SingleThreadScopeRestoresTheSetting) {
  omp_set_num_threads(3);
  {
    const SingleThreadScope scope;
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), 3);
}

TEST(Reduce, SumsAreThoseOfFloat64) {
  for (const int64_t n : {0, 1, 7, 8, 9, 1000}) {
    const std::vector<float> x = RandomFloats(n, 1);
    double sum = 0.0;
    double squares = 0.0;
    double about = 0.0;
    for (const float v : x) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
      about += (static_cast<double>(v) - 0.25) * (static_cast<double>(v) - 0.25);
    }
    // n additions of values near 1 in float64.
    const double bound = static_cast<double>(n + 1) * 1e-15 * static_cast<double>(n + 1);
    EXPECT_NEAR(Sum(x.data(), n), sum, bound);
    EXPECT_NEAR(SumOfSquares(x.data(), n), squares, bound);
    EXPECT_NEAR(SumOfSquaresAbout(x.data(), n, 0.25), about, bound);
  }
}

TEST(Scratch, RefusesWhatCannotBe) {
  EXPECT_EQ(Scratch::Create(-1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Scratch::Create(std::numeric_limits<int64_t>::max()).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Scratch::Create(0).ok());
}

}  // namespace
}  // namespace h3rt
