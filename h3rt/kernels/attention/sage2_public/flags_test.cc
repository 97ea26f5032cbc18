// The build's flags do not decide bits: the float operations of the device code are the same with
// and without fast math. Everything below PTX takes each of these operations as it is written,
// since all have their rounding and flushing in their names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/file.h"
#include "h3rt/base/process.h"

namespace h3rt {
namespace {

// kernel -> operation ("fma.rn.ftz.f32") -> how often it stands there.
using Operations = std::map<std::string, std::map<std::string, int>>;

// A float operation: an opcode with a float type that computes, not one that moves bits.
bool IsFloatOperation(std::string_view opcode) {
  for (const std::string_view mover : {"mov", "ld", "st", "selp", "shfl", "cvta"}) {
    if (opcode.substr(0, opcode.find('.')) == mover) return false;
  }
  for (const std::string_view type :
       {".f32", ".f64", ".f16", ".bf16", ".f16x2", ".bf16x2", ".e4m3", ".e4m3x2", ".e5m2"}) {
    const size_t at = opcode.find(type);
    if (at == std::string_view::npos) continue;
    const size_t end = at + type.size();
    if (end == opcode.size() || opcode[end] == '.') return true;
  }
  return false;
}

// The opcode that `text` begins with, after white space, braces and a predicate.
std::string_view OpcodeOf(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n{}");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  if (text[0] == '@') {
    const size_t after = text.find_first_of(" \t");
    if (after == std::string_view::npos) return {};
    return OpcodeOf(text.substr(after));
  }
  return text.substr(0, text.find_first_of(" \t\n"));
}

Operations OperationsOf(const std::string& ptx) {
  Operations found;
  std::string kernel;  // empty: outside of any
  size_t at = 0;
  while (at < ptx.size()) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    std::string_view line = std::string_view(ptx).substr(at, end - at);
    at = end + 1;
    line = line.substr(0, line.find("//"));
    const size_t entry = line.find(".entry ");
    if (entry != std::string_view::npos) {
      const std::string_view name = line.substr(entry + 7);
      kernel = std::string(name.substr(0, name.find('(')));
      found[kernel];
      continue;
    }
    while (!line.empty()) {  // inline assembly puts several statements on a line
      const size_t semicolon = std::min(line.find(';'), line.size());
      const std::string_view opcode = OpcodeOf(line.substr(0, semicolon));
      if (IsFloatOperation(opcode)) ++found[kernel][std::string(opcode)];
      line.remove_prefix(std::min(semicolon + 1, line.size()));
    }
  }
  return found;
}

int64_t CountOf(const Operations& operations) {
  int64_t count = 0;
  for (const auto& [kernel, counts] : operations) {
    for (const auto& [opcode, n] : counts) count += n;
  }
  return count;
}

class FlagsTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const named = std::getenv("CUDACXX");
    nvcc_ = FindCudaProgram(named != nullptr && *named != '\0' ? named : "nvcc");
    if (!nvcc_.has_value()) GTEST_SKIP() << "no nvcc in CUDACXX, PATH or the toolkit's folder";
    folder_ = testing::TempDir() + "h3rt_flags_test_" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
              std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Operations Compile(const std::string& source, bool fast_math) {
    const std::string to = folder_ + (fast_math ? "/fast.ptx" : "/plain.ptx");
    std::vector<std::string> argv = {*nvcc_,
                                     "-O3",
                                     "-std=c++20",
                                     "-DNDEBUG",
                                     std::string("-I") + H3RT_SOURCE_DIR,
                                     "-arch=compute_90a",
                                     "-ptx",
                                     source,
                                     "-o",
                                     to};
    if (fast_math) argv.push_back("--use_fast_math");
    const absl::StatusOr<ProgramResult> run = RunProgram(argv);
    if (!run.ok() || !run->ok()) {
      ADD_FAILURE() << source << ": " << (run.ok() ? run->err : MessageOf(run.status()));
      return {};
    }
    const absl::StatusOr<std::string> ptx = ReadFile(to);
    if (!ptx.ok()) {
      ADD_FAILURE() << MessageOf(ptx.status());
      return {};
    }
    return OperationsOf(*ptx);
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    const absl::Status written = WriteFileAtomically(path, text);
    EXPECT_TRUE(written.ok()) << MessageOf(written);
    return path;
  }

  std::optional<std::string> nvcc_;
  std::string folder_;
};

TEST_F(FlagsTest, PlantedPlainArithmeticDiffers) {
  const std::string planted =
      Write("planted.cu",
            "extern \"C\" __global__ void product(float* x) { x[0] = x[1] * x[2] + x[3]; }\n"
            "extern \"C\" __global__ void quotient(float* x) { x[0] = x[1] / x[2]; }\n"
            "extern \"C\" __global__ void intrinsic(float* x) { x[0] = __fadd_rn(x[1], x[2]); }\n");
  const Operations plain = Compile(planted, false);
  const Operations fast = Compile(planted, true);
  for (const char* kernel : {"product", "quotient", "intrinsic"}) {
    ASSERT_EQ(plain.count(kernel), 1u) << kernel;
    ASSERT_EQ(fast.count(kernel), 1u) << kernel;
    EXPECT_NE(plain.at(kernel), fast.at(kernel)) << kernel;
  }
}

TEST_F(FlagsTest, StrictOperationsAreTheSame) {
  const std::string strict =
      Write("strict.cu",
            "#include \"h3rt/device/ptx/strict_f32.cuh\"\n"
            "using namespace h3rt::device;\n"
            "extern \"C\" __global__ void strict(float* x) {\n"
            "  x[0] = AddFtz(MulFtz(x[1], x[2]), FmaFtz(x[3], RcpFtz(x[4]), Ex2Ftz(x[5])));\n"
            "}\n");
  const Operations plain = Compile(strict, false);
  EXPECT_EQ(plain, Compile(strict, true));
  const std::map<std::string, int> wanted = {{"add.rn.ftz.f32", 1},
                                             {"mul.rn.ftz.f32", 1},
                                             {"fma.rn.ftz.f32", 1},
                                             {"rcp.approx.ftz.f32", 1},
                                             {"ex2.approx.ftz.f32", 1}};
  EXPECT_EQ(plain.at("strict"), wanted);
}

TEST_F(FlagsTest, DeviceCodeIsTheSameWithFastMath) {
  const std::string folder = std::string(H3RT_SOURCE_DIR) + "/h3rt/kernels/attention/sage2_public";
  std::vector<std::string> sources;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".cu") sources.push_back(entry.path().string());
  }
  std::sort(sources.begin(), sources.end());
  int64_t compared = 0;
  for (const std::string& source : sources) {
    SCOPED_TRACE(source);
    std::future<Operations> second =
        std::async(std::launch::async, [&] { return Compile(source, true); });
    const Operations plain = Compile(source, false);
    const Operations fast = second.get();
    compared += CountOf(plain);
    ASSERT_EQ(plain.size(), fast.size());
    for (const auto& [kernel, counts] : plain) {
      ASSERT_EQ(fast.count(kernel), 1u) << kernel;
      EXPECT_EQ(counts, fast.at(kernel)) << kernel;
    }
  }
  EXPECT_GT(compared, 1000) << "device code of several kernels";
}

}  // namespace
}  // namespace h3rt
