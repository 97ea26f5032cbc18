#include "h3rt/lab/freshness.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "h3rt/lab/closure.h"
#include "h3rt/lab/experiments.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

class Tree : public ::testing::Test {
 protected:
  Tree() {
    std::string name = testing::TempDir() + "/lab-tree-XXXXXX";
    store_.root = ::mkdtemp(name.data());
    Write("h3rt/k/a.cu", "#include \"h3rt/k/b.cuh\"\n#include <cuda_bf16.h>\nint a;\n");
    Write("h3rt/k/b.cuh", "#pragma once\n#include \"h3rt/k/c.h\"\n");
    Write("h3rt/k/c.h", "#pragma once\n");
    Write("h3rt/k/base.cu", "int base;\n");
    for (const char* path : kHarnessSources) Write(path, "int timer;  // ticks\n");
  }
  ~Tree() override { fs::remove_all(store_.root); }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(store_.root + "/" + path).parent_path());
    std::ofstream(store_.root + "/" + path, std::ios::binary) << text;
  }
  Doc Subject(const std::string& root) {
    return {{"source_paths", {root}},
            {"source_digest", ClosureDigest(store_, {root}).value()},
            {"build_digest", nullptr},
            {"kernels", {{{"symbol", "k"}, {"code_sha256", std::string(64, 'a')}}}},
            {"baseline", nullptr}};
  }
  Evidence Timing() {
    Evidence evidence;
    evidence.json = {
        {"kind", "timing_pair"},
        {"origin", "measured"},
        {"subject", Subject("h3rt/k/a.cu")},
        {"workload", {{"generator", kInputGenerator}}},
        {"harness",
         {{"source_digest", HarnessDigest(store_).value()}, {"policy_digest", DigestOf(policy_)}}},
        {"body", Doc::object()}};
    evidence.json["subject"]["baseline"] = Subject("h3rt/k/base.cu");
    return evidence;
  }
  Freshness Look(const Evidence& evidence, const Recompile& recompile = nullptr) {
    return FreshnessOf(store_, evidence, policy_, {.recompile = recompile});
  }
  // A compiler that gives this digest for the one kernel.
  static Recompile Compiler(char digit, int* calls = nullptr) {
    return [=](const Doc&) -> absl::StatusOr<std::map<std::string, std::string>> {
      if (calls) ++*calls;
      return std::map<std::string, std::string>{{"k", std::string(64, digit)}};
    };
  }
  Store store_;
  Doc policy_ = {{"version", 1}};
};

TEST_F(Tree, ClosureFollowsProjectIncludesOnly) {
  EXPECT_EQ(ClosureOf(store_, {"h3rt/k/a.cu"}).value(),
            (std::vector<std::string>{"h3rt/k/a.cu", "h3rt/k/b.cuh", "h3rt/k/c.h"}));
}

TEST_F(Tree, ClosureDigestIsThatOfSha256sumOverTheSortedFiles) {
  std::string lines;
  for (const char* path : {"h3rt/k/a.cu", "h3rt/k/b.cuh", "h3rt/k/c.h"}) {
    std::ifstream in(store_.root + "/" + path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    lines += DigestOfText(text) + "  " + path + "\n";
  }
  EXPECT_EQ(ClosureDigest(store_, {"h3rt/k/a.cu"}).value(), DigestOfText(lines));
}

TEST_F(Tree, MissingIncludeMissingRootAndEscapesAreErrors) {
  Write("h3rt/k/c.h", "#include \"h3rt/k/none.h\"\n");
  const auto missing = ClosureDigest(store_, {"h3rt/k/a.cu"});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("h3rt/k/c.h"), std::string::npos);
  EXPECT_EQ(ClosureDigest(store_, {"h3rt/none.cu"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ClosureDigest(store_, {"../x.cu"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ClosureDigest(store_, {"/etc/passwd"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(Tree, AnEditOfTheSameSizeIsSeenAtOnce) {
  const std::string before = ClosureDigest(store_, {"h3rt/k/a.cu"}).value();
  Write("h3rt/k/c.h", "#pragma oncE\n");
  EXPECT_NE(ClosureDigest(store_, {"h3rt/k/a.cu"}).value(), before);
}

TEST(Includes, EverySpellingIsSeenAndMacrosAreRefused) {
  const auto found = ScanIncludes(
      "#if 0\n # include \"h3rt/a.h\"\n#endif\n/* x */ #include <h3rt/b.h>\n#inc\\\nlude "
      "\"h3rt/c.h\"\n%:include \"h3rt/d.h\"\n/*\n#include \"h3rt/e.h\"\n*/\n// #include "
      "\"h3rt/no.h\"\nconst char* s = \"#include \\\"h3rt/no.h\\\"\";\n#include \"absl/x.h\"\n"
      "#include/**/\"h3rt/f.h\"\r\n#included \"h3rt/no.h\"\n",
      "x.cu");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, (std::vector<std::string>{"h3rt/a.h", "h3rt/b.h", "h3rt/c.h", "h3rt/d.h",
                                              "h3rt/e.h", "h3rt/f.h"}));
  EXPECT_EQ(ScanIncludes("#include NAME\n", "x.cu").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Normalised, CommentsAndSpaceGoLiteralsAndWordsStay) {
  EXPECT_EQ(NormalisedSource("int  a = 1'000; // one\nreturn /* x */ a+b;\n"),
            "int a=1'000;return a+b;");
  EXPECT_EQ(NormalisedSource("f(\"a  /* b */\", '\"', R\"(x  // y)\");"),
            "f(\"a  /* b */\",'\"',R\"(x  // y)\");");
  EXPECT_NE(NormalisedSource("#define A\nB\n"), NormalisedSource("#define A B\n"));
  EXPECT_EQ(NormalisedSource("a // x \\\nb\nc"), "a c");
  EXPECT_NE(NormalisedSource("x = 1;"), NormalisedSource("x = 2;"));
}

TEST_F(Tree, UnchangedTimingIsFresh) {
  const Freshness fresh = Look(Timing());
  EXPECT_FALSE(fresh.stale) << fresh.reason;
  EXPECT_EQ(fresh.cells.at("source"), Cell::kSame);
  EXPECT_EQ(fresh.cells.at("baseline"), Cell::kSame);
  EXPECT_EQ(fresh.cells.at("harness"), Cell::kSame);
  EXPECT_EQ(fresh.cells.at("policy"), Cell::kSame);
  EXPECT_EQ(fresh.cells.at("inputs"), Cell::kSame);
  EXPECT_EQ(fresh.cells.size(), 8u);
}

TEST_F(Tree, ChangedHeaderMakesStaleUnlessTheMachineCodeIsTheSame) {
  const Evidence timing = Timing();
  Evidence evidence = timing;
  evidence.json["kind"] = "compile";
  evidence.json["subject"]["baseline"] = nullptr;
  Write("h3rt/k/c.h", "#pragma once\n// a comment\n");
  EXPECT_TRUE(Look(evidence).stale);
  EXPECT_EQ(Look(evidence).cells.at("source"), Cell::kChanged);
  const Freshness rescued = Look(evidence, Compiler('a'));
  EXPECT_FALSE(rescued.stale);
  EXPECT_EQ(rescued.cells.at("binary"), Cell::kSame);
  EXPECT_NE(rescued.reason.find("machine code"), std::string::npos);
  EXPECT_TRUE(Look(evidence, Compiler('b')).stale);
  // What ran also ran the host's code of those sources, which no kernel's code shows.
  int calls = 0;
  EXPECT_TRUE(Look(timing, Compiler('a', &calls)).stale);
  EXPECT_EQ(calls, 0);
  Evidence unknown = evidence;
  unknown.json["subject"]["kernels"][0]["code_sha256"] = nullptr;
  EXPECT_TRUE(Look(unknown, Compiler('a')).stale);
}

TEST_F(Tree, NothingIsCompiledForFreshEvidence) {
  int calls = 0;
  EXPECT_FALSE(Look(Timing(), Compiler('a', &calls)).stale);
  EXPECT_EQ(calls, 0);
}

TEST_F(Tree, ARemovedSourceIsNamed) {
  const Evidence evidence = Timing();
  fs::remove(store_.root + "/h3rt/k/a.cu");
  const Freshness fresh = Look(evidence);
  EXPECT_TRUE(fresh.stale);
  EXPECT_NE(fresh.reason.find("h3rt/k/a.cu"), std::string::npos);
}

TEST_F(Tree, ChangedBaselineMakesThePairStale) {
  const Evidence evidence = Timing();
  Write("h3rt/k/base.cu", "int faster;\n");
  EXPECT_TRUE(Look(evidence).stale);
  EXPECT_EQ(Look(evidence).reason.substr(0, 9), "baseline:");
  EXPECT_TRUE(Look(evidence, Compiler('a')).stale);
}

TEST_F(Tree, TheTimerMakesTimingsStaleButNotParity) {
  const Evidence timing = Timing();
  Evidence parity = timing;
  parity.json["kind"] = "parity";
  Write(kHarnessSources[0], "int  timer; // other words\n");
  EXPECT_FALSE(Look(timing).stale) << "a comment does not time";
  Write(kHarnessSources[0], "int timer2;\n");
  EXPECT_TRUE(Look(timing).stale);
  EXPECT_FALSE(Look(parity).stale);
}

TEST_F(Tree, PolicyDoesNotMakeStaleInputsDo) {
  Evidence evidence = Timing();
  policy_["version"] = 2;
  EXPECT_FALSE(Look(evidence).stale);
  EXPECT_EQ(Look(evidence).cells.at("policy"), Cell::kChanged);
  evidence.json["workload"]["generator"] = "splitmix64/0";
  EXPECT_TRUE(Look(evidence).stale);
  evidence.json["workload"]["generator"] = kGoldenGenerator;
  EXPECT_FALSE(Look(evidence).stale);
}

TEST_F(Tree, ImportedAndUnrecordedAreNeverFresh) {
  Evidence imported = Timing();
  imported.json["origin"] = "imported";
  EXPECT_TRUE(Look(imported).stale);
  Evidence bare = Timing();
  bare.json["subject"]["source_digest"] = nullptr;
  EXPECT_TRUE(Look(bare).stale);
  Evidence garbage;
  garbage.json = {{"kind", 7}, {"subject", {{"source_paths", "x"}}}};
  EXPECT_TRUE(Look(garbage).stale);
}

TEST_F(Tree, AnInspectionFollowsItsDocument) {
  Write("research/note.md", "rule\n");
  Evidence evidence;
  evidence.json = {
      {"kind", "inspection"},
      {"origin", "inspected"},
      {"subject", nullptr},
      {"body", {{"document", "research/note.md"}, {"document_sha256", DigestOfText("rule\n")}}}};
  EXPECT_FALSE(Look(evidence).stale);
  Write("research/note.md", "other\n");
  EXPECT_TRUE(Look(evidence).stale);
}

}  // namespace
}  // namespace h3rt::lab
