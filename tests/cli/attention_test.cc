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
  for (const char* shape :
       {"1,2,3", "1,2,3,4,5,6,7", "1,2,3,4,5,x", "1,-2,3,4,5,6", "1,2,3,4,5,6 ",
        "1,2,3,4,5,99999999999999999999", "2147483648,2147483648,2147483648,8,8,128",
        "1,4,1099511627776,4,4,1099511627776"}) {
    const ProgramRun run = RunProgram({"explain", "attention", "--shape", shape});
    EXPECT_EQ(run.exit_code, 2) << shape;
    EXPECT_THAT(run.err, HasSubstr("--shape")) << shape;
  }
}

TEST(Explain, ADeviceOutsideTheTableIsRefused) {
  for (const char* device : {"sm_", "sm_1", "sm_999999999999999", "foo"}) {
    const ProgramRun run =
        RunProgram({"explain", "attention", "--shape", "1,2,2,2,2,64", "--device", device});
    EXPECT_EQ(run.exit_code, 2) << device;
    EXPECT_THAT(run.err, HasSubstr("sm_90a")) << device;
  }
}

TEST(Explain, NothingTakesAHeadDimensionOfZero) {
  EXPECT_EQ(RunProgram({"explain", "attention", "--shape", "1,2,2,2,2,0"}).exit_code, 1);
}

TEST(AttentionGolden, AFlagThatWouldDoNothingIsRefused) {
  const std::vector<std::vector<std::string>> wrong = {
      {kIndex, "--impl", "ref", "--time", "3"},
      {kIndex, "--impl", "oracle", "--checkpoints"},
      {kIndex, "--impl", "cpu", "--repeat", "2"},
      {"--corner", "--large"},
      {"--corner", "--impl", "ref"},
      {"--large", "--time", "3"},
      {"--corner", "--granularity", "per_warp"},
      {"--corner", "--repeat", "4"},
      {"--corner", "--checkpoints"},
      {kIndex, "--bundle", H3RT_TEST_DATA}};
  for (const std::vector<std::string>& flags : wrong) {
    std::vector<std::string> args = {"lab", "attention-golden"};
    args.insert(args.end(), flags.begin(), flags.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.exit_code, 2) << flags.back() << run.err;
    EXPECT_THAT(run.err, HasSubstr("got ")) << flags.back();
  }
  // Before any work, so also without a GPU.
  for (const std::string& what : {std::string(kIndex), std::string("--corner")}) {
    EXPECT_EQ(RunProgram({"lab", "attention-golden", what, "--bundle", "no/such/b"}).exit_code, 3);
  }
}

TEST(AttentionGolden, ATruncatedFileBesideTheIndexIsAnError) {
  const TemporaryFolder folder;
  WriteAll(folder / "index.json", ReadAll(kIndex));
  const std::vector<std::string> args = {
      "lab", "attention-golden", folder / "index.json", "--impl", "ref", "--case", "one_row"};
  EXPECT_EQ(RunProgram(args).exit_code, 0);  // none is there
  const std::string whole = ReadAll(H3RT_TEST_DATA "/sage2/one_row.safetensors");
  WriteAll(folder / "one_row.safetensors", whole.substr(0, whole.size() - 1));
  const ProgramRun run = RunProgram(args);
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_THAT(run.err, HasSubstr("one_row.safetensors"));
}

TEST(AttentionGolden, WithoutAnErrorInTheIndexTheHostComparesNothing) {
  const TemporaryFolder folder;
  std::string text = ReadAll(kIndex);
  for (size_t at = 0; (at = text.find("rel_l2_vs_f32", at)) != std::string::npos;) {
    text.replace(at, 13, "rel_l2_absent");
  }
  WriteAll(folder / "index.json", text);
  const ProgramRun run = RunProgram(
      {"lab", "attention-golden", folder / "index.json", "--impl", "ref", "--case", "one_row"});
  EXPECT_EQ(run.exit_code, 10) << run.err;
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
