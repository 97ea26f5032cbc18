#include "h3rt/harness/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "h3rt/base/file.h"
#include "h3rt/base/process.h"
#include "h3rt/lab/closure.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

const Store kTree{H3RT_SOURCE_DIR};
std::string FixturePath(const std::string& name) {
  return std::string(H3RT_TEST_DATA) + "/lab/cubin/" + name;
}

// A store with the policy's architectures and what a test writes.
class Compiling : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!FindCudaProgram("nvcc")) GTEST_SKIP() << "no nvcc here";
    std::string name = testing::TempDir() + "/lab-compile-XXXXXX";
    store_.root = ::mkdtemp(name.data());
    Write(kPolicyFile, ReadFile(kTree.PathOf(kPolicyFile)).value());
  }
  void TearDown() override {
    if (store_.root != ".") fs::remove_all(store_.root);
  }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(store_.root + "/" + path).parent_path());
    std::ofstream(store_.root + "/" + path, std::ios::binary) << text;
  }
  Experiment OneArm(std::vector<const char*> kernels) {
    Experiment experiment;
    experiment.id = "one-arm";
    experiment.arms = {{"base", nullptr, {}, {"h3rt/x.cu"}},
                       {"fast", nullptr, std::move(kernels), {"h3rt/x.cu"}}};
    experiment.targets = {"sm_90a"};
    return experiment;
  }
  Store store_;
};

const Experiment& ProbeOf(const std::string& id) {
  for (const Experiment* experiment : CompileProbeExperiments()) {
    if (experiment->id == id) return *experiment;
  }
  ADD_FAILURE() << id;
  static const Experiment none;
  return none;
}

TEST(Cubin, KernelsAndBoundsAreRead) {
  const std::string bytes = ReadFile(FixturePath("two_kernels_sm_90a.cubin")).value();
  const absl::StatusOr<Cubin> cubin = ParseCubin(bytes, "fixture");
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_EQ(cubin->architecture, 90);
  ASSERT_EQ(cubin->kernels.size(), 2u);
  std::map<std::string, CubinKernel> by_name;
  for (const CubinKernel& kernel : cubin->kernels) by_name[kernel.symbol] = kernel;
  EXPECT_EQ(by_name["_Z7boundedPf"].max_threads, 256);
  EXPECT_EQ(by_name["_ZN1x4openILi32EEEvPi"].max_threads, 1024);
  EXPECT_GT(by_name["_Z7boundedPf"].code_bytes, 0);
  EXPECT_GT(by_name["_Z7boundedPf"].constant_bytes, 8);
  EXPECT_TRUE(IsDigest(by_name["_Z7boundedPf"].code_sha256));
}

TEST(Cubin, DamagedFilesAreRefusedNeverRead) {
  const std::string bytes = ReadFile(FixturePath("two_kernels_sm_90a.cubin")).value();
  EXPECT_FALSE(ParseCubin("", "x").ok());
  EXPECT_FALSE(ParseCubin(ReadFile("/proc/self/exe").value(), "x").ok());
  for (size_t n = 0; n < bytes.size(); n += 7) {
    const auto cut = ParseCubin(std::string_view(bytes).substr(0, n), "x");
    EXPECT_TRUE(!cut.ok() || cut->kernels.size() <= 2) << n;
  }
  for (size_t i = 0; i < 64; ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(~flipped[i]);
    ParseCubin(flipped, "x").status().IgnoreError();
  }
}

TEST(Cubin, CodeInsideAProgramIsFoundForItsTargetOnly) {
  const std::string path = testing::TempDir() + "/program-with-code";
  const std::string bytes = ReadFile(FixturePath("two_kernels_sm_90a.cubin")).value();
  ASSERT_TRUE(WriteFileAtomically(path,
                                  "\x7f"
                                  "ELF\x02\x01\x01 a program" +
                                      bytes + "tail")
                  .ok());
  const auto found = KernelsOfProgram(path, "sm_90a");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 4u) << "two symbols and their names";
  EXPECT_EQ(found->at("x::open"), found->at("_ZN1x4openILi32EEEvPi"));
  const absl::StatusOr<Cubin> cubin = ParseCubin(bytes, "x");
  ASSERT_TRUE(cubin.ok());
  for (const CubinKernel& kernel : cubin->kernels) {
    EXPECT_EQ(found->at(kernel.symbol), kernel.code_sha256);
  }
  EXPECT_TRUE(KernelsOfProgram(path, "sm_121a")->empty());
}

TEST(Cubin, InstancesOfOneKernelHaveOneDigestTogether) {
  CubinKernel one, two, other;
  one.symbol = "_Z1kILi1EEvv";
  one.code_sha256 = "aa";
  two.symbol = "_Z1kILi2EEvv";
  two.code_sha256 = "bb";
  other = two;
  other.code_sha256 = "cc";
  const std::string both = CodeOfKernels({one, two}).at("k");
  EXPECT_EQ(both, CodeOfKernels({two, one}).at("k"));
  EXPECT_EQ(CodeOfKernels({one}).at("k"), "aa");
  EXPECT_NE(both, "aa");
  EXPECT_NE(both, CodeOfKernels({one, other}).at("k"));
}

TEST(Cubin, NamesLoseArgumentsAndTemplates) {
  EXPECT_EQ(KernelName("_ZN1x4openILi32EEEvPi"), "x::open");
  EXPECT_EQ(KernelName("_Z7boundedPf"), "bounded");
  EXPECT_EQ(KernelName("_ZN4h3rt12_GLOBAL__N_11kIfEEvPT_"), "h3rt::(anonymous namespace)::k");
  EXPECT_EQ(KernelName("plain"), "plain");
  EXPECT_EQ(ArchitectureOf("sm_121a"), 121);
  EXPECT_EQ(ArchitectureOf("sm_90"), 90);
  EXPECT_EQ(ArchitectureOf("compute_90"), 0);
}

TEST(OccupancyOfSm, EachLimitBinds) {
  const Doc hopper = {{"registers_per_sm", 65536},
                      {"shared_per_sm_bytes", 233472},
                      {"shared_per_cta_reserved_bytes", 1024},
                      {"max_threads_per_sm", 2048},
                      {"max_ctas_per_sm", 32}};
  const auto fit = [&](int64_t threads, int64_t registers, int64_t shared) {
    const Occupancy got = OccupancyOf(hopper, threads, registers, shared);
    return std::to_string(got.ctas) + " " + got.limiter;
  };
  EXPECT_EQ(fit(1024, 32, 0), "2 threads");
  EXPECT_EQ(fit(1024, 64, 0), "1 registers");
  EXPECT_EQ(fit(32, 16, 0), "32 ctas");
  EXPECT_EQ(fit(128, 32, 51200), "4 shared");
  EXPECT_EQ(fit(320, 168, 0), "1 registers");
  EXPECT_EQ(fit(1024, 255, 0), "0 registers");
}

TEST_F(Compiling, TheProbesBehaveAsDeclared) {
  size_t pieces = 0;
  for (const Experiment* experiment : CompileProbeExperiments()) {
    const auto evidence = RunBuildGate(kTree, *experiment, {});
    ASSERT_TRUE(evidence.ok()) << experiment->id << ": " << evidence.status();
    for (const NewEvidence& piece : *evidence) {
      const Doc& body = piece.envelope["body"];
      EXPECT_EQ(piece.envelope["experiment"], experiment->id);
      EXPECT_EQ(piece.envelope["word"], "assembled");
      EXPECT_EQ(piece.envelope["origin"], "compiled");
      ++pieces;
      if (piece.envelope["kind"] != "compile") continue;
      EXPECT_EQ(body["outcome"], body["expected"]) << experiment->id;
      EXPECT_EQ(body["control"]["outcome"], body["control"]["expected"]) << experiment->id;
      EXPECT_FALSE(piece.blobs.at("compile.log").empty());
      for (const Doc& line : body["diagnostics"]) {
        EXPECT_EQ(line.get<std::string>().find("tmpxft"), std::string::npos) << line;
      }
    }
  }
  // compile: wgmma 1, umma 2, mxf4 2, spill 2; resource: mma.sync 1, mxf4 1, spill 2.
  EXPECT_EQ(pieces, 11u);
}

TEST_F(Compiling, ThePlantedSpillIsReportedOnBothTargets) {
  const auto evidence = RunBuildGate(kTree, ProbeOf("compiler-planted-spill"), {});
  ASSERT_TRUE(evidence.ok()) << evidence.status();
  std::set<std::string> targets;
  for (const NewEvidence& piece : *evidence) {
    if (piece.envelope["kind"] != "resource") continue;
    const Doc& kernel = piece.envelope["body"]["kernels"][0];
    EXPECT_GT(IntAt(kernel, "spill_store_bytes"), 0);
    EXPECT_GT(IntAt(kernel, "stack_bytes"), 0);
    EXPECT_EQ(IntAt(kernel, "registers"), 64);
    EXPECT_EQ(IntAt(kernel, "ctas_per_sm"), 1);
    targets.insert(TextAt(piece.envelope, "target"));
  }
  EXPECT_EQ(targets, (std::set<std::string>{"sm_121a", "sm_90a"}));
}

TEST_F(Compiling, ATypingMistakeNeverPassesForARejection) {
  Write("research/probes/wgmma.cu", "__global__ void k() { asm(\"wgmma.mma_asinc;\"); }\n");
  const auto evidence = RunBuildGate(store_, ProbeOf("wgmma-hopper-retarget"), {});
  EXPECT_EQ(evidence.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(evidence.status().message().find("another reason"), std::string::npos);
}

TEST_F(Compiling, ARejectionWhoseControlIsRejectedTooSaysSo) {
  Write("research/probes/wgmma.cu",
        "#error 'wgmma.mma_async with floating point types' not supported on .target 'sm_121a'\n");
  const auto evidence = RunBuildGate(store_, ProbeOf("wgmma-hopper-retarget"), {});
  ASSERT_TRUE(evidence.ok()) << evidence.status();
  EXPECT_EQ((*evidence)[0].envelope["body"]["control"]["outcome"], "rejected");
  EXPECT_EQ((*evidence)[0].envelope["body"]["control"]["expected"], "ok");
}

TEST_F(Compiling, AnArmGivesCompileAndResourceOfItsKernelsOnly) {
  Write("h3rt/x.cu",
        "namespace n { template <int N> __global__ __launch_bounds__(128) void mine(int* p) { *p = "
        "N; }\n"
        "template __global__ void mine<1>(int*); template __global__ void mine<2>(int*); }\n"
        "__global__ void other(int* p) { *p = 3; }\n");
  RunRequest request;
  request.policy_digest = std::string(64, 'c');
  const auto evidence = RunBuildGate(store_, OneArm({"n::mine"}), request);
  ASSERT_TRUE(evidence.ok()) << evidence.status();
  ASSERT_EQ(evidence->size(), 2u);
  const Doc& compile = (*evidence)[0].envelope;
  const Doc& resource = (*evidence)[1].envelope;
  EXPECT_EQ(compile["vid"], "fast");
  EXPECT_EQ(compile["target"], "sm_90a");
  EXPECT_EQ(compile["body"]["outcome"], "ok");
  EXPECT_EQ(compile["subject"]["source_digest"], ClosureDigest(store_, {"h3rt/x.cu"}).value());
  EXPECT_EQ(compile["harness"]["policy_digest"], request.policy_digest);
  ASSERT_EQ(resource["body"]["kernels"].size(), 2u);
  EXPECT_EQ(resource["body"]["kernels"][0]["max_threads"], 128);
  EXPECT_EQ(resource["body"]["kernels"][0]["ctas_per_sm"], 16);
  EXPECT_EQ(resource["body"]["kernels"][0]["limiter"], "threads");

  EXPECT_EQ(RunBuildGate(store_, OneArm({"n::absent"}), request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.vid = "nobody";
  EXPECT_EQ(RunBuildGate(store_, OneArm({}), request).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Compiling, OutcomesAreToldApart) {
  Write("h3rt/x.cu", "__global__ void k( {}\n");
  const auto rejected = CompileFor(store_, "h3rt/x.cu", "sm_90a");
  ASSERT_TRUE(rejected.ok()) << rejected.status();
  EXPECT_EQ(rejected->outcome, "rejected");
  EXPECT_FALSE(rejected->diagnostics.empty());
  EXPECT_EQ(CompileFor(store_, "h3rt/x.cu", "sm_11")->outcome, "rejected");
  EXPECT_EQ(CompileFor(store_, "h3rt/none.cu", "sm_90a").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(CompileFor(store_, "../x.cu", "sm_90a").status().code(),
            absl::StatusCode::kInvalidArgument);
  Write("h3rt/x.cu", "__global__ void k(long* p) { *p = 1; }\n");
  EXPECT_EQ(CompileFor(store_, "h3rt/x.cu", "sm_90a", {.timeout_ms = 1})->outcome, "timeout");
  EXPECT_EQ(CompileFor(store_, "h3rt/x.cu", "sm_90a", {.address_space_bytes = uint64_t{48} << 20})
                ->outcome,
            "oom");
}

TEST_F(Compiling, MachineCodeRescuesACommentAndNothingElse) {
  Write("h3rt/x.cu", "__global__ void k(int* p) { *p = 1; }\n");
  Evidence evidence;
  evidence.json = RunBuildGate(store_, OneArm({}), {}).value()[1].envelope;
  const Doc policy;
  EXPECT_FALSE(FreshnessOf(store_, evidence, policy, {.recompile = NvccRecompile(store_)}).stale);
  Write("h3rt/x.cu", "// why\n__global__ void k(int* p) { *p = 1; }\n");
  EXPECT_TRUE(FreshnessOf(store_, evidence, policy).stale);
  const Freshness rescued =
      FreshnessOf(store_, evidence, policy, {.recompile = NvccRecompile(store_)});
  EXPECT_FALSE(rescued.stale) << rescued.reason;
  EXPECT_EQ(rescued.cells.at("binary"), Cell::kSame);
  Write("h3rt/x.cu", "__global__ void k(int* p) { *p = 2; }\n");
  EXPECT_TRUE(FreshnessOf(store_, evidence, policy, {.recompile = NvccRecompile(store_)}).stale);
}

TEST(NoCompiler, NothingIsMadeAndNothingRescued) {
  if (FindCudaProgram("nvcc")) GTEST_SKIP() << "nvcc is here";
  EXPECT_EQ(RunBuildGate(kTree, ProbeOf("wgmma-hopper-retarget"), {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(NvccRecompile(kTree));
}

}  // namespace
}  // namespace h3rt::lab
