// The oracle of exact attention against the statements of
// research/vortex_exact_attention/NUMERICAL_CONTRACT.md, one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "h3rt/kernels/attention/exact/golden_file.h"
#include "h3rt/kernels/attention/oracle/attention_testing.h"

namespace h3rt {
namespace {

using strict::AddFtz;
using strict::FmaFtz;
using strict::FromBits;
using strict::MulFtz;
using strict::ToBits;

// A problem of several heads, ragged, with a tile that ends early where causal.
template <typename Body>
void ForEveryForm(const Body& body) {
  for (const ExactPath path : kPaths) {
    for (const ExactGranularity granularity : kGranularities) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(GoldenKey(path, granularity) + (causal ? " causal" : ""));
        ExactInputSpec spec = Spec(150, 333, 64);
        spec.q_heads = 2;
        Call call(spec, path, granularity, causal);
        call.Run();
        body(call);
      }
    }
  }
}

// The rows of a call, with the index of what checkpoints hold of each.
struct RowOf {
  int64_t at = 0;  // (head, row)
  int64_t head = 0;
  int64_t row = 0;
  int64_t epochs = 0;  // that its tile visits
};
std::vector<RowOf> RowsOf(const Call& call) {
  const ExactProblem& p = call.problem;
  std::vector<RowOf> rows;
  for (int64_t head = 0; head < p.q_heads; ++head) {
    for (int64_t row = 0; row < p.q_len; ++row) {
      const int64_t end =
          p.causal ? (row / call.geometry().cta_q + 1) * call.geometry().cta_q : p.k_len;
      const int64_t keys = std::min(end, p.k_len);
      rows.push_back({head * p.q_len + row, head, row,
                      (keys + call.geometry().cta_k - 1) / call.geometry().cta_k});
    }
  }
  return rows;
}

TEST(OracleAttentionTest, ScoresAreIntegersAndTheLastEpochsAreDequantised) {
  for (const ExactPath path : kPaths) {
    const exact::Geometry g = exact::GeometryOf(path);
    const int64_t tail = path == ExactPath::kB ? 1 : 2;
    for (const ExactGranularity granularity : kGranularities) {
      for (int64_t n = 1; n <= 3; ++n) {
        SCOPED_TRACE(GoldenKey(path, granularity) + ", epochs " + std::to_string(n));
        Call call(Spec(9, g.cta_k * n - 3), path, granularity);
        call.Run();
        const ExactProblem& p = call.problem;
        const float scale = MulFtz(p.sm_scale, FromBits(0x3fb8aa3bu));
        EXPECT_EQ(ToBits(scale), 0x3e0293eeu);
        ASSERT_EQ(call.epochs(), n);
        for (const RowOf& r : RowsOf(call)) {
          for (int64_t key = 0; key < p.k_len; ++key) {
            const int64_t j = key / g.cta_k;
            const int64_t lane = (r.at * n + j) * 4 + key % 8 / 2;
            int32_t qk = 0;
            for (int64_t c = 0; c < 128; ++c) {
              qk += call.prepared.q8[r.row * 128 + c] * call.prepared.k8[key * 128 + c];
            }
            const int64_t q_index = exact::QScaleIndex(g, granularity, r.row);
            const int64_t k_index = exact::KScaleIndex(g, granularity, key);
            const float dq = MulFtz(call.prepared.q_scale[q_index], call.prepared.k_scale[k_index]);
            const bool plain = j < n - tail;
            const float x = plain ? static_cast<float>(qk) : MulFtz(static_cast<float>(qk), dq);
            ASSERT_EQ(call.at.qk[r.at * p.k_len + key], qk);
            ASSERT_EQ(ToBits(call.at.dq[lane]), ToBits(dq));
            ASSERT_EQ(ToBits(call.at.s[lane]), ToBits(plain ? MulFtz(scale, dq) : scale));
            ASSERT_EQ(ToBits(call.at.x[r.at * p.k_len + key]), ToBits(x)) << key;
          }
        }
      }
    }
  }
}

// Checks the observables of one epoch of a row against each other, lane by lane as a warp holds
// them: column 16 group + 2t + 8 (k div 4) + k mod 2 is element k of lane t.
void ExpectSoftmaxOf(const Call& call, const RowOf& r, int64_t j) {
  const exact::Geometry g = call.geometry();
  const int64_t at = r.at * call.epochs() + j;
  const float before = j == 0 ? FromBits(0xca989680u) : call.at.m[at - 1];
  float m = before;
  for (int64_t t = 0; t < 4; ++t) {
    float top = FromBits(0xca989680u);
    for (int64_t c = 0; c < g.cta_k; ++c) {
      const int64_t key = j * g.cta_k + c;
      if (c % 8 / 2 != t || key >= call.problem.k_len) continue;
      top = std::max(top, call.at.x[r.at * call.problem.k_len + key]);
    }
    m = std::max(m, FmaFtz(top, call.at.s[at * 4 + t], FromBits(0xc10ce979u)));
  }
  ASSERT_EQ(ToBits(call.at.m[at]), ToBits(m));
  ASSERT_EQ(ToBits(call.at.a[at]), ToBits(strict::Ex2(strict::SubFtz(before, m))));
  if (j == 0) {
    ASSERT_EQ(ToBits(call.at.a[at]), 0u) << "takes the ones of d away";
  }
  uint8_t largest = 0;
  for (int64_t t = 0; t < 4; ++t) {
    float d = j == 0 ? 1.0f : call.at.d_lane[(at - 1) * 4 + t];
    for (int64_t group = 0; group < g.cta_k / 16; ++group) {
      std::array<float, 4> p{};
      for (int64_t i = 0; i < 4; ++i) {  // elements 0, 1, 4, 5 of the lane: one row
        const int64_t key = j * g.cta_k + 16 * group + 2 * t + 8 * (i / 2) + i % 2;
        if (key >= call.problem.k_len) continue;
        const int64_t place = r.at * call.problem.k_len + key;
        const float value = call.at.p[place];
        ASSERT_EQ(ToBits(value),
                  ToBits(strict::Ex2(FmaFtz(call.at.x[place], call.at.s[at * 4 + t], -m))));
        ASSERT_EQ(call.at.p8[place], strict::ToE4m3(value));
        if (call.problem.causal && key > r.row) {
          ASSERT_EQ(ToBits(value), 0u) << "masked";
        }
        p[static_cast<size_t>(i)] = value;
        largest = std::max(largest, call.at.p8[place]);
      }
      const float sum = AddFtz(AddFtz(AddFtz(p[0], p[1]), p[2]), p[3]);
      d = group == 0 ? FmaFtz(d, call.at.a[at], sum) : AddFtz(d, sum);
    }
    ASSERT_EQ(ToBits(call.at.d_lane[at * 4 + t]), ToBits(d));
  }
  if (m > before) {
    ASSERT_EQ(largest, 0x7eu) << "the peak is 448";
  }
  if (j > 0) return;
  double sum = 0;
  for (int64_t t = 0; t < 4; ++t) sum += call.at.d_lane[at * 4 + t];
  ASSERT_GE(sum, 447.0) << "the row maximum alone is 2^8.807";
}

TEST(OracleAttentionTest, MaximumExponentialsAndDenominator) {
  ForEveryForm([](const Call& call) {
    for (const RowOf& r : RowsOf(call)) {
      for (int64_t j = 0; j < r.epochs; ++j) ExpectSoftmaxOf(call, r, j);
    }
  });
}

TEST(OracleAttentionTest, ProbabilitiesBecomeE4m3) {
  EXPECT_EQ(strict::ToE4m3(0x1p-10f), 0x00u) << "a tie, to even";
  EXPECT_EQ(strict::ToE4m3(std::nextafter(0x1p-10f, 1.0f)), 0x01u) << "subnormals are kept";
  EXPECT_EQ(strict::ToE4m3(std::nextafter(432.0f, 0.0f)), 0x7du);
  EXPECT_EQ(strict::ToE4m3(432.0f), 0x7eu);
  EXPECT_EQ(strict::ToE4m3(1000.0f), 0x7eu) << "saturates";
  EXPECT_EQ(strict::ToE4m3(std::nanf("")), 0x7fu);
}

TEST(OracleAttentionTest, InnerSumsAndOuterAccumulator) {
  ForEveryForm([](const Call& call) {
    const ExactProblem& p = call.problem;
    const exact::Geometry g = call.geometry();
    const int64_t steps = g.cta_k / 32;
    const int64_t padded = exact::RoundUp(p.k_len, 128);
    for (const RowOf& r : RowsOf(call)) {
      for (int64_t j = 0; j < r.epochs; ++j) {
        const int64_t at = r.at * call.epochs() + j;
        for (int64_t c = 0; c < 64; ++c) {
          const float ro_before = j == 0 ? 0.0f : call.at.ro[(at - 1) * 64 + c];
          const float a = call.at.a[at];
          const bool a1 = p.path == ExactPath::kA1;
          double sum = a1 ? MulFtz(ro_before, a) : 0.0f;
          for (int64_t f = 0; f < steps; ++f) {
            for (int64_t key = j * g.cta_k + 32 * f; key < j * g.cta_k + 32 * (f + 1); ++key) {
              if (key >= p.k_len) continue;
              const int64_t place = key / 16 * 16 + exact::VPosition(static_cast<int>(key % 16));
              sum += double{E4m3ToFloat(call.at.p8[r.at * p.k_len + key])} *
                     double{E4m3ToFloat(call.prepared.v8[c * padded + place])};
            }
            const float u = call.at.u[(at * steps + f) * 64 + c];
            // A half ulp of the accumulator's type; sums of products are exact in double.
            const double half = p.path == ExactPath::kA16 ? 0x1p-11 : 0x1p-24;
            ASSERT_LE(std::fabs(u - sum), half * std::fabs(sum) + 0x1p-25);
            if (p.path == ExactPath::kA16) {
              ASSERT_EQ(u, F16ToFloat(FloatToF16(u)));
            }
            sum = u;  // the chain goes on from the rounded value
          }
          const float u = static_cast<float>(sum);
          ASSERT_EQ(ToBits(call.at.ro[at * 64 + c]), ToBits(a1 ? u : FmaFtz(a, ro_before, u)));
        }
      }
    }
  });
}

TEST(OracleAttentionTest, EpilogueAndLse) {
  ForEveryForm([](const Call& call) {
    const ExactProblem& p = call.problem;
    for (const RowOf& r : RowsOf(call)) {
      const int64_t last = r.at * call.epochs() + r.epochs - 1;
      const float* lanes = call.at.d_lane + last * 4;
      const float d = AddFtz(AddFtz(lanes[0], lanes[1]), AddFtz(lanes[2], lanes[3]));
      ASSERT_EQ(ToBits(call.at.d[r.at]), ToBits(d));
      ASSERT_EQ(ToBits(call.at.r[r.at]), ToBits(strict::Rcp(d)));
      for (int64_t c = 0; c < 64; ++c) {
        const float scaled = MulFtz(call.at.ro[last * 64 + c], call.at.r[r.at]);
        const float out = MulFtz(scaled, call.prepared.v_scale[c]);
        ASSERT_EQ(ToBits(call.at.out32[r.at * 64 + c]), ToBits(out));
        ASSERT_EQ(call.o[static_cast<size_t>((r.row * p.q_heads + r.head) * 64 + c)],
                  FloatToBf16(out));
      }
      const float lse2 = AddFtz(strict::Lg2(d), call.at.m[last]);
      ASSERT_EQ(ToBits(call.at.lse2[r.at]), ToBits(lse2));
      const float raw = MulFtz(lse2, FromBits(0x3f317218u));
      ASSERT_EQ(ToBits(call.lse_raw[static_cast<size_t>(r.at)]), ToBits(raw));
      double dot = 0;
      for (int64_t c = 0; c < 64; ++c) {
        const size_t i = static_cast<size_t>((r.row * p.q_heads + r.head) * 64 + c);
        dot += double{Bf16ToFloat(call.inputs.q[i])} * Bf16ToFloat(call.prepared.k_mean[c]);
      }
      const float c = RoundToBf16(static_cast<float>(dot));
      ASSERT_EQ(ToBits(call.lse[static_cast<size_t>(r.at)]),
                ToBits(AddFtz(raw, MulFtz(c, p.sm_scale))));
    }
  });
}
TEST(OracleAttentionTest, RowsAreIndependent) {
  for (const ExactPath path : kPaths) {
    SCOPED_TRACE(GoldenKey(path, ExactGranularity::kPerThread));
    Call alone(Spec(70, 200, 64), path, ExactGranularity::kPerThread);
    alone.Run();
    Call other(Spec(70, 200, 64), path, ExactGranularity::kPerThread);
    other.Prepare();
    const int64_t row = 41;
    const int64_t scale = exact::QScaleIndex(other.geometry(), ExactGranularity::kPerThread, row);
    for (int64_t i = 0; i < 128 * 64; ++i) {
      if (i / 64 != row) other.prepared.q8[i] = static_cast<int8_t>(i * 37 % 255 - 127);
    }
    for (int64_t i = 0; i < PreparedSizes(other.problem).q_scale; ++i) {
      if (i != scale) other.prepared.q_scale[i] *= 3.0f;
    }
    other.Attend();
    const auto same = [&](const std::vector<uint16_t>& a, const std::vector<uint16_t>& b,
                          int64_t at) {
      return std::equal(&a[at * 64], &a[at * 64 + 64], &b[at * 64]);
    };
    EXPECT_TRUE(same(alone.o, other.o, row));
    EXPECT_FALSE(same(alone.o, other.o, row + 1)) << "the change has to do something";
    EXPECT_EQ(ToBits(alone.lse_raw[41]), ToBits(other.lse_raw[41]));
  }
}

TEST(OracleAttentionTest, WhatLiesBeyondTheLengthsHasNoEffect) {
  for (const ExactPath path : kPaths) {
    for (const bool causal : {false, true}) {
      const ExactInputSpec spec = Spec(65, 77, 64);
      Call clean(spec, path, ExactGranularity::kPerWarp, causal);
      clean.Run();
      ExactInputs inputs = MakeExactInputs(spec);
      for (std::vector<uint16_t>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
        tensor->resize(tensor->size() + 64 * 64, 0x7fc0u);  // rows of NaN
        for (size_t i = tensor->size() - 32 * 64; i < tensor->size(); ++i) (*tensor)[i] = 0x7149u;
      }
      Call dirty(spec, inputs, path, ExactGranularity::kPerWarp, causal);
      dirty.o.resize(65 * 64);
      dirty.Prepare();
      for (int64_t i = 77 * 64; i < 128 * 64; ++i) dirty.prepared.k8[i] = 127;
      for (int64_t i = 65 * 64; i < 128 * 64; ++i) dirty.prepared.q8[i] = -128;
      dirty.Attend();
      const CheckpointComparison same = CompareCheckpoints(clean.problem, dirty.at, clean.at);
      EXPECT_TRUE(same.first.empty()) << same.first[0].Text();
      EXPECT_GT(same.compared, 0);
      EXPECT_EQ(clean.o, dirty.o);
      EXPECT_EQ(0, std::memcmp(clean.lse.data(), dirty.lse.data(), 65 * 4));
    }
  }
}

TEST(OracleAttentionTest, GroupedQueriesEqualRepeatedKeys) {
  ExactInputSpec spec = Spec(33, 150, 64);
  spec.q_heads = 4;
  spec.k_heads = 2;
  ExactInputSpec repeated = spec;
  repeated.k_heads = 4;
  for (const ExactPath path : kPaths) {
    ExactInputs inputs = MakeExactInputs(spec);
    ExactInputs wide = inputs;
    for (auto [from, to] : {std::pair(&inputs.k, &wide.k), std::pair(&inputs.v, &wide.v)}) {
      to->resize(150 * 4 * 64);
      for (size_t i = 0; i < to->size(); ++i) {
        (*to)[i] = (*from)[i / 256 * 128 + i / 128 % 2 * 64 + i % 64];
      }
    }
    Call grouped(spec, inputs, path, ExactGranularity::kPerThread);
    Call whole(repeated, wide, path, ExactGranularity::kPerThread);
    grouped.Run();
    whole.Run();
    EXPECT_EQ(grouped.o, whole.o);
    EXPECT_EQ(0, std::memcmp(grouped.lse.data(), whole.lse.data(), grouped.lse.size() * 4));
  }
}

TEST(OracleAttentionTest, PaddedHeadDimensionWritesOnlyItsOwnChannels) {
  ExactInputSpec spec = Spec(20, 70, 40);
  Call narrow(spec, ExactPath::kA32, ExactGranularity::kPerWarp);
  // Rows of 50, of which 40 are written, and some room behind.
  std::vector<uint16_t> o(20 * 50 + 64, 0xabcdu);
  narrow.problem.o = {o.data(), 20 * 50, 50, 40};
  narrow.Run();
  ExactInputs inputs;
  for (auto [from, to] :
       {std::pair(&narrow.inputs.q, &inputs.q), std::pair(&narrow.inputs.k, &inputs.k),
        std::pair(&narrow.inputs.v, &inputs.v)}) {
    for (size_t i = 0; i < from->size() / 40 * 64; ++i) {
      to->push_back(i % 64 < 40 ? (*from)[i / 64 * 40 + i % 64] : uint16_t{0});
    }
  }
  spec.head_dim = 64;
  Call padded(spec, inputs, ExactPath::kA32, ExactGranularity::kPerWarp);
  padded.problem.sm_scale = narrow.problem.sm_scale;  // of the dimension before padding
  EXPECT_EQ(narrow.problem.sm_scale, static_cast<float>(1 / std::sqrt(40.0)));
  padded.Run();
  for (size_t i = 0; i < o.size(); ++i) {
    const uint16_t wanted =
        i < 20 * 50 && i % 50 < 40 ? padded.o[i / 50 * 64 + i % 50] : uint16_t{0xabcdu};
    ASSERT_EQ(o[i], wanted) << i;
  }
}

TEST(OracleAttentionTest, CausalIsTopLeftWhateverTheLengths) {
  for (const ExactPath path : kPaths) {
    // One key seen by row 0, two by row 1, ...: not aligned to the last row, as the F32 op is.
    Call wide(Spec(3, 200, 64), path, ExactGranularity::kPerWarp, true);
    wide.Run();
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t key = 0; key < 64; ++key) {
        EXPECT_EQ(ToBits(wide.at.p[row * 200 + key]) == 0, key > row) << row << " " << key;
      }
    }
    Call tall(Spec(9, 4, 64), path, ExactGranularity::kPerWarp, true);
    tall.Run();
    for (int64_t i = 0; i < 4 * 9; ++i) EXPECT_EQ(ToBits(tall.at.p[i]) == 0, i % 4 > i / 4);
  }
}

TEST(OracleAttentionTest, ARowBelowTheMaskKeepsTheFourOnes) {
  const ExactInputSpec spec = Spec(2, 5, 64);
  ExactInputs inputs = MakeExactInputs(spec);
  std::fill(inputs.q.begin(), inputs.q.end(), FloatToBf16(1024.0f));
  std::fill(inputs.k.begin(), inputs.k.end(), FloatToBf16(-1024.0f));
  for (const ExactPath path : kPaths) {
    Call call(spec, inputs, path, ExactGranularity::kPerWarp);
    call.problem.smooth_k = false;
    call.problem.sm_scale = 2.0f;  // every scaled score is near -1.9e8
    call.Run();
    for (size_t row = 0; row < 2; ++row) {
      EXPECT_EQ(ToBits(call.at.m[row]), 0xca989680u);
      EXPECT_EQ(call.at.a[row], 1.0f);
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(ToBits(call.at.p[row * 5 + i]), 0u);
      EXPECT_EQ(call.at.d[row], 4.0f);
      EXPECT_EQ(call.at.lse2[row], -4999998.0f);
    }
    EXPECT_EQ(call.o, std::vector<uint16_t>(2 * 64, 0));
    EXPECT_EQ(call.lse, call.lse_raw) << "nothing was subtracted from K";
  }
}

TEST(OracleAttentionTest, NoKeysGiveZerosAndMinusInfinity) {
  Call call(Spec(5, 0, 64), ExactPath::kB, ExactGranularity::kPerWarp);
  call.Attend();
  EXPECT_EQ(call.o, std::vector<uint16_t>(5 * 64, 0));
  const std::vector<float> nothing(5, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(call.lse, nothing);
  EXPECT_EQ(call.lse_raw, nothing);
}

TEST(OracleAttentionTest, NullPreparedBuffersAreRefused) {
  Call call(Spec(5, 7, 64), ExactPath::kB, ExactGranularity::kPerWarp);
  call.Prepare();
  ExactPrepared part = call.prepared;
  part.v_scale = nullptr;
  EXPECT_EQ(OracleAttention(call.problem, part, {}, nullptr, {}).code(),
            absl::StatusCode::kInvalidArgument);
  call.problem.k_heads = 0;
  EXPECT_EQ(OracleAttention(call.problem, call.prepared, {}, nullptr, {}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(OracleAttentionTest, AChannelOfZerosInVGivesZerosOrTheLibrarysNan) {  // T7
  const ExactInputSpec spec = Spec(40, 100, 64);
  ExactInputs inputs = MakeExactInputs(spec);
  for (size_t i = 17; i < inputs.v.size(); i += 64) inputs.v[i] = 0;
  for (const ExactPath path : kPaths) {
    Call zeros(spec, inputs, path, ExactGranularity::kPerWarp);
    zeros.Run();
    Call nans(spec, inputs, path, ExactGranularity::kPerWarp);
    nans.problem.zero_v_nan = true;
    nans.Run();
    for (size_t i = 0; i < zeros.o.size(); ++i) {
      if (i % 64 == 17) {
        EXPECT_EQ(zeros.o[i], 0u);
        EXPECT_TRUE(std::isnan(Bf16ToFloat(nans.o[i])));
      } else {
        EXPECT_EQ(zeros.o[i], nans.o[i]);
      }
    }
  }
}

TEST(OracleAttentionTest, CapturedValuesReplaceTheirStandIns) {
  for (const ExactPath path : kPaths) {
    SCOPED_TRACE(GoldenKey(path, ExactGranularity::kPerWarp));
    Call first(Spec(20, 200, 64), path, ExactGranularity::kPerWarp);
    first.Run();
    const ExactCheckpoints& hardware = first.at;
    const CheckpointSizes n = SizesOfCheckpoints(first.problem);
    // What a device might give: one unit in the last place more, where that changes nothing else.
    const auto nudge = [](float* values, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        if (values[i] != 0.0f) values[i] = FromBits(ToBits(values[i]) + 1);
      }
    };
    nudge(hardware.p, n.p);
    nudge(hardware.a, n.a);
    nudge(hardware.u, n.u);
    nudge(hardware.r, n.r);
    nudge(hardware.lse2, n.lse2);
    Call call(Spec(20, 200, 64), path, ExactGranularity::kPerWarp);
    call.Prepare();
    call.Attend(&hardware);
    const int64_t epochs = call.epochs();
    const int64_t steps = call.geometry().cta_k / 32;
    for (int64_t i = 0; i < n.p; ++i) {
      ASSERT_EQ(call.at.p8[i], strict::ToE4m3(hardware.p[i]));
    }
    for (int64_t row = 0; row < 20; ++row) {
      float ro = 0.0f;
      for (int64_t j = 0; j < epochs; ++j) {
        const int64_t at = row * epochs + j;
        const float u = hardware.u[((at * steps) + steps - 1) * 64 + 5];
        ro = path == ExactPath::kA1 ? u : FmaFtz(hardware.a[at], ro, u);
        ASSERT_EQ(ToBits(call.at.ro[at * 64 + 5]), ToBits(ro));
      }
      const float out = MulFtz(MulFtz(ro, hardware.r[row]), call.prepared.v_scale[5]);
      ASSERT_EQ(ToBits(call.at.out32[row * 64 + 5]), ToBits(out));
      ASSERT_EQ(ToBits(call.lse_raw[static_cast<size_t>(row)]),
                ToBits(MulFtz(hardware.lse2[row], FromBits(0x3f317218u))));
    }
    const CheckpointComparison same = CompareCheckpoints(call.problem, call.at, hardware);
    ASSERT_EQ(same.first.size(), 1u);
    EXPECT_EQ(same.first[0].observable, "d_lane") << "the sums of p follow the captured p";
  }
}

// The numbers of the README of this op.
TEST(OracleAttentionTest, WorkedRowOfTheReadme) {
  ExactInputSpec spec = Spec(1, 5, 64);
  ExactInputs inputs;
  inputs.q.assign(64, 0);
  inputs.k.assign(5 * 64, 0);
  inputs.v.assign(5 * 64, 0);
  inputs.q[0] = FloatToBf16(2.0f);
  inputs.q[1] = FloatToBf16(1.0f);
  for (size_t key = 0; key < 5; ++key) {
    inputs.k[key * 64] = FloatToBf16(2.0f * static_cast<float>(key));
    inputs.k[key * 64 + 1] = FloatToBf16(1.0f);
    inputs.v[key * 64] = FloatToBf16(static_cast<float>(key) + 1.0f);
  }
  Call call(spec, inputs, ExactPath::kB, ExactGranularity::kPerWarp);
  call.Run();
  // Preparation.
  EXPECT_EQ(call.prepared.k_mean[0], FloatToBf16(4.0f));
  EXPECT_EQ(call.prepared.k_mean[1], FloatToBf16(1.0f));
  EXPECT_EQ(ToBits(call.prepared.q_scale[0]), 0x3c810204u);
  EXPECT_EQ(ToBits(call.prepared.k_scale[0]), 0x3d010204u);
  EXPECT_EQ(ToBits(call.prepared.v_scale[0]), 0x3c36db6eu);
  EXPECT_EQ(call.prepared.q8[0], 127);
  EXPECT_EQ(call.prepared.q8[1], 64);
  const std::array<int8_t, 5> k8 = {-127, -64, 0, 64, 127};
  const std::array<uint8_t, 5> v8 = {0x6b, 0x73, 0x78, 0x7b, 0x7e};
  // Attention.
  EXPECT_EQ(ToBits(call.at.dq[0]), 0x3a020610u);
  EXPECT_EQ(ToBits(call.at.s[0]), 0x3e38aa3bu);
  EXPECT_EQ(ToBits(call.at.m[0]), 0xc0eba863u);
  EXPECT_EQ(ToBits(call.at.a[0]), 0u);
  const std::array<int32_t, 5> qk = {-16129, -8128, 0, 8128, 16129};
  const std::array<uint32_t, 5> x = {0xc1000000u, 0xc0810204u, 0, 0x40810204u, 0x41000000u};
  const std::array<uint32_t, 5> p = {0x4272760fu, 0x42c71710u, 0x4324c4fbu, 0x43885d82u,
                                     0x43dff1e7u};
  const std::array<uint8_t, 5> p8 = {0x67, 0x6c, 0x72, 0x79, 0x7e};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(call.prepared.k8[i * 64], k8[i]);
    EXPECT_EQ(call.prepared.v8[exact::VPosition(static_cast<int>(i))], v8[i]);
    EXPECT_EQ(call.at.qk[i], qk[i]);
    EXPECT_EQ(ToBits(call.at.x[i]), x[i]);
    EXPECT_EQ(ToBits(call.at.p[i]), p[i]);
    EXPECT_EQ(call.at.p8[i], p8[i]);
  }
  const std::array<uint32_t, 4> d_lane = {0x4320290cu, 0x43dac000u, 0x43dff1e7u, 0};
  for (size_t t = 0; t < 4; ++t) EXPECT_EQ(ToBits(call.at.d_lane[t]), d_lane[t]);
  EXPECT_EQ(call.at.u[3 * 64], 365216.0f);
  EXPECT_EQ(call.at.ro[0], 365216.0f);
  EXPECT_EQ(ToBits(call.at.d[0]), 0x4482b19bu);
  EXPECT_EQ(ToBits(call.at.r[0]), 0x3a7ab937u);
  EXPECT_EQ(ToBits(call.at.out32[0]), 0x407980eeu);
  EXPECT_EQ(call.o[0], 0x407au);
  EXPECT_EQ(ToBits(call.at.lse2[0]), 0x402a9b82u);
  EXPECT_EQ(ToBits(call.lse_raw[0]), 0x3fec831cu);
  EXPECT_EQ(ToBits(call.lse[0]), 0x403e418eu);
  std::vector<double> o(64);
  double lse = 0;
  ASSERT_TRUE(Float64Attention(call.problem, 0, 1, o.data(), &lse).ok());
  EXPECT_NEAR(o[0], 3.90563337, 1e-8);
  EXPECT_NEAR(lse, 2.97210165, 1e-8);
}

}  // namespace
}  // namespace h3rt
