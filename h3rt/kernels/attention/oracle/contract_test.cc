// Preparation against the statements of research/vortex_exact_attention/NUMERICAL_CONTRACT.md,
// sections 2 to 7, one by one, each written again here from the text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "h3rt/base/file.h"
#include "h3rt/kernels/attention/exact/check.h"
#include "h3rt/kernels/attention/exact/golden_file.h"
#include "h3rt/kernels/attention/oracle/attention_testing.h"

namespace h3rt {
namespace {

using strict::AddFtz;
using strict::FmaFtz;
using strict::FromBits;
using strict::MulFtz;
using strict::Rcp;
using strict::SubFtz;
using strict::ToBits;

TEST(ContractTest, PathsHaveTheirTilesAndGroups) {
  for (const ExactPath path : kPaths) {
    const exact::Geometry g = exact::GeometryOf(path);
    const bool b = path == ExactPath::kB;
    EXPECT_EQ(g.cta_q, b ? 64 : 128);
    EXPECT_EQ(g.cta_k, b ? 128 : 64);
    EXPECT_EQ(g.warp_q, b ? 16 : 32);
    EXPECT_EQ(g.tail, b ? 1 : 2);
    EXPECT_EQ(g.v_pad, b ? 128 : 64);
    EXPECT_EQ(FromBits(g.v_max), path == ExactPath::kA16 ? 2.25f : 448.0f);
    EXPECT_EQ(exact::Epochs(g, 0, 1, false), 1);
    EXPECT_EQ(exact::Epochs(g, 0, 1000, false), b ? 8 : 16);
    EXPECT_EQ(exact::Epochs(g, 1, 1000, true), b ? 1 : 4) << "keys up to the end of the tile";
    EXPECT_EQ(exact::Epochs(g, 9, 200, true), b ? 2 : 4) << "no key beyond the length";
  }
}

TEST(ContractTest, ConstantsAreTheirBits) {
  EXPECT_EQ(ToBits(1.4426950408889634f), exact::kLog2E);
  EXPECT_EQ(ToBits(-8.807f), exact::kMinusOffset);
  EXPECT_EQ(ToBits(-5000000.0f), exact::kMasked);
  EXPECT_EQ(ToBits(1.0f / 127.0f), exact::kOver127);
  EXPECT_EQ(ToBits(1e-7f), exact::kEpsilon);
  EXPECT_EQ(ToBits(static_cast<float>(1 / 1.44269504)), exact::kLn2);
  EXPECT_EQ(ToBits(127.0f), exact::k127);
  EXPECT_EQ(ToBits(448.0f), exact::k448);
  EXPECT_EQ(ToBits(2.25f), exact::k2p25);
  EXPECT_LE(448 * 2.25 * 64, 65504) << "float16 sums of 64 products cannot overflow";
}

TEST(ContractTest, VTokensGoToTheirPositions) {
  const int wanted[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(exact::VPosition(i), wanted[i]);
    EXPECT_EQ(exact::VToken(wanted[i]), i);
  }
  for (int t = 0; t < 4; ++t) {  // byte s of lane t holds columns 2t, 2t + 1, 2t + 8, 2t + 9
    for (int s = 0; s < 4; ++s) EXPECT_EQ(exact::VToken(4 * t + s), 2 * t + s % 2 + s / 2 * 8);
  }
}

float Half(const Call& call, float value) {
  return WidenExact(call.problem.type, NarrowExact(call.problem.type, value));
}

TEST(ContractTest, MeanOfKIsSummedInItsOrder) {
  for (const ExactType type : {ExactType::kBf16, ExactType::kF16}) {
    ExactInputSpec spec = Spec(1, 600, 64);
    spec.type = type;
    Call call(spec, ExactPath::kB, ExactGranularity::kPerWarp);
    call.Prepare();
    for (int64_t c = 0; c < 64; ++c) {
      float sum = 0.0f;
      for (int64_t chunk = 0; chunk < 600; chunk += 256) {
        float of_chunk = 0.0f;
        for (int64_t lane = 0; lane < 16; ++lane) {
          float of_lane = 0.0f;
          for (int64_t key = chunk + lane; key < std::min<int64_t>(600, chunk + 256); key += 16) {
            of_lane =
                AddFtz(of_lane, WidenExact(type, call.inputs.k[static_cast<size_t>(key * 64 + c)]));
          }
          of_chunk = AddFtz(of_chunk, of_lane);
        }
        sum = AddFtz(sum, of_chunk);
      }
      const float mean = Half(call, MulFtz(sum, 1.0f / 600.0f));
      ASSERT_EQ(WidenExact(type, call.prepared.k_mean[c]), mean) << c;
    }
  }
}

// The rows that share the scale of index `index`, from the enumeration in the text.
std::vector<int64_t> GroupOf(ExactPath path, ExactGranularity granularity, bool of_k,
                             int64_t index) {
  const bool b = path == ExactPath::kB;
  std::vector<int64_t> rows;
  if (!of_k) {
    const int64_t warp = b ? 16 : 32;
    if (granularity == ExactGranularity::kPerWarp) {
      for (int64_t i = 0; i < warp; ++i) rows.push_back(index * warp + i);
    } else {
      for (int64_t a = 0; a < warp / 8; ++a) rows.push_back(index / 8 * warp + 8 * a + index % 8);
    }
    return rows;
  }
  const int64_t block = b ? 128 : 64;
  if (granularity == ExactGranularity::kPerWarp) {
    for (int64_t i = 0; i < block; ++i) rows.push_back(index * block + i);
  } else {
    for (int64_t a = 0; a < block / 8; ++a) {
      rows.push_back(index / 4 * block + 8 * a + 2 * (index % 4));
      rows.push_back(index / 4 * block + 8 * a + 2 * (index % 4) + 1);
    }
  }
  return rows;
}

int8_t PerWarpCode(float y) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(y), -128.0f, 127.0f));
}
int8_t PerThreadCode(float y) {
  return static_cast<int8_t>(std::trunc(AddFtz(y, y >= 0.0f ? 0.5f : -0.5f)));
}

void ExpectInt8Of(const Call& call, bool of_k) {
  const ExactProblem& p = call.problem;
  const bool per_warp = p.granularity == ExactGranularity::kPerWarp;
  const int64_t len = of_k ? p.k_len : p.q_len;
  const std::vector<uint16_t>& input = of_k ? call.inputs.k : call.inputs.q;
  const int8_t* codes = of_k ? call.prepared.k8 : call.prepared.q8;
  const float* scales = of_k ? call.prepared.k_scale : call.prepared.q_scale;
  const ExactPreparedSizes sizes = PreparedSizes(p);
  const auto x = [&](int64_t row, int64_t c) {
    const float value = WidenExact(p.type, input[static_cast<size_t>(row * 64 + c)]);
    if (!of_k) return value;
    const float less = SubFtz(value, WidenExact(p.type, call.prepared.k_mean[c]));
    return per_warp ? less : Half(call, less);
  };
  for (int64_t index = 0; index < (of_k ? sizes.k_scale : sizes.q_scale); ++index) {
    float amax = per_warp ? FromBits(0x33d6bf95u) : 0.0f;
    const std::vector<int64_t> rows = GroupOf(p.path, p.granularity, of_k, index);
    for (const int64_t row : rows) {
      for (int64_t c = 0; c < 64 && row < len; ++c) amax = std::max(amax, std::fabs(x(row, c)));
    }
    const float scale = per_warp ? MulFtz(amax, FromBits(0x3c010204u))
                                 : FmaFtz(amax, FromBits(0x3c010204u), FromBits(0x33d6bf95u));
    ASSERT_EQ(ToBits(scales[index]), ToBits(scale)) << "scale " << index;
    const float inverse = per_warp ? MulFtz(Rcp(amax), 127.0f) : Rcp(scale);
    for (const int64_t row : rows) {
      for (int64_t c = 0; c < 64 && row < len; ++c) {
        const float y = MulFtz(x(row, c), inverse);
        ASSERT_EQ(codes[row * 64 + c], per_warp ? PerWarpCode(y) : PerThreadCode(y))
            << row << " " << c;
      }
    }
  }
}

TEST(ContractTest, Int8CodesAndScalesOfQAndK) {
  for (const ExactPath path : kPaths) {
    for (const ExactGranularity granularity : kGranularities) {
      for (const ExactType type : {ExactType::kBf16, ExactType::kF16}) {
        SCOPED_TRACE(GoldenKey(path, granularity));
        ExactInputSpec spec = Spec(77, 205, 64);
        spec.type = type;
        Call call(spec, path, granularity);
        call.Prepare();
        ExpectInt8Of(call, false);
        ExpectInt8Of(call, true);
      }
    }
  }
}

TEST(ContractTest, TiesOfInt8CodesGoToEvenOrAway) {
  EXPECT_EQ(strict::ToS8Even(2.5f), 2);
  EXPECT_EQ(strict::ToS8Even(3.5f), 4);
  EXPECT_EQ(strict::ToS8Even(-200.0f), -128);
  EXPECT_EQ(PerThreadCode(2.5f), 3);
  EXPECT_EQ(PerThreadCode(-2.5f), -3);
  EXPECT_EQ(PerThreadCode(std::nextafter(0.5f, 0.0f)), 1) << "its sum with 0.5 rounds to 1";
}

TEST(ContractTest, Fp8CodesAndScalesOfV) {
  for (const ExactPath path : kPaths) {
    SCOPED_TRACE(GoldenKey(path, ExactGranularity::kPerWarp));
    Call call(Spec(3, 205, 64), path, ExactGranularity::kPerWarp);
    call.Prepare();
    const float most = path == ExactPath::kA16 ? 2.25f : 448.0f;
    for (int64_t c = 0; c < 64; ++c) {
      float amax = 0.0f;
      const auto v = [&](int64_t key) {
        return Bf16ToFloat(call.inputs.v[static_cast<size_t>(key * 64 + c)]);
      };
      for (int64_t key = 0; key < 205; ++key) amax = std::max(amax, std::fabs(v(key)));
      ASSERT_EQ(ToBits(call.prepared.v_scale[c]), ToBits(MulFtz(amax, Rcp(most))));
      const float inverse = MulFtz(Rcp(amax), most);
      for (int64_t key = 0; key < 256; ++key) {
        const int64_t i = key % 16;
        const int64_t place = key - i + 2 * (i / 8) + 4 * (i / 2 % 4) + i % 2;
        const uint8_t wanted = key < 205 ? strict::ToE4m3(MulFtz(v(key), inverse)) : uint8_t{0};
        ASSERT_EQ(call.prepared.v8[c * 256 + place], wanted) << key << " " << c;
      }
    }
  }
}

TEST(ContractTest, ScaleOfTheHeadDimensionBeforePadding) {
  EXPECT_EQ(ToBits(DefaultSmScale(64)), ToBits(0.125f));
  EXPECT_EQ(ToBits(MulFtz(DefaultSmScale(64), FromBits(exact::kLog2E))), 0x3e38aa3bu);
  EXPECT_EQ(ToBits(MulFtz(DefaultSmScale(128), FromBits(exact::kLog2E))), 0x3e0293eeu);
  EXPECT_EQ(exact::PaddedHeadDim(1), 64);
  EXPECT_EQ(exact::PaddedHeadDim(65), 128);
  EXPECT_EQ(exact::PaddedHeadDim(129), 0);
}

TEST(ContractTest, WhatTheContractDoesNotTakeIsRefused) {
  Call call(Spec(3, 5, 64), ExactPath::kB, ExactGranularity::kPerWarp);
  EXPECT_TRUE(CheckExactProblem(call.problem).ok());
  for (const float scale : {0.0f, -0.125f, 1e-5f, std::nanf(""), INFINITY}) {
    call.problem.sm_scale = scale;
    EXPECT_EQ(CheckExactProblem(call.problem).code(), absl::StatusCode::kInvalidArgument) << scale;
  }
  call.problem.sm_scale = 0.125f;
  call.problem.head_dim = 129;
  EXPECT_EQ(CheckExactProblem(call.problem).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ContractTest, NanAndInfinityAreReportedWithTensorAndIndex) {
  for (const unsigned bits : {0x7fc0u, 0x7f80u, 0xff80u}) {
    Call call(Spec(3, 5, 64), ExactPath::kB, ExactGranularity::kPerWarp);
    call.Prepare();
    EXPECT_TRUE(CheckFinite(call.problem, call.prepared.not_finite).ok());
    call.inputs.v[2 * 64 + 7] = static_cast<uint16_t>(bits);
    call.Prepare();
    EXPECT_EQ(call.prepared.not_finite[2], 2u * 64 + 7);
    EXPECT_EQ(call.prepared.not_finite[0], kAllFinite);
    EXPECT_EQ(CheckFinite(call.problem, call.prepared.not_finite).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ContractTest, StridesAndBasesDoNotChangeBytes) {
  for (const ExactPath path : kPaths) {
    ExactInputSpec spec = Spec(21, 70, 64);
    spec.q_heads = 2;
    spec.k_heads = 2;
    Call dense(spec, path, ExactGranularity::kPerThread);
    dense.Run();
    // One buffer of rows [q | k | v], whose base is 2 bytes off any alignment.
    std::vector<uint16_t> fused(1 + 70 * 384, 0x7fc0u);
    const auto put = [&](const std::vector<uint16_t>& from, size_t at) {
      for (size_t i = 0; i < from.size(); ++i) fused[1 + i / 128 * 384 + at + i % 128] = from[i];
    };
    put(dense.inputs.q, 0);
    put(dense.inputs.k, 128);
    put(dense.inputs.v, 256);
    Call call(spec, path, ExactGranularity::kPerThread);
    call.problem.q = {fused.data() + 1, 70 * 384, 384, 64};
    call.problem.k = {fused.data() + 1 + 128, 70 * 384, 384, 64};
    call.problem.v = {fused.data() + 1 + 256, 70 * 384, 384, 64};
    call.Run();
    EXPECT_EQ(call.o, dense.o);
    EXPECT_TRUE(std::equal(call.lse.begin(), call.lse.end(), dense.lse.begin(),
                           [](float a, float b) { return ToBits(a) == ToBits(b); }));
  }
}

// The table at the end of the text names the test of each statement: all of them are in this
// program.
TEST(ContractTest, EveryTestThatTheTextNamesExists) {
  const std::string text =
      ReadFile(H3RT_SOURCE_DIR "/research/vortex_exact_attention/NUMERICAL_CONTRACT.md").value();
  std::set<std::string> tests;
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *unit.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      tests.insert(std::string(suite.name()) + "." + suite.GetTestInfo(j)->name());
    }
  }
  const size_t table = text.find("| statement | test |");
  ASSERT_NE(table, std::string::npos);
  int named = 0;
  for (size_t at = text.find('`', table); at != std::string::npos; at = text.find('`', at)) {
    const size_t end = text.find('`', at + 1);
    ASSERT_NE(end, std::string::npos);
    const std::string name = text.substr(at + 1, end - at - 1);
    EXPECT_EQ(tests.count(name), 1u) << name;
    ++named;
    at = end + 1;
  }
  EXPECT_GT(named, 20);
}

}  // namespace
}  // namespace h3rt
