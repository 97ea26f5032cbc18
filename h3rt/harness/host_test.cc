#include "h3rt/harness/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "h3rt/base/file.h"
#include "h3rt/harness/harness_run.h"
#include "h3rt/kernels/add_norm/add_norm_experiment.h"
#include "h3rt/lab/evidence_rules.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/lab/freshness.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

using ::testing::HasSubstr;

constexpr char kFaultVariable[] = "H3RT_FAKE_FAULT";

// y = 2x, by an arm that needs `kNanoseconds` a call, so that who is faster is known.
template <int64_t kNanoseconds>
int Twice(const ArmCall& call) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds(kNanoseconds);
  const auto* const x = reinterpret_cast<const float*>(call.tensors[0]);
  auto* const y = reinterpret_cast<float*>(call.tensors[1]);
  for (int64_t i = 0; i < call.dims[0]; ++i) y[i] = 2 * x[i];
  while (Clock::now() < end) {
  }
  return 0;
}

// The candidate, with the fault that the test asks for.
int Candidate(const ArmCall& call) {
  static int calls = 0;
  const char* const given = std::getenv(kFaultVariable);
  const std::string fault = given == nullptr ? "" : given;
  auto* const x = reinterpret_cast<float*>(call.tensors[0]);
  auto* const y = reinterpret_cast<float*>(call.tensors[1]);
  const float last = y[call.dims[0] - 1];
  if (fault == "fails") return 7;
  Twice<60000>(call);
  if (fault == "wrong") y[3] = 0.0f;
  if (fault == "unwritten") y[call.dims[0] - 1] = last;
  if (fault == "guard") y[call.dims[0]] = 1.0f;
  if (fault == "input") x[0] = 1.0f;
  if (fault == "unstable") y[0] += static_cast<float>(++calls);
  return 0;
}

const Experiment& Fake() {
  static const Experiment experiment = [] {
    Experiment e;
    e.id = "fake-host-experiment";
    e.dim_names = {"n"};
    using Level = ExperimentWorkload::Level;
    e.workloads = {{"toy", Level::kToy, {16}, 1, 10},
                   {"aligned", Level::kAligned, {256}, 2, 10},
                   {"ragged", Level::kRagged, {77}, 3, 10},
                   {"canonical", Level::kCanonical, {1024}, 4, 10}};
    e.tensors = [](std::span<const int64_t> dims) {
      using T = ExperimentTensor;
      return std::vector<T>{{"x", T::Type::kF32, T::Role::kInput, {dims[0]}},
                            {"y", T::Type::kF32, T::Role::kOutput, {dims[0]}}};
    };
    e.arms = {{"plain", Twice<90000>, {}, {"h3rt/base/hash.cc"}},
              {"fast", Candidate, {}, {"h3rt/base/hash.cc"}}};
    e.checks = {{"plain", ExperimentCheck::Mode::kBitwise, 0, "the same"}};
    e.least_bytes = [](std::span<const int64_t> dims) {
      return 8.0 * static_cast<double>(dims[0]);
    };
    e.least_operations = [](std::span<const int64_t> dims) { return static_cast<double>(dims[0]); };
    e.targets = {"host"};
    return e;
  }();
  return experiment;
}

// The child of a test: this very program with a filter, over the real harness.
TEST(HarnessHostChild, DISABLED_Main) {
  ASSERT_TRUE(RunChild(testing::internal::GetArgvs().back(), &Fake()).ok());
}

class HostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/host" + std::to_string(::getpid()) +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    programs_.child = {std::filesystem::read_symlink("/proc/self/exe").string(),
                       "--gtest_filter=HarnessHostChild.DISABLED_Main",
                       "--gtest_also_run_disabled_tests"};
    request_.policy_digest = std::string(64, 'b');
    request_.processes = 10;
    request_.quads = 3;
    request_.repeat_launches = 20;
    ::unsetenv(kFaultVariable);
  }
  void TearDown() override {
    ::unsetenv(kFaultVariable);
    std::filesystem::remove_all(folder_);
  }
  absl::StatusOr<std::vector<NewEvidence>> Run(const std::string& gate,
                                               const std::string& kind = "") {
    request_.gate = gate;
    request_.kind = kind;
    return RunMeasured(programs_, {}, Fake(), request_, cancel_);
  }
  // One piece, read back from a store.
  void ExpectSound(const NewEvidence& piece) {
    Findings findings;
    const Store source{H3RT_SOURCE_DIR};
    const Doc policy = LoadPolicy(source, findings).value();
    const Store store{folder_};
    const auto digest = WriteEvidence(store, piece);
    ASSERT_TRUE(digest.ok()) << MessageOf(digest.status());
    const Evidence evidence = LoadEvidence(store, findings).at(*digest);
    EXPECT_TRUE(CheckEvidenceForm(evidence, findings));
    ValidateEvidence(store, evidence, policy, findings);
    RecomputeEvidence(store, evidence, findings);
    for (const Finding& finding : findings.Sorted()) {
      ADD_FAILURE() << Findings::ToText(finding);
    }
    const Freshness fresh = FreshnessOf(source, evidence, policy);
    EXPECT_FALSE(fresh.stale) << fresh.reason;
    Evidence other = evidence;
    other.json["harness"]["source_digest"] = HarnessDigest(source).value();
    const bool timing = TextAt(other.json, "kind").starts_with("timing_");
    EXPECT_EQ(FreshnessOf(source, other, policy).stale, timing);
  }

  std::string folder_;
  HarnessPrograms programs_;
  RunRequest request_;
  CancelToken cancel_;
};

TEST_F(HostTest, CorrectIsParityWithoutSanitizers) {
  const auto evidence = Run("correct");
  ASSERT_TRUE(evidence.ok()) << MessageOf(evidence.status());
  ASSERT_EQ(evidence->size(), 1u);
  const Doc& envelope = (*evidence)[0].envelope;
  EXPECT_EQ(envelope["kind"], "parity");
  EXPECT_EQ(envelope["target"], "host");
  EXPECT_EQ(envelope["word"], "executed");
  const Doc& body = envelope["body"];
  ASSERT_EQ(body["cases"].size(), 4u);
  for (const Doc& one : body["cases"]) EXPECT_EQ(WhyCaseDiffers(body, one), "");
  EXPECT_EQ(body["repeat_exact"],
            (Doc{{"workload", "canonical"}, {"launches", 20}, {"distinct_digests", 1}}));
  ExpectSound((*evidence)[0]);
}

TEST_F(HostTest, EveryPlantedFaultIsSeen) {
  for (const auto& [fault, why] : {std::pair{"wrong", "elements differ"},
                                   {"unwritten", "not written"},
                                   {"guard", "outside its output"},
                                   {"input", "wrote its inputs"},
                                   {"unstable", "elements differ"}}) {
    ::setenv(kFaultVariable, fault, 1);
    const auto evidence = Run("correct");
    ASSERT_TRUE(evidence.ok()) << fault << MessageOf(evidence.status());
    ASSERT_EQ(evidence->size(), 1u) << fault;
    const Doc& body = (*evidence)[0].envelope["body"];
    EXPECT_THAT(WhyCaseDiffers(body, body["cases"][0]), HasSubstr(why)) << fault;
    // What is not written keeps its poison, and changed inputs give other outputs.
    const bool stays = std::string(fault) == "wrong" || std::string(fault) == "guard";
    EXPECT_EQ(body["repeat_exact"]["distinct_digests"] == 1, stays) << fault;
  }
}

TEST_F(HostTest, AnArmThatFailsIsFailureEvidence) {
  ::setenv(kFaultVariable, "fails", 1);
  const auto evidence = Run("correct");
  ASSERT_TRUE(evidence.ok()) << MessageOf(evidence.status());
  ASSERT_EQ(evidence->size(), 1u);
  EXPECT_EQ((*evidence)[0].envelope["kind"], "failure");
  EXPECT_EQ((*evidence)[0].envelope["body"]["outcome"], "host_fault");
  ExpectSound((*evidence)[0]);
}

TEST_F(HostTest, IsolatedIsAPairOfTenProcessesByTheSteadyClock) {
  const auto evidence = Run("isolated");
  ASSERT_TRUE(evidence.ok()) << MessageOf(evidence.status());
  ASSERT_EQ(evidence->size(), 1u);
  const Doc& envelope = (*evidence)[0].envelope;
  const Doc& body = envelope["body"];
  EXPECT_EQ(envelope["kind"], "timing_pair");
  EXPECT_EQ(body["timer"], "host");
  EXPECT_EQ(body["processes"], 10);
  EXPECT_EQ(body["statistics"]["aa_quads"], 10);
  EXPECT_GE(body["batch"], 2);
  EXPECT_NEAR(static_cast<double>(IntAt(body["statistics"], "ratio_e9")), 1.5e9, 0.1e9);
  EXPECT_TRUE(envelope["subject"]["baseline"].is_object());
  ExpectSound((*evidence)[0]);
}

TEST_F(HostTest, TimedCallsThatDoNotDoTheirWorkAreRefused) {
  ::setenv(kFaultVariable, "unwritten", 1);
  const auto pair = Run("isolated");
  ASSERT_TRUE(pair.ok()) << MessageOf(pair.status());
  Findings findings;
  const Evidence evidence{"", "e.json", (*pair)[0].envelope};
  CheckEnvelope(evidence, Doc::object(), findings);
  EXPECT_TRUE(findings.Has("E-AUDIT-POISON"));
  const auto single = Run("isolated", "timing_single");
  ASSERT_TRUE(single.ok()) << MessageOf(single.status());
  EXPECT_EQ((*single)[0].envelope["kind"], "failure");
}

TEST_F(HostTest, ASingleTimingHasTheCandidateAlone) {
  const auto evidence = Run("isolated", "timing_single");
  ASSERT_TRUE(evidence.ok()) << MessageOf(evidence.status());
  ASSERT_EQ(evidence->size(), 1u);
  const Doc& body = (*evidence)[0].envelope["body"];
  EXPECT_EQ(body["arm"], "fast");
  EXPECT_EQ(body["timer"], "host");
  EXPECT_EQ(body["statistics"]["n"], 12);
  ExpectSound((*evidence)[0]);
}

TEST_F(HostTest, FewerThanTenProcessesAreRefusedBeforeTheFirst) {
  request_.processes = 9;
  EXPECT_EQ(Run("isolated").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostHarness, ASingleTimingOfAGpuSaysThatNothingProducesIt) {
  RunRequest request;
  request.gate = "isolated";
  request.kind = "timing_single";
  Experiment gpu = Fake();
  gpu.targets = {"sm_90a"};
  const CancelToken cancel;
  EXPECT_EQ(RunMeasured({}, {}, gpu, request, cancel).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(HostHarness, DigestsOfDeviceAndHostTimingAreApart) {
  const Store source{H3RT_SOURCE_DIR};
  EXPECT_EQ(Stamp().harness_digest, HarnessDigest(source).value());
  EXPECT_EQ(Stamp().host_harness_digest.size(), 64u);
  EXPECT_NE(Stamp().host_harness_digest, Stamp().harness_digest);
}

TEST(HostAddNorm, StrictStaysWithinTheBoundOfItsCheck) {
  const Experiment& experiment = kAddNormHostExperiment;
  ASSERT_EQ(FindExperiment("host-add-norm-strict"), &experiment);
  const auto body = HostParity(experiment, experiment.arms[1], experiment.checks[0], 2);
  ASSERT_TRUE(body.ok()) << MessageOf(body.status());
  ASSERT_EQ((*body)["cases"].size(), 8u);
  for (const Doc& one : (*body)["cases"]) EXPECT_EQ(WhyCaseDiffers(*body, one), "") << one.dump();
  for (size_t i = 0; i < 8; i += 2) EXPECT_EQ((*body)["cases"][i]["mismatches"], 0);  // h
}

}  // namespace
}  // namespace h3rt::lab
