// The oracle's preparation over the case table, and rules that the golden files do not reach.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

#include "h3rt/kernels/attention/exact/check.h"
#include "h3rt/kernels/attention/exact/exact_cases.h"
#include "h3rt/kernels/attention/exact/mean_order.h"
#include "h3rt/kernels/attention/oracle/prepare_testing.h"

namespace h3rt {
namespace {

using strict::FromBits;
using strict::ToBits;

constexpr ExactPath kPaths[] = {ExactPath::kA16, ExactPath::kA32, ExactPath::kA1, ExactPath::kB};
constexpr ExactGranularity kGranularities[] = {ExactGranularity::kPerWarp,
                                               ExactGranularity::kPerThread};
constexpr uint16_t kBf16Nan = 0x7fc0;
constexpr uint16_t kBf16Huge = 0x7149;  // 1e30; 10831 as float16, as good a poison

// T1 to T13: refusals by name; else the same bytes whatever the layout, the poison in the gaps and
// what the buffers held, and inputs that are as they were.
TEST(OraclePrepareCasesTest, Table) {
  int computed = 0;
  for (const ExactCase& c : ExactCases()) {
    SCOPED_TRACE(c.name);
    for (const ExactPath path : {ExactPath::kA16, ExactPath::kB}) {
      for (const ExactGranularity granularity : kGranularities) {
        if (c.inputs.k_len > 1000 && granularity == ExactGranularity::kPerThread) continue;
        const ExactHostCall call = HostCallOf(c, path, granularity, kBf16Nan);
        const absl::Status taken = CheckExactProblem(call.problem);
        if (c.expectation == ExactExpectation::kRefused) {
          EXPECT_EQ(taken.code(), absl::StatusCode::kInvalidArgument);
          EXPECT_NE(taken.message().find(c.named), std::string::npos) << taken;
          continue;
        }
        ASSERT_TRUE(taken.ok()) << taken;
        const std::vector<uint16_t> before = call.inputs;
        const OracleWorkspace w(call.problem, {}, 0xcd);
        ASSERT_TRUE(w.status.ok()) << w.status;
        EXPECT_EQ(call.inputs, before);
        const absl::Status finite = CheckFinite(call.problem, w.prepared.not_finite);
        if (c.expectation == ExactExpectation::kNotFinite) {
          EXPECT_EQ(finite.code(), absl::StatusCode::kInvalidArgument);
          EXPECT_NE(finite.message().find(c.named), std::string::npos) << finite;
          continue;
        }
        EXPECT_TRUE(finite.ok()) << finite;
        ExactCase dense = c;
        dense.layout = ExactLayout::kNhd;
        const ExactHostCall other = HostCallOf(dense, path, granularity, kBf16Huge);
        const OracleWorkspace v(other.problem, {}, 0x32);
        EXPECT_EQ(w.Everything(), v.Everything());
        ++computed;
      }
    }
  }
  EXPECT_GT(computed, 700);
}

ExactCase Plain(int64_t q_len, int64_t k_len, int64_t dim, int64_t heads = 1) {
  ExactCase c;
  c.inputs.q_len = q_len;
  c.inputs.k_len = k_len;
  c.inputs.head_dim = dim;
  c.inputs.q_heads = c.inputs.k_heads = heads;
  c.inputs.seed = 5;
  return c;
}

TEST(OraclePrepareCasesTest, PaddedHeadDimIsZeroChannels) {
  const ExactCase narrow = Plain(70, 140, 40);
  const ExactInputs in = InputsOf(narrow);
  const auto widen = [](const std::vector<uint16_t>& from) {
    std::vector<uint16_t> to(from.size() / 40 * 64, 0);
    for (size_t i = 0; i < from.size(); ++i) to[i / 40 * 64 + i % 40] = from[i];
    return to;
  };
  const std::vector<uint16_t> q = widen(in.q);
  const std::vector<uint16_t> k = widen(in.k);
  const std::vector<uint16_t> v = widen(in.v);
  for (const ExactPath path : kPaths) {
    for (const ExactGranularity granularity : kGranularities) {
      const ExactHostCall call = HostCallOf(narrow, path, granularity, kBf16Nan);
      ExactProblem wide = call.problem;
      wide.head_dim = 64;
      wide.q = {q.data(), 0, 64, 0};
      wide.k = {k.data(), 0, 64, 0};
      wide.v = {v.data(), 0, 64, 0};
      EXPECT_EQ(OracleWorkspace(call.problem, {}).Everything(),
                OracleWorkspace(wide, {}).Everything());
    }
  }
}

TEST(OraclePrepareCasesTest, PaddingAndEmptyGroups) {
  for (const ExactPath path : kPaths) {
    for (const ExactGranularity granularity : kGranularities) {
      const ExactHostCall call = HostCallOf(Plain(1, 65, 64), path, granularity, kBf16Nan);
      const OracleWorkspace w(call.problem, {});
      for (int64_t i = 64; i < w.sizes.q8; ++i) ASSERT_EQ(w.prepared.q8[i], 0) << i;
      for (int64_t i = 65 * 64; i < w.sizes.k8; ++i) ASSERT_EQ(w.prepared.k8[i], 0) << i;
      for (int64_t c = 0; c < 64; ++c) {
        for (int64_t at = 80; at < 128; ++at) ASSERT_EQ(w.prepared.v8[c * 128 + at], 0);
      }
      const bool per_warp = granularity == ExactGranularity::kPerWarp;
      const uint32_t empty =
          per_warp ? ToBits(strict::MulFtz(FromBits(0x33d6bf95), FromBits(0x3c010204)))
                   : 0x33d6bf95u;
      ASSERT_EQ(w.sizes.q_scale, per_warp ? 4 : 32);
      for (int64_t i = 1; i < w.sizes.q_scale; ++i) EXPECT_EQ(ToBits(w.prepared.q_scale[i]), empty);
      EXPECT_NE(ToBits(w.prepared.q_scale[0]), empty);
      // Path A: key 64 is the whole second block; per thread its class is 0.
      if (path != ExactPath::kB && !per_warp) {
        ASSERT_EQ(w.sizes.k_scale, 8);
        EXPECT_NE(ToBits(w.prepared.k_scale[4]), empty);
        for (int64_t i = 5; i < 8; ++i) EXPECT_EQ(ToBits(w.prepared.k_scale[i]), empty);
      }
    }
  }
}

TEST(OraclePrepareCasesTest, ZeroChannelOfV) {
  ExactCase c = Plain(4, 70, 64);
  c.fill = ExactFill::kZeroVChannel;
  for (const ExactPath path : kPaths) {
    ExactHostCall call = HostCallOf(c, path, ExactGranularity::kPerWarp, kBf16Nan);
    const OracleWorkspace zeros(call.problem, {});
    call.problem.zero_v_nan = true;
    const OracleWorkspace nans(call.problem, {});
    EXPECT_EQ(ToBits(zeros.prepared.v_scale[1]), 0u);
    EXPECT_EQ(ToBits(nans.prepared.v_scale[1]), 0u);
    for (int64_t at = 0; at < 128; ++at) {
      EXPECT_EQ(zeros.prepared.v8[128 + at], 0);
      EXPECT_EQ(nans.prepared.v8[128 + at], 0x7f);
      EXPECT_EQ(zeros.prepared.v8[at], nans.prepared.v8[at]);
    }
  }
  // 30 keys: A pads to 64, B to 128.
  c.inputs.k_len = 30;
  for (const ExactPath path : {ExactPath::kA1, ExactPath::kB}) {
    ExactHostCall call = HostCallOf(c, path, ExactGranularity::kPerWarp, kBf16Nan);
    call.problem.zero_v_nan = true;
    const OracleWorkspace w(call.problem, {});
    for (int64_t at = 0; at < 128; ++at) {
      EXPECT_EQ(w.prepared.v8[128 + at], at < 64 || path == ExactPath::kB ? 0x7f : 0) << at;
    }
  }
}

TEST(OraclePrepareCasesTest, MeanOrderGivenMeanAndNoSmoothing) {
  const ExactHostCall call =
      HostCallOf(Plain(3, 600, 64, 2), ExactPath::kB, ExactGranularity::kPerThread, kBf16Nan);
  const OracleWorkspace w(call.problem, {});
  const auto* const k = static_cast<const uint16_t*>(call.problem.k.data);
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t c = 0; c < 64; ++c) {
      float total = 0.0f;
      for (int64_t chunk = 0; chunk < 3; ++chunk) {
        float sum = 0.0f;
        for (int64_t lane = 0; lane < exact::kMeanLanes; ++lane) {
          float of_lane = 0.0f;
          for (int64_t key = chunk * 256 + lane; key < std::min<int64_t>(600, (chunk + 1) * 256);
               key += exact::kMeanLanes) {
            of_lane += Bf16ToFloat(k[(key * 2 + h) * 64 + c]);
          }
          sum += of_lane;
        }
        EXPECT_EQ(w.prepared.partials[((h * 3 + chunk) * 2) * 64 + c], sum);
        total += sum;
      }
      EXPECT_EQ(w.prepared.k_mean[h * 64 + c], FloatToBf16(total * (1.0f / 600.0f)));
    }
  }
  // The same mean given: the same bytes but for the sums, which are not formed.
  ExactProblem given = call.problem;
  const std::vector<uint16_t> mean = w.Copy(w.prepared.k_mean, w.sizes.k_mean);
  given.given_k_mean = mean.data();
  const OracleWorkspace g(given, {});
  EXPECT_EQ(g.Copy(g.prepared.k8, g.sizes.k8), w.Copy(w.prepared.k8, w.sizes.k8));
  EXPECT_EQ(g.Copy(g.prepared.k_mean, g.sizes.k_mean), mean);
  ExactProblem rough = call.problem;
  rough.smooth_k = false;
  const OracleWorkspace r(rough, {});
  EXPECT_NE(r.Copy(r.prepared.k8, r.sizes.k8), w.Copy(w.prepared.k8, w.sizes.k8));
  for (int64_t i = 0; i < r.sizes.k_mean; ++i) EXPECT_EQ(r.prepared.k_mean[i], 0);
  for (int64_t i = 0; i < w.sizes.partials; ++i) {
    const bool maximum = i / 64 % 2 == 1;
    const uint32_t wanted = maximum ? ToBits(w.prepared.partials[i]) : 0u;
    EXPECT_EQ(ToBits(g.prepared.partials[i]), wanted);
    EXPECT_EQ(ToBits(r.prepared.partials[i]), wanted);
  }
}

// T12: each sequence of a batch is prepared as if it were alone.
TEST(OraclePrepareCasesTest, BatchIsSequencesApart) {
  ExactCase c = Plain(50, 150, 64, 2);
  c.inputs.batch = 2;
  const ExactHostCall both = HostCallOf(c, ExactPath::kA32, ExactGranularity::kPerWarp, kBf16Nan);
  const OracleWorkspace w(both.problem, {});
  ExactProblem second = both.problem;
  second.batch = 1;
  second.q.data = static_cast<const uint16_t*>(second.q.data) + second.q.batch_stride;
  second.k.data = static_cast<const uint16_t*>(second.k.data) + second.k.batch_stride;
  second.v.data = static_cast<const uint16_t*>(second.v.data) + second.v.batch_stride;
  const OracleWorkspace alone(second, {});
  const int64_t k8 = alone.sizes.k8;
  EXPECT_EQ(w.Copy(w.prepared.k8 + k8, k8), alone.Copy(alone.prepared.k8, k8));
  const int64_t mean = alone.sizes.k_mean;
  EXPECT_EQ(w.Copy(w.prepared.k_mean + mean, mean), alone.Copy(alone.prepared.k_mean, mean));
  EXPECT_NE(w.Copy(w.prepared.k_mean, mean), alone.Copy(alone.prepared.k_mean, mean));
}

// T4, T5: offsets beyond 2^31 and 2^32 elements, in memory of which only the rows are real.
TEST(OraclePrepareCasesTest, OffsetsBeyond32Bits) {
  const ExactHostCall dense =
      HostCallOf(Plain(3, 3, 64), ExactPath::kB, ExactGranularity::kPerWarp, kBf16Nan);
  const OracleWorkspace wanted(dense.problem, {});
  for (const int64_t tokens : {99865, 99866, 99867, 199729, 200064}) {
    const int64_t row = tokens * 21504;  // row 1 lies where token `tokens` of the fused view does
    const size_t bytes = static_cast<size_t>(2 * row + 64) * 2;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) GTEST_SKIP() << "no address space of " << bytes << " bytes";
    ExactProblem far = dense.problem;
    const auto* const from = static_cast<const uint16_t*>(dense.problem.k.data);
    for (int64_t i = 0; i < 3; ++i) {
      std::copy(from + i * 64, from + (i + 1) * 64, static_cast<uint16_t*>(memory) + i * row);
    }
    far.k = {memory, 0, row, 0};
    ASSERT_TRUE(CheckExactProblem(far).ok());
    const OracleWorkspace w(far, {});
    EXPECT_EQ(w.Everything(), wanted.Everything());
    far.k = {static_cast<uint16_t*>(memory) + 2 * row, 0, -row, 0};  // the rows in reverse
    const OracleWorkspace reverse(far, {});
    EXPECT_EQ(w.Copy(w.prepared.k8, 64), w.Copy(reverse.prepared.k8 + 2 * 64, 64));
    munmap(memory, bytes);
  }
}

TEST(OraclePrepareCasesTest, NothingToPrepareAndBadBuffers) {
  ExactHostCall call =
      HostCallOf(Plain(3, 5, 64), ExactPath::kB, ExactGranularity::kPerWarp, kBf16Nan);
  ExactProblem no_keys = call.problem;
  no_keys.k_len = 0;
  no_keys.k.data = no_keys.v.data = nullptr;
  const OracleWorkspace w(no_keys, {});
  ASSERT_TRUE(w.status.ok()) << w.status;
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(w.prepared.k_mean[i], 0);
    EXPECT_EQ(ToBits(w.prepared.v_scale[i]), 0u);
  }
  EXPECT_EQ(w.prepared.not_finite[1], kAllFinite);
  ExactPrepared missing = w.prepared;
  missing.q_scale = nullptr;
  const absl::Status status = OraclePrepare(no_keys, {}, missing);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("q_scale"), std::string::npos) << status;
  ExactProblem wide = call.problem;
  wide.head_dim = 129;
  EXPECT_EQ(OraclePrepare(wide, {}, w.prepared).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
