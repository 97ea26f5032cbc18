// The judge of attention must see what it is there to see: the recorded tensors of the library
// pass, and each planted fault is named.
#include "h3rt/harness/attention_golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "h3rt/harness/attention_compare.h"
#include "h3rt/kernels/attention/oracle/oracle.h"

namespace h3rt::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kIndex[] = H3RT_TEST_DATA "/sage2/index.json";
constexpr char kFolder[] = H3RT_TEST_DATA "/sage2";

// One recorded case of one path, as a device would have given it: outputs from the fixture,
// preparation by the oracle.
class GoldenTest : public ::testing::Test {
 protected:
  void Load(const std::string& name, ExactPath path, ExactGranularity granularity) {
    const auto index = ReadGoldenIndex(kIndex);
    ASSERT_TRUE(index.ok()) << index.status();
    index_ = *index;
    golden_ = index_.Find(name);
    ASSERT_NE(golden_, nullptr);
    for (const GoldenOutput& output : golden_->outputs) {
      if (output.path == path && output.granularity == granularity) output_ = &output;
    }
    ASSERT_NE(output_, nullptr);
    inputs_ = MakeExactInputs(golden_->inputs);
    problem_ = GoldenProblem(*golden_, path, granularity);
    problem_.q.data = inputs_.q.data();
    problem_.k.data = inputs_.k.data();
    problem_.v.data = inputs_.v.data();
    Take(".o", run_.o, run_.o_again);
    Take(".lse", run_.lse, run_.lse_again);
    Take(".lse_raw", run_.lse_raw, run_.lse_raw_again);
    run_.workspace.resize(static_cast<size_t>(WorkspaceBytes(problem_)));
    ASSERT_TRUE(OraclePrepare(problem_, {}, PreparedIn(problem_, run_.workspace.data())).ok());
    run_.launches = 1000;
    run_.distinct_digests = 1;
    run_.inputs_unchanged = true;
  }

  template <typename T>
  void Take(const std::string& suffix, std::vector<T>& to, std::vector<T>& again) {
    const std::vector<std::byte> bytes = fixtures_.Read(golden_->name, output_->key + suffix);
    ASSERT_FALSE(bytes.empty()) << suffix;
    to.resize(bytes.size() / sizeof(T));
    std::memcpy(to.data(), bytes.data(), bytes.size());
    again = to;
  }

  GoldenRow Compare() {
    GoldenRow row;
    cases_ = Doc::array();
    CompareGolden({*golden_, *output_, problem_, run_, fixtures_, pool_}, row, cases_);
    return row;
  }

  GoldenIndex index_;
  const GoldenCase* golden_ = nullptr;
  const GoldenOutput* output_ = nullptr;
  ExactInputs inputs_;
  ExactProblem problem_;
  AttentionRun run_;
  FixtureTensors fixtures_{kFolder};
  ThreadPool pool_{2};
  Doc cases_;
};

TEST_F(GoldenTest, TheRecordedTensorsPass) {
  for (const ExactPath path : {ExactPath::kA16, ExactPath::kA32, ExactPath::kA1, ExactPath::kB}) {
    for (const auto granularity : {ExactGranularity::kPerWarp, ExactGranularity::kPerThread}) {
      Load("aligned_q128_kv192", path, granularity);
      const GoldenRow row = Compare();
      EXPECT_THAT(row.faults, IsEmpty()) << output_->key;
      EXPECT_TRUE(row.o_equal && row.lse_raw_equal && row.lse_equal);
      EXPECT_EQ(row.prepared_compared, 7) << output_->key;
      ASSERT_EQ(cases_.size(), 2u);
      for (const Doc& one : cases_) EXPECT_EQ(IntAt(one, "mismatches"), 0);
    }
  }
}

TEST_F(GoldenTest, HeadsAndPaddingAreInTheLibrarysLayout) {
  Load("d64_200", ExactPath::kB, ExactGranularity::kPerWarp);
  // A correctly rounded reciprocal is not a GPU's: two codes of V.
  const GoldenRow before = Compare();
  EXPECT_THAT(before.faults, ElementsAre(HasSubstr("v_fp8 differs, 2 of 32768 bytes")));
  EXPECT_TRUE(before.o_equal && before.lse_raw_equal && before.heads_that_differ.empty());
  // One bit in head 1 of 2, row 3.
  run_.o[(3 * 2 + 1) * 64 + 5] ^= 1;
  run_.o_again = run_.o;
  const GoldenRow row = Compare();
  EXPECT_FALSE(row.ok());
  EXPECT_THAT(row.heads_that_differ, ElementsAre(1));
  EXPECT_EQ(IntAt(cases_[0], "mismatches"), 1);
  EXPECT_EQ(IntAt(cases_[0], "first_index"), (3 * 2 + 1) * 64 + 5);
}

TEST_F(GoldenTest, EachPlantedFaultIsNamed) {
  const std::pair<const char*, std::function<void(AttentionRun&)>> faults[] = {
      {"o differs", [](AttentionRun& run) { run.o[7] = run.o_again[7] = 0x7fc0; }},
      {"o differs", [](AttentionRun& run) { run.o.back() = run.o_again.back() ^= 0x8000; }},
      {"a second run gave another o", [](AttentionRun& run) { run.o_again[9] ^= 1; }},
      {"not written",
       [](AttentionRun& run) {
         run.o[11] = 0xffff;
         run.o_again[11] = 0x5a5a;
       }},
      {"lse_raw differs",
       [](AttentionRun& run) {
         run.lse_raw[3] = std::nextafter(run.lse_raw[3], 1e9f);
         run.lse_raw_again = run.lse_raw;
       }},
      {"lse_raw differs", [](AttentionRun& run) { run.lse_raw_again[3] = std::nanf(""); }},
      {"lse is wrong by value",
       [](AttentionRun& run) {
         run.lse[5] += 0.5f;
         run.lse_again = run.lse;
       }},
      {"lse is wrong by value",
       [](AttentionRun& run) { run.lse[5] = run.lse_again[5] = std::nanf(""); }},
      {"another lse", [](AttentionRun& run) { run.lse_again[0] += 1.0f; }},
      {"2 results", [](AttentionRun& run) { run.distinct_digests = 2; }},
      {"outside its buffers", [](AttentionRun& run) { run.guard_faults = 1; }},
      {"wrote its inputs", [](AttentionRun& run) { run.inputs_unchanged = false; }},
      {"prepared sm89.per_warp.q_int8",
       [](AttentionRun& run) { run.workspace[130] ^= std::byte{1}; }}};
  for (const auto& [name, plant] : faults) {
    run_ = {};
    Load("aligned_q128_kv192", ExactPath::kA16, ExactGranularity::kPerWarp);
    plant(run_);
    const GoldenRow row = Compare();
    EXPECT_THAT(row.Text(), HasSubstr(name));
    EXPECT_FALSE(row.ok()) << name;
  }
}

TEST_F(GoldenTest, ACorrectionOneUnitAwayIsCountedAndNoFault) {
  Load("aligned_q128_kv192", ExactPath::kB, ExactGranularity::kPerThread);
  const ExactPrepared prepared = PreparedIn(problem_, run_.workspace.data());
  const float correction = (run_.lse[4] - run_.lse_raw[4]) / problem_.sm_scale;
  const float unit = std::ldexp(1.0f, std::ilogb(correction) - 7);
  run_.lse[4] += 0.9f * unit * problem_.sm_scale;
  run_.lse_again = run_.lse;
  const GoldenRow row = Compare();
  EXPECT_THAT(row.faults, IsEmpty());
  EXPECT_FALSE(row.lse_equal);
  EXPECT_THAT(row.Text(), HasSubstr("the library: 1 of 128 rows"));
  // The host's own product is that of the library here.
  const LseDifference own =
      CompareLse(problem_, prepared.k_mean, run_.lse_raw, run_.lse, {}, pool_);
  EXPECT_EQ(own.differing, 1);
  EXPECT_EQ(own.beyond_unit, 0);
}

TEST_F(GoldenTest, WithoutTensorsAHashThatDiffersCountsItsHeads) {
  fixtures_ = FixtureTensors(H3RT_TEST_DATA "/no_such_folder");
  const FixtureTensors none = fixtures_;
  fixtures_ = FixtureTensors(kFolder);
  Load("d64_200", ExactPath::kA32, ExactGranularity::kPerWarp);
  fixtures_ = none;
  run_.o[0] ^= 1;
  run_.o_again = run_.o;
  const GoldenRow row = Compare();
  EXPECT_FALSE(row.ok());
  EXPECT_EQ(IntAt(cases_[0], "mismatches"), 200 * 64);  // head 0: which bits is not known
  EXPECT_TRUE(At(cases_[0], "rel_l2_e9").is_null());
}

TEST_F(GoldenTest, ErrorsAreAgainstFloat64) {
  Load("aligned_q128_kv192", ExactPath::kA16, ExactGranularity::kPerWarp);
  const CancelToken cancel;
  const auto reference = FloatReference::Create(problem_, pool_, cancel);
  ASSERT_TRUE(reference.ok());
  EXPECT_TRUE(reference->whole());
  // The library's number is against float32.
  EXPECT_NEAR(reference->Of(run_.o).rel_l2, *output_->rel_l2, 1e-3 * *output_->rel_l2);
  run_.o[0] = 0x7fc0;
  EXPECT_TRUE(std::isinf(reference->Of(run_.o).rel_l2));
}

TEST(GoldenRequest, UnknownNamesAreRefusedWithThoseThereAre) {
  const CancelToken cancel;
  const auto message = [&](GoldenRequest request) {
    request.index = kIndex;
    const auto report = RunAttentionGolden(request, cancel, nullptr);
    EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << report.status();
    return std::string(report.status().message());
  };
  EXPECT_THAT(message({.impl = "other"}), HasSubstr("sage2_public, oracle, ref"));
  EXPECT_THAT(message({.impl = "ref", .case_name = "other"}), HasSubstr("canonical_h3_37808"));
  EXPECT_THAT(message({.impl = "ref", .path = "c"}), HasSubstr("a16, a32, a1 or b"));
}

TEST(GoldenRequest, TheHostRunsSmallCasesByValue) {
  const CancelToken cancel;
  GoldenRequest request;
  request.index = kIndex;
  request.impl = "oracle";
  request.case_name = "ragged_130";
  const auto report = RunAttentionGolden(request, cancel, nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->compared(), 8);
  EXPECT_EQ(report->failed(), 0);
  request.case_name = "canonical_h3_37808";
  CancelToken cancelled;
  cancelled.Cancel();
  EXPECT_TRUE(absl::IsCancelled(RunAttentionGolden(request, cancelled, nullptr).status()));
}

}  // namespace
}  // namespace h3rt::lab
