// h3rt lab over the committed laboratory and over copies of it that are spoiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "h3rt/base/json.h"
#include "tests/cli/program.h"

namespace h3rt::cli_test {
namespace {

using ::testing::HasSubstr;

constexpr char kId[] = "elem-fused-residual-rmsnorm";
constexpr char kRegistry[] = "research/experiment_registry.json";
constexpr char kLog[] = "research/vortex_exact_attention/EXPERIMENT_LOG.jsonl";

// The laboratory and the sources that its evidence speaks of, to write into.
class LabCopy {
 public:
  LabCopy() {
    const auto all = std::filesystem::copy_options::recursive;
    for (const char* part : {"research", "benchmarks", "h3rt"}) {
      std::filesystem::copy(std::string(H3RT_SOURCE_DIR "/") + part, folder_ / part, all);
    }
    std::filesystem::copy(H3RT_SOURCE_DIR "/README.md", folder_ / "README.md");
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  ProgramRun Lab(std::vector<std::string> args) const {
    args.insert(args.begin(), "lab");
    args.insert(args.end(), {"--root", folder_.path()});
    return RunProgram(args);
  }
  void Replace(const std::string& name, const std::string& old, const std::string& now) const {
    std::string text = ReadAll(folder_ / name);
    const size_t at = text.find(old);
    ASSERT_NE(at, std::string::npos) << name << " holds no " << old;
    WriteAll(folder_ / name, text.replace(at, old.size(), now));
  }
  // The first file under benchmarks/ with this ending.
  std::string AnyEvidence(const std::string& extension) const {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_ / "benchmarks")) {
      const bool named_by_hash = entry.path().stem().string().size() == 64;
      if (named_by_hash && entry.path().extension() == extension) return entry.path().string();
    }
    return {};
  }

 private:
  TemporaryFolder folder_;
};

ProgramRun Committed(std::vector<std::string> args) {
  args.insert(args.begin(), "lab");
  args.insert(args.end(), {"--root", H3RT_SOURCE_DIR});
  return RunProgram(args);
}

TEST(Lab, TheCommittedLaboratoryHolds) {
  const ProgramRun validate = Committed({"validate", "--strict"});
  EXPECT_EQ(validate.exit_code, 0) << validate.out << validate.err;
  const ProgramRun verify = Committed({"verify", "--recompute"});
  EXPECT_EQ(verify.exit_code, 0) << verify.out << verify.err;
  const ProgramRun report = Committed({"report", "--check"});
  EXPECT_EQ(report.exit_code, 0) << report.out << report.err;
  const ProgramRun log = Committed({"log", "verify"});
  EXPECT_EQ(log.exit_code, 0) << log.out << log.err;
}

TEST(Lab, ShowWhySaysWhatCarriesAStatusAndWhatIsMissing) {
  const ProgramRun run = Committed({"show", kId, "--why"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* text :
       {"research_retained      permitted, the strongest, held",
        "production_accepted    missing: all six gates", "build on sm_90a: pass",
        "build on sm_121a: pass", "correct on sm_90a: pass", "isolated on sm_90a: pass", "A/A"}) {
    EXPECT_THAT(run.out, HasSubstr(text));
  }
}

TEST(Lab, TheSeedPageIsFoundInconsistent) {
  const ProgramRun run = Committed(
      {"import", "seed-md", H3RT_TEST_DATA "/lab/seeds/000_8301e0a778473419.txt", "--check"});
  EXPECT_EQ(run.exit_code, 1);
  for (const char* text :
       {"production_accepted: 5 counted, 6 printed", "research_retained: 10 counted, 8 printed",
        "architecture_rejected: 9 counted, 7 printed", "incomplete: 26 counted, 25 printed",
        "70 rows", "total of 66"}) {
    EXPECT_THAT(run.out, HasSubstr(text));
  }
}

TEST(Lab, CheckImportsNothing) {
  const LabCopy copy;
  constexpr char kHead[] = "research/vortex_exact_attention/HEAD";
  const std::string head = ReadAll(copy / kHead);
  // A folder that is not the inventory's.
  const ProgramRun other = copy.Lab({"import", "inventory", H3RT_TEST_DATA "/sage2", "--check"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.out, HasSubstr("E-ART-FLAG"));
  for (const char* form : {"fixture", "inspection", "ptxas-log", "sanitizer-log", "ncu-csv"}) {
    const ProgramRun run =
        copy.Lab({"import", form, H3RT_TEST_DATA "/sage2", "--experiment", kId, "--check"});
    EXPECT_EQ(run.exit_code, 2) << form;
    EXPECT_THAT(run.err, HasSubstr("--check")) << form;
  }
  EXPECT_EQ(ReadAll(copy / kHead), head);
}

TEST(Lab, EveryReaderSpeaksJson) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"validate"},
                                             {"status"},
                                             {"show", kId},
                                             {"schema"},
                                             {"verify"},
                                             {"retry"},
                                             {"report", "--check"},
                                             {"log", "show"},
                                             {"log", "verify"}}) {
    std::vector<std::string> with = args;
    with.emplace_back("--json");
    const ProgramRun run = Committed(with);
    EXPECT_EQ(run.exit_code, 0) << args[0] << ": " << run.err;
    EXPECT_TRUE(ParseJson(run.out, args[0]).ok()) << args[0] << ": " << run.out.substr(0, 200);
  }
}

TEST(Lab, AFlippedByteIsFoundWhereverItLies) {
  const LabCopy copy;
  for (const std::string& file : {copy / kLog, copy.AnyEvidence(".json"), copy.AnyEvidence(".z"),
                                  copy / "research/vortex_exact_attention/HEAD"}) {
    const std::string whole = ReadAll(file);
    ASSERT_FALSE(whole.empty()) << file;
    std::string flipped = whole;
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
    WriteAll(file, flipped);
    const ProgramRun run = copy.Lab({"validate"});
    EXPECT_EQ(run.exit_code, 7) << file << "\n" << run.out << run.err;
    WriteAll(file, whole);
  }
  EXPECT_EQ(copy.Lab({"validate"}).exit_code, 0);
}

TEST(Lab, AStatusThatNothingCarriesIsRefusedAndFound) {
  const LabCopy copy;
  const ProgramRun set =
      copy.Lab({"set", kId, "--status", "quality_rejected", "--title", "t", "--because", "b"});
  EXPECT_EQ(set.exit_code, 2);
  EXPECT_THAT(set.err, HasSubstr("quality_rejected is not carried by the evidence"));
  EXPECT_THAT(set.err, HasSubstr("missing: a fail of the correct gate"));
  // By hand it is no better: the digest, the log and the evidence all disagree.
  copy.Replace(kRegistry, "\"status\":\"research_retained\"", "\"status\":\"production_accepted\"");
  const ProgramRun validate = copy.Lab({"validate"});
  EXPECT_NE(validate.exit_code, 0);
  EXPECT_THAT(validate.out, HasSubstr("E-DIGEST"));
}

TEST(Lab, EvidenceOfAChangedKernelIsStaleAndMayNotBeClaimed) {
  const LabCopy copy;
  copy.Replace("h3rt/kernels/add_norm/fused/kernel.cuh", "int turn = 0;", "int turn = 1;");
  const ProgramRun run = copy.Lab({"validate"});
  EXPECT_THAT(run.out, HasSubstr("source: changed since"));
  EXPECT_THAT(run.out, HasSubstr("E-CLAIM"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(copy.Lab({"report", "--check"}).exit_code, 1);
}

TEST(Lab, WhatIsNotThereHasItsExitCode) {
  EXPECT_EQ(Committed({"show", "no-such-record"}).exit_code, 3);
  EXPECT_EQ(RunProgram({"lab", "validate", "--root", "/nonexistent"}).exit_code, 3);
  EXPECT_EQ(Committed({"status", "--by", "colour"}).exit_code, 2);
  EXPECT_EQ(Committed({"gate", "sage-scheduler-v1"}).exit_code, 10);
  EXPECT_EQ(Committed({"diff", H3RT_SOURCE_DIR, H3RT_SOURCE_DIR}).exit_code, 0);
  EXPECT_EQ(RunProgram({"lab"}).exit_code, 2);
}

TEST(Lab, ARunWithoutAPlanOrADeviceChangesNothing) {
  const LabCopy copy;
  const std::string before = ReadAll(copy / kLog);
  const ProgramRun run = copy.Lab({"run", kId, "--gate", "correct"});
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_EQ(ReadAll(copy / kLog), before);
}

TEST(Lab, ANewRecordIsOpenedOnceAndFromAGoodFileOnly) {
  const LabCopy copy;
  const std::string file = copy / "record.json";
  const auto add = [&](const std::string& text) {
    WriteAll(file, text);
    return copy.Lab({"add", "lora-of-tests", "--record", file, "--because", "It is wanted."});
  };
  const std::string log = ReadAll(copy / kLog);
  for (const char* bad : {"", "{", R"({"name":"N","name":"M","group":"lora","kind":"probe"})",
                          R"({"name":"N","group":"lora"})",
                          R"({"name":"N","group":"lora","kind":"probe","status":"incomplete"})"}) {
    const ProgramRun run = add(bad);
    EXPECT_NE(run.exit_code, 0) << bad << run.out;
    EXPECT_FALSE((run.out + run.err).empty()) << bad;
  }
  EXPECT_EQ(
      copy.Lab({"add", "lora-of-tests", "--record", copy / "none", "--because", "b"}).exit_code, 3);
  EXPECT_EQ(ReadAll(copy / kLog), log) << "nothing was written";
  const std::string good = R"({"name":"N","group":"lora","kind":"probe"})";
  const ProgramRun run = add(good);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("lora-of-tests: a new record, log entry "));
  EXPECT_THAT(copy.Lab({"show", "lora-of-tests"}).out, HasSubstr("incomplete"));
  const ProgramRun again = add(good);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("an id that the registry has"));
  EXPECT_EQ(copy.Lab({"report"}).exit_code, 0);
  EXPECT_EQ(copy.Lab({"validate"}).exit_code, 0);
}

TEST(Lab, AnEntryInWordsIsAppendedAndTheLogStaysAPrefix) {
  const LabCopy copy;
  const std::string head = ReadAll(copy / "research/vortex_exact_attention/HEAD");
  WriteAll(copy / "head", head);
  WriteAll(copy / "entry.json", R"({"title":"A note","decision":"Nothing was decided."})");
  EXPECT_EQ(copy.Lab({"log", "append", copy / "entry.json"}).exit_code, 0);
  EXPECT_EQ(copy.Lab({"log", "verify", "--against", copy / "head"}).exit_code, 0);
  EXPECT_THAT(copy.Lab({"log", "show", "--last", "1"}).out, HasSubstr("A note"));
  // Back to the old log: it no longer reaches the head that was seen.
  WriteAll(copy / "newer", ReadAll(copy / "research/vortex_exact_attention/HEAD"));
  std::string text = ReadAll(copy / kLog);
  text.erase(text.rfind('\n', text.size() - 2) + 1);
  WriteAll(copy / kLog, text);
  WriteAll(copy / "research/vortex_exact_attention/HEAD", head);
  EXPECT_EQ(copy.Lab({"log", "verify", "--against", copy / "newer"}).exit_code, 7);
}

}  // namespace
}  // namespace h3rt::cli_test
