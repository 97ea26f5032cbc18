// h3rt explain, and h3rt lab attention-golden on a machine without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "h3rt/base/json.h"
#include "tests/cli/program.h"

namespace h3rt::cli_test {
namespace {

using ::testing::HasSubstr;

constexpr char kIndex[] = H3RT_TEST_DATA "/sage2/index.json";

TEST(Explain, ListsEveryImplementationWithItsReason) {
  const ProgramRun run = RunProgram({"explain", "attention", "--shape", "1,64,64,2,1,128",
                                     "--device", "sm_120a", "--root", H3RT_SOURCE_DIR, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = ParseJson(run.out, "explain");
  ASSERT_TRUE(json.ok()) << json.status();
  const Json& list = (*json)["implementations"];
  ASSERT_EQ(list.size(), 6u);
  for (const Json& item : list) {
    EXPECT_EQ(item["takes_it"].get<bool>(), item["reason"].is_null()) << item;
  }
  EXPECT_EQ(list[0]["path"], "b");
  EXPECT_FALSE(list[0]["takes_it"].get<bool>());  // wgmma is Hopper's
  EXPECT_EQ(list[4]["name"], "cpu");
  EXPECT_TRUE(list[4]["takes_it"].get<bool>());
  EXPECT_EQ(list[5]["name"], "ref");
}

TEST(Explain, AProblemThatNothingTakesIsANo) {
  const ProgramRun run = RunProgram({"explain", "attention", "--shape", "1,64,64,5,2,128"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("5 query heads are no multiple of 2"));
  EXPECT_THAT(run.out, HasSubstr("nothing takes this problem"));
}

TEST(Explain, AShapeThatIsNoneIsRefused) {
  for (const char* shape : {"1,2,3", "1,2,3,4,5,6,7", "1,2,3,4,5,x", "1,-2,3,4,5,6", "1,2,3,4,5,6 ",
                            "1,2,3,4,5,99999999999999999999"}) {
    const ProgramRun run = RunProgram({"explain", "attention", "--shape", shape});
    EXPECT_EQ(run.exit_code, 2) << shape;
    EXPECT_THAT(run.err, HasSubstr("--shape")) << shape;
  }
}

TEST(AttentionGolden, TheHostsOpPassesByValue) {
  const ProgramRun run = RunProgram(
      {"lab", "attention-golden", kIndex, "--impl", "cpu", "--case", "gqa_160", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = ParseJson(run.out, "golden");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["compared"], 8);
  EXPECT_EQ((*json)["failed"], 0);
  EXPECT_LT((*json)["rows"][0]["rel_l2"].get<double>(), 0.01);
}

TEST(AttentionGolden, WhatIsNotThereHasItsExitCode) {
  EXPECT_EQ(RunProgram({"lab", "attention-golden", H3RT_TEST_DATA "/none.json"}).exit_code, 3);
  EXPECT_EQ(RunProgram({"lab", "attention-golden", kIndex, "--case", "none"}).exit_code, 2);
  const ProgramRun impl = RunProgram({"lab", "attention-golden", kIndex, "--impl", "none"});
  EXPECT_EQ(impl.exit_code, 2);
  EXPECT_THAT(impl.err, HasSubstr("sage2_public, oracle, ref, cpu"));
  const ProgramRun large = RunProgram(
      {"lab", "attention-golden", kIndex, "--impl", "ref", "--case", "canonical_h3_37808"});
  EXPECT_EQ(large.exit_code, 10) << large.err;  // nothing was compared
  // What the host gives is no evidence.
  EXPECT_EQ(
      RunProgram({"lab", "attention-golden", kIndex, "--impl", "ref", "--bundle", "x"}).exit_code,
      2);
}

TEST(AttentionGolden, InputsThatComeOutOtherwiseAreACorruptIndex) {
  const TemporaryFolder folder;
  std::string text = ReadAll(kIndex);
  const size_t at = text.find("\"seed\": 12");
  ASSERT_NE(at, std::string::npos);
  WriteAll(folder / "index.json", text.replace(at, 10, "\"seed\": 13"));
  const ProgramRun run = RunProgram(
      {"lab", "attention-golden", folder / "index.json", "--impl", "ref", "--case", "one_row"});
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_THAT(run.err, HasSubstr("another q"));
}

}  // namespace
}  // namespace h3rt::cli_test
