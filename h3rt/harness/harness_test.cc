#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "h3rt/base/file.h"
#include "h3rt/base/utc.h"
#include "h3rt/harness/environment.h"
#include "h3rt/harness/gpu.h"
#include "h3rt/harness/harness_run.h"
#include "h3rt/harness/inputs.h"
#include "h3rt/lab/freshness.h"
#include "h3rt/lab/stats.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

using ::testing::HasSubstr;

int RunNothing(const ArmCall& /*call*/) { return 0; }

std::vector<ExperimentTensor> Tensors(std::span<const int64_t> dims) {
  using T = ExperimentTensor;
  return {{"x", T::Type::kBf16, T::Role::kInput, {dims[0]}},
          {"y", T::Type::kF32, T::Role::kOutput, {dims[0]}}};
}

Experiment Fake() {
  Experiment e;
  e.id = "fake-experiment";
  e.dim_names = {"n"};
  e.workloads = {{"toy", ExperimentWorkload::Level::kToy, {16}, 1, 10},
                 {"canonical", ExperimentWorkload::Level::kCanonical, {64}, 2, 10}};
  e.tensors = Tensors;
  e.arms = {{"plain", RunNothing, {"fake_plain_kernel"}, {"h3rt/base/hash.cc"}},
            {"fast", RunNothing, {"fake_fast_kernel"}, {"h3rt/base/hash.cc"}}};
  e.checks = {{"plain", ExperimentCheck::Mode::kBitwise, 0, "the same"}};
  e.least_bytes = [](std::span<const int64_t> dims) { return 6.0 * static_cast<double>(dims[0]); };
  e.least_operations = [](std::span<const int64_t> dims) { return static_cast<double>(dims[0]); };
  e.uses_async = true;
  return e;
}

Doc Environment() {
  Doc environment = HostEnvironment();
  environment["class"]["device"] = "NVIDIA H200";
  return environment;
}

int64_t NowUs() { return NowNs() / 1000; }

Doc Answer(const Doc& result) {
  return {{"ok", true},         {"result", result},           {"environment", Environment()},
          {"target", "sm_90a"}, {"pid", int64_t{::getpid()}}, {"start_us", NowUs()}};
}

// What the child of a test answers, by its task and by the mode that the test asks for. Runs in a
// process of its own: this very program with a filter.
TEST(HarnessFakeChild, DISABLED_Main) {
  const std::string file = testing::internal::GetArgvs().back();
  Findings findings;
  const Doc request = ParseDocument(ReadFile(file).value(), file, 1, findings).value();
  const char* const given = std::getenv("H3RT_FAKE_CHILD");
  const std::string mode = given == nullptr ? "" : given;
  if (mode == "crash") std::raise(SIGKILL);
  if (mode == "silent") return;
  if (mode == "hang") ::pause();
  Doc answer;
  const std::string task = TextAt(request, "task");
  if (mode == "oom" || mode == "nodevice") {
    const auto code = mode == "oom" ? absl::StatusCode::kResourceExhausted
                                    : absl::StatusCode::kFailedPrecondition;
    answer = {{"ok", false},
              {"code", static_cast<int64_t>(code)},
              {"message", "CUDA failed while allocating"}};
  } else if (task == "parity") {
    Doc one = {{"workload", "toy"}, {"level", "toy"}, {"checkpoint", "y"}};
    for (const char* name : {"seed", "mismatches", "max_abs_e9", "rel_l2_e9", "max_ulp",
                             "nan_actual", "nan_expected", "unwritten", "guard_faults"}) {
      one[name] = 0;
    }
    for (const char* name : {"first_index", "first_actual_bits", "first_expected_bits"}) {
      one[name] = nullptr;
    }
    one["elements"] = 16;
    one["inputs_unchanged"] = true;
    answer = Answer({{"reference", TextAt(request, "against")},
                     {"mode", "bitwise"},
                     {"bound_e9", nullptr},
                     {"expected", "match"},
                     {"cases", {one}},
                     {"comparator_selftest", ComparatorSelfTest()},
                     {"repeat_exact",
                      {{"workload", "canonical"},
                       {"launches", IntAt(request, "repeat_launches")},
                       {"distinct_digests", 1}}}});
  } else if (task == "time") {
    std::vector<Sample> samples;
    for (uint16_t quad = 0; quad < 4; ++quad) {
      const auto role = static_cast<uint8_t>(quad == 3 ? 1 : 0);
      for (uint8_t slot = 0; slot < 4; ++slot) {
        const auto arm = static_cast<uint8_t>(role == 0 && (slot == 1 || slot == 2) ? 1 : 0);
        samples.push_back({static_cast<uint16_t>(IntAt(request, "process")), quad, slot, arm, role,
                           0, arm == 1 ? 800000 : 1000000});
      }
    }
    ASSERT_TRUE(WriteFileAtomically(file + kSamplesSuffix, PackSamples(samples)).ok());
    answer = Answer({{"mode", "batched"},
                     {"batch", IntAt(request, "batch") == 0 ? 7 : IntAt(request, "batch")},
                     {"timer", "event"},
                     {"tick_ns", 32},
                     {"warmups", 5},
                     {"copy_bytes_per_s", 4000000000000 + IntAt(request, "process")},
                     {"audits",
                      {{"same_input_ratio_e9", 1000000000},
                       {"seed_ratio_e9", 1000000000},
                       {"output_digests_ok", true},
                       {"inputs_unchanged", true},
                       {"poison_left", 0},
                       {"wall_ns", 2000},
                       {"event_ns", 1900}}}});
  } else if (task == "launch") {
    answer = Answer(
        {{"kernels", {{{"symbol", "fake_fast_kernel"}, {"launches", 2}}}}, {"error", nullptr}});
  } else {
    answer = Answer({{"device", "went on"}});
  }
  ASSERT_TRUE(WriteFileAtomically(file + kAnswerSuffix, CanonicalText(answer)).ok());
}

constexpr char kFakeNcu[] =
    "while [ \"$1\" != --kernel-name ]; do shift; done; shift; shift\n"
    "\"$@\" >/dev/null\n"
    "echo '\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"'\n"
    "echo '\"0\",\"fake_fast_kernel\",\"gpu__time_duration.sum\",\"us\",\"3,700.5\"'\n";

class HarnessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/harness" + std::to_string(::getpid()) +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    store_.root = folder_;
    programs_.child = {std::filesystem::read_symlink("/proc/self/exe").string(),
                       "--gtest_filter=HarnessFakeChild.DISABLED_Main",
                       "--gtest_also_run_disabled_tests"};
    programs_.sanitizer = Script("sanitizer",
                                 "tool=$2; shift 4\n"
                                 "if [ \"$tool\" = --version ]; then echo; fi\n"
                                 "echo '========= COMPUTE-SANITIZER'\n"
                                 "for file in \"$@\"; do :; done\n"
                                 "\"$@\" >/dev/null\n"
                                 "errors=0\n"
                                 "if grep -q plant \"$file\"; then errors=${PLANTED:-3}; fi\n"
                                 "echo \"========= ERROR SUMMARY: $errors errors\"\n");
    request_.policy_digest = std::string(64, 'b');
    request_.processes = 3;
    request_.quads = 3;
    ::unsetenv("H3RT_FAKE_CHILD");
    ::unsetenv("PLANTED");
  }
  void TearDown() override {
    ::unsetenv("H3RT_FAKE_CHILD");
    std::filesystem::remove_all(folder_);
  }
  std::string Script(const std::string& name, const std::string& body) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, "#!/bin/sh\n" + body).ok());
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::vector<NewEvidence> Run(const std::string& gate, const std::string& kind = "") {
    request_.gate = gate;
    request_.kind = kind;
    auto evidence = RunMeasured(programs_, store_, experiment_, request_, cancel_);
    EXPECT_TRUE(evidence.ok()) << MessageOf(evidence.status());
    return evidence.ok() ? *std::move(evidence) : std::vector<NewEvidence>();
  }
  static std::string KindOf(const NewEvidence& evidence) {
    return TextAt(evidence.envelope, "kind");
  }

  std::string folder_;
  HarnessPrograms programs_;
  Store store_;
  Experiment experiment_ = Fake();
  RunRequest request_;
  CancelToken cancel_;
};

TEST_F(HarnessTest, CorrectGivesParityAndEverySanitizerWithItsControl) {
  const std::vector<NewEvidence> evidence = Run("correct");
  ASSERT_EQ(evidence.size(), 5u);
  const Doc& parity = evidence[0].envelope;
  EXPECT_EQ(KindOf(evidence[0]), "parity");
  EXPECT_EQ(parity["target"], "sm_90a");
  EXPECT_EQ(parity["vid"], "fast");
  EXPECT_EQ(parity["word"], "executed");
  EXPECT_EQ(parity["environment"]["class"]["device"], "NVIDIA H200");
  EXPECT_EQ(parity["body"]["repeat_exact"]["launches"], 1000);
  EXPECT_FALSE(parity["body"].contains("comparator_selftest"));
  EXPECT_THAT(evidence[0].blobs.at("comparator_selftest"), HasSubstr("\"nan\":true"));
  EXPECT_TRUE(IsDigest(parity["subject"]["source_digest"].get<std::string>()));
  EXPECT_TRUE(IsDigest(parity["subject"]["binary_sha256"].get<std::string>()));
  const char* const tools[] = {"memcheck", "racecheck", "initcheck", "synccheck"};
  for (size_t i = 0; i < 4; ++i) {
    const Doc& body = evidence[i + 1].envelope["body"];
    EXPECT_EQ(body["tool"], tools[i]);
    EXPECT_EQ(body["errors"], 0);
    EXPECT_EQ(body["kernels"][0]["launches"], 2);
    EXPECT_EQ(body["control"], (Doc{{"planted", true}, {"found", true}}));
    EXPECT_THAT(evidence[i + 1].blobs.at("control.log"), HasSubstr("3 errors"));
  }
}

TEST_F(HarnessTest, AControlThatFindsNothingIsSaidSo) {
  ::setenv("PLANTED", "0", 1);
  const std::vector<NewEvidence> evidence = Run("correct", "sanitizer");
  ASSERT_EQ(evidence.size(), 4u);
  EXPECT_EQ(evidence[0].envelope["body"]["control"]["found"], false);
}

TEST_F(HarnessTest, IsolatedPacksTheSamplesOfFreshProcesses) {
  const std::vector<NewEvidence> evidence = Run("isolated");
  ASSERT_EQ(evidence.size(), 1u);
  const Doc& envelope = evidence[0].envelope;
  const Doc& body = envelope["body"];
  EXPECT_EQ(body["processes"], 3);
  EXPECT_EQ(body["batch"], 7);
  EXPECT_EQ(body["calls"], 10);
  EXPECT_EQ(body["bytes"], 6 * 64);
  EXPECT_EQ(body["copy_bytes_per_s"], 4000000000001);
  EXPECT_EQ(body["audits"].size(), 3u);
  EXPECT_EQ(evidence[0].blobs.at("samples").size(), 3u * 16 * 16);
  EXPECT_EQ(body["statistics"]["ratio_e9"], 1250000000);
  std::set<int64_t> pids;
  for (const Doc& process : body["process_ids"]) pids.insert(process["pid"].get<int64_t>());
  EXPECT_EQ(pids.size(), 3u);
  EXPECT_EQ(envelope["workload"]["id"], "canonical");
  EXPECT_EQ(envelope["workload"]["dims"], (Doc{{"n", 64}}));
  EXPECT_EQ(envelope["workload"]["dtypes"], (Doc{{"x", "bf16"}, {"y", "f32"}}));
  EXPECT_EQ(envelope["workload"]["input_sha256"].size(), 1u);
  EXPECT_TRUE(envelope["subject"]["baseline"].is_object());
}

// Written, read back, and checked as any evidence of the store is.
TEST_F(HarnessTest, EverythingItPacksPassesTheValidator) {
  programs_.profiler = Script("ncu", kFakeNcu);
  Findings findings;
  const Doc policy = LoadPolicy({H3RT_SOURCE_DIR}, findings).value();
  std::vector<NewEvidence> all = Run("correct");
  for (const char* kind : {"timing_pair", "profile"}) {
    for (NewEvidence& evidence : Run("isolated", kind)) all.push_back(std::move(evidence));
  }
  ::setenv("H3RT_FAKE_CHILD", "silent", 1);
  for (NewEvidence& evidence : Run("correct", "parity")) all.push_back(std::move(evidence));
  ASSERT_EQ(all.size(), 8u);
  for (const NewEvidence& evidence : all) {
    const auto digest = WriteEvidence(store_, evidence);
    ASSERT_TRUE(digest.ok()) << MessageOf(digest.status());
  }
  const auto loaded = LoadEvidence(store_, findings);
  EXPECT_EQ(loaded.size(), 8u);
  for (const auto& [digest, evidence] : loaded) {
    ValidateEvidence(store_, evidence, policy, findings);
    RecomputeEvidence(store_, evidence, findings);
  }
  for (const Finding& finding : findings.Sorted()) ADD_FAILURE() << Findings::ToText(finding);
}

TEST_F(HarnessTest, WhatEndsBadlyIsFailureEvidence) {
  programs_.timeout_ms = 700;
  for (const auto& [mode, outcome] : {std::pair{"crash", "crash"},
                                      {"silent", "crash"},
                                      {"hang", "timeout"},
                                      {"oom", "device_oom"}}) {
    ::setenv("H3RT_FAKE_CHILD", mode, 1);
    for (const char* gate : {"correct", "isolated"}) {
      const std::vector<NewEvidence> evidence =
          Run(gate, std::string(gate) == "correct" ? "parity" : "timing_pair");
      ASSERT_EQ(evidence.size(), 1u) << mode;
      EXPECT_EQ(KindOf(evidence[0]), "failure");
      EXPECT_EQ(evidence[0].envelope["body"]["outcome"], outcome) << mode;
    }
  }
}

TEST_F(HarnessTest, WithoutADeviceOrAToolNothingWasTried) {
  ::setenv("H3RT_FAKE_CHILD", "nodevice", 1);
  request_.gate = "correct";
  EXPECT_EQ(RunMeasured(programs_, store_, experiment_, request_, cancel_).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ::unsetenv("H3RT_FAKE_CHILD");
  programs_.sanitizer = "";
  EXPECT_THAT(MessageOf(RunMeasured(programs_, store_, experiment_, request_, cancel_).status()),
              HasSubstr("compute-sanitizer"));
  experiment_.arms[1].run = nullptr;
  EXPECT_THAT(MessageOf(RunMeasured(programs_, store_, experiment_, request_, cancel_).status()),
              HasSubstr("no device code"));
}

TEST_F(HarnessTest, CancellingStopsBeforeTheNextChild) {
  cancel_.Cancel();
  request_.gate = "isolated";
  EXPECT_EQ(RunMeasured(programs_, store_, experiment_, request_, cancel_).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(HarnessTest, UnknownVariantsAndTheBaselineItselfAreRefused) {
  request_.vid = "slow";
  request_.gate = "isolated";
  EXPECT_EQ(RunMeasured(programs_, store_, experiment_, request_, cancel_).status().code(),
            absl::StatusCode::kNotFound);
  request_.vid = "plain";
  EXPECT_EQ(RunMeasured(programs_, store_, experiment_, request_, cancel_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(HarnessTest, ProfilesKeepMetricsAndReport) {
  programs_.profiler = Script("ncu", kFakeNcu);
  const std::vector<NewEvidence> evidence = Run("isolated", "profile");
  ASSERT_EQ(evidence.size(), 1u);
  const Doc& body = evidence[0].envelope["body"];
  EXPECT_EQ(body["kernel"], "fake_fast_kernel");
  EXPECT_EQ(body["metrics"]["gpu__time_duration.sum"],
            (Doc{{"unit", "us"}, {"value_e3", 3700500}}));
}

TEST(Stamped, TheBuildKnowsTheClosureOfItsSources) {
  const Store store{H3RT_SOURCE_DIR};
  const std::vector<std::string> roots = {"h3rt/device/probe/probe_fill.cu"};
  ASSERT_TRUE(StampedClosure(roots).has_value());
  EXPECT_EQ(*StampedClosure(roots), ClosureDigest(store, roots).value());
  EXPECT_FALSE(StampedClosure({"h3rt/none.cu"}).has_value());
  EXPECT_FALSE(Stamp().host_compiler.empty());
  EXPECT_NE(Stamp().flags.find("-std=c++20"), std::string::npos);
}

TEST(RunChild, AnswersWithTheReasonWhereThereIsNoDevice) {
  const std::string file = testing::TempDir() + "/request" + std::to_string(::getpid());
  ASSERT_TRUE(WriteFileAtomically(file, R"({"experiment":"none","task":"launch","vid":"x"})").ok());
  ASSERT_TRUE(RunChild(file).ok());
  const std::string answer = ReadFile(file + kAnswerSuffix).value();
  EXPECT_THAT(answer, HasSubstr("\"ok\":false"));
  ASSERT_TRUE(WriteFileAtomically(file, "{").ok());
  EXPECT_EQ(RunChild(file).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunChild(file + ".none").code(), absl::StatusCode::kNotFound);
}

TEST(RunExperiment, UnknownIdsAndGatesAreRefused) {
  RunRequest request;
  request.id = "no-such-experiment";
  const CancelToken cancel;
  EXPECT_EQ(RunExperiment({}, request, cancel).status().code(), absl::StatusCode::kNotFound);
  request.id = "elem-fused-residual-rmsnorm";
  request.gate = "trajectory";
  EXPECT_EQ(RunExperiment({}, request, cancel).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace h3rt::lab
