#include <gtest/gtest.h>

#include "h3rt/base/file.h"
#include "h3rt/lab/tool_logs.h"

namespace h3rt::lab {
namespace {

std::string Fixture(const std::string& name) {
  return ReadFile(std::string(H3RT_TEST_DATA) + "/lab/logs/" + name).value();
}

std::string Codes(const Findings& findings) {
  std::string codes;
  for (const Finding& finding : findings.Sorted()) codes += finding.code + " ";
  return codes;
}

TEST(PtxasLog, TwoTargetsInOneLogAreSplit) {
  Findings findings;
  const auto kernels = ParsePtxasLog(Fixture("ptxas_two_targets.txt"), "log", findings);
  EXPECT_EQ(Codes(findings), "W-RES-HINT ");
  ASSERT_EQ(kernels.size(), 6u);
  EXPECT_EQ(kernels[0].symbol, "_Z6SpillsPf");
  EXPECT_EQ(kernels[0].target, "sm_90a");
  EXPECT_EQ(kernels[0].registers, 64);
  EXPECT_EQ(kernels[0].stack_bytes, 384);
  EXPECT_EQ(kernels[0].spill_store_bytes, 668);
  EXPECT_EQ(kernels[0].spill_load_bytes, 796);
  EXPECT_EQ(kernels[0].barriers, 1);
  EXPECT_EQ(kernels[1].static_shared_bytes, 128);
  EXPECT_EQ(kernels[1].stack_bytes, 256);
  EXPECT_EQ(kernels[3].symbol, "_Z6SpillsPf");
  EXPECT_EQ(kernels[3].target, "sm_121a");
  EXPECT_EQ(kernels[3].spill_store_bytes, 656);
}

TEST(PtxasLog, WhatACalleeSpillsCountsForItsCallers) {
  Findings findings;
  const auto kernels = ParsePtxasLog(
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers, 352 bytes cmem[0], 8 bytes cmem[2]\n"
      "ptxas info    : Function properties for callee\n"
      "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n",
      "log", findings);
  EXPECT_EQ(Codes(findings), "");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].spill_store_bytes, 4);
  EXPECT_EQ(kernels[0].spill_load_bytes, 12);
  EXPECT_EQ(kernels[0].constant_bytes, 360);
}

TEST(PtxasLog, MissingAndUnknownFiguresAreFindings) {
  const std::string entry = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n";
  const std::string rest =
      "ptxas info    : Function properties for k\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers\n";
  for (const std::string& text :
       {std::string(), std::string("nvcc: nothing\n"), entry,
        entry + "ptxas info : Used 2 registers\n",
        "ptxas info    : Used 2 registers\n" + entry + rest,
        entry + rest + "ptxas info    : Used 24 registers, 3 bytes of something new\n",
        entry + "    0 bytes stack frame, -1 bytes spill stores, 0 bytes spill loads\n" + rest,
        entry + rest + "ptxas info    : Used 99999999999999999999 registers\n",
        std::string("ptxas info    : Compiling entry function 'k'\n") + rest}) {
    Findings findings;
    ParsePtxasLog(text, "log", findings);
    EXPECT_TRUE(findings.Has("E-RES-MISSING")) << text;
  }
  Findings findings;
  EXPECT_EQ(ParsePtxasLog(entry + rest, "log", findings).size(), 1u);
  EXPECT_EQ(Codes(findings), "");
}

TEST(SanitizerLog, DisplayedAndTotalHazardsAreBothKept) {
  Findings findings;
  const auto log = ParseSanitizerLog(Fixture("racecheck_one_race.txt"), "log", findings);
  ASSERT_TRUE(log.has_value());
  EXPECT_EQ(Codes(findings), "");
  EXPECT_EQ(log->tool, "racecheck");
  EXPECT_EQ(log->hazards_displayed, 1);
  EXPECT_EQ(log->hazards_total, 256);
  EXPECT_EQ(log->errors, 1);
}

TEST(SanitizerLog, ErrorSummariesAreCountedAndSummed) {
  Findings findings;
  const std::string clean = Fixture("memcheck_clean.txt");
  const std::string faulty = Fixture("memcheck_two_errors.txt");
  EXPECT_EQ(ParseSanitizerLog(clean, "log", findings)->errors, 0);
  EXPECT_EQ(ParseSanitizerLog(clean, "log", findings)->hazards_total, -1);
  EXPECT_EQ(ParseSanitizerLog(faulty, "log", findings)->errors, 2);
  EXPECT_EQ(ParseSanitizerLog(faulty + clean, "log", findings)->errors, 2);
  EXPECT_EQ(Codes(findings), "");
}

TEST(SanitizerLog, ALogThatProvesNothingIsRefused) {
  const std::string head = "========= COMPUTE-SANITIZER\n";
  for (const std::string& text :
       {std::string(), head, std::string("========= ERROR SUMMARY: 0 errors\n"),
        head + "========= ERROR SUMMARY: no errors\n", head + "========= ERROR SUMMARY: \n",
        head + "========= RACECHECK SUMMARY: 1 hazard displayed\n",
        head + "========= Error: Target application terminated before first instrumented API "
               "call\n========= ERROR SUMMARY: 0 errors\n"}) {
    Findings findings;
    EXPECT_FALSE(ParseSanitizerLog(text, "log", findings).has_value()) << text;
    EXPECT_TRUE(findings.Has("E-SAN-EMPTY")) << text;
  }
}

TEST(NcuCsv, GroupedDigitsAndQuotesAreRead) {
  Findings findings;
  const auto launches = ParseNcuCsv(Fixture("ncu_grouped.csv"), "csv", findings);
  EXPECT_EQ(Codes(findings), "");
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]["metrics"]["gpu__time_duration.sum"],
            (Doc{{"unit", "ns"}, {"value_e3", 3700000}}));
  EXPECT_EQ(launches[0]["metrics"].size(), 2u);
  EXPECT_EQ(launches[1]["kernel"], "say \"hi\"");
  EXPECT_EQ(launches[1]["metrics"]["dram__bytes.sum"]["value_e3"], 1234567001);
}

TEST(NcuCsv, OtherNumbersAreRefused) {
  const std::string head =
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  for (const char* number : {"1,5", "1.234,5", "3,70", "3,,700", ",700", "3,700,", "1e9", "nan", "",
                             "-", "1.", "1.2.3", " 1", "1 234", "99999999999999999"}) {
    Findings findings;
    EXPECT_TRUE(ParseNcuCsv(head + "\"0\",\"k\",\"m\",\"ns\",\"" + number + "\"\n", "csv", findings)
                    .empty());
    EXPECT_TRUE(findings.Has("E-NCU-NUM")) << number;
  }
  for (const auto& [number, e3] : {std::pair<const char*, int64_t>{"0.0005", 1}, {"-1.5", -1500}}) {
    Findings findings;
    const auto launches =
        ParseNcuCsv(head + "\"0\",\"k\",\"m\",\"\",\"" + number + "\"\n", "csv", findings);
    ASSERT_EQ(launches.size(), 1u) << number;
    EXPECT_EQ(launches[0]["metrics"]["m"]["value_e3"], e3);
  }
  for (const std::string& text : {std::string(), std::string("\"ID\",\"Kernel Name\"\n"),
                                  head + "\"0\",\"k\"\n", head + "\"0\",\"k,\n"}) {
    Findings findings;
    ParseNcuCsv(text, "csv", findings);
    EXPECT_TRUE(findings.Has("E-NCU-NUM")) << text;
  }
}

}  // namespace
}  // namespace h3rt::lab
