// Verdicts of gates on evidence, each with the rule that decided.
#include "h3rt/lab/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "h3rt/lab/test_evidence.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const double kGain = std::log(1.03);

TEST(Fixtures, HaveTheFormOfEvidence) {
  for (const Doc& envelope :
       {TestCompile("ok"), TestCompile("rejected", "rejected"), TestResource(), TestParity(),
        TestSanitizer("racecheck"), TestPair(TestSamples(kGain)), TestInspection(),
        TestFailure("more memory")}) {
    Findings findings;
    FormCheck check{.file = "x", .line = 1, .findings = findings};
    std::string pointer;
    CheckShape(envelope, EvidenceShape(), pointer, check);
    CheckShape(envelope["body"], BodyShapes().at(TextAt(envelope, "kind")), pointer, check);
    for (const Finding& one : findings.Sorted()) ADD_FAILURE() << Findings::ToText(one);
  }
}

TEST(EvaluateGate, IsNotRunWithoutEvidence) {
  const TestCase c;
  for (const char* gate : kGates) {
    EXPECT_TRUE(c.Gate(gate).verdict.is_null()) << gate;
  }
}

TEST(EvaluateGate, BuildPassesWithinTheResourceBudget) {
  TestCase c;
  const std::string compile = c.Add(TestCompile("ok"));
  EXPECT_EQ(c.Verdict("build"), "not run");
  EXPECT_THAT(c.Gate("build").arithmetic, Contains(HasSubstr("no resource report")));
  const std::string resource = c.Add(TestResource());
  const GateResult result = c.Gate("build");
  EXPECT_EQ(TextAt(result.verdict, "verdict"), "pass");
  EXPECT_EQ(TextAt(result.verdict, "class"), "sm_90a");
  EXPECT_EQ(TextAt(result.verdict, "policy_digest"), DigestOf(c.policy));
  EXPECT_EQ(result.verdict["evidence"].size(), 2u);
  EXPECT_THAT(result.arithmetic, Contains(HasSubstr("32 registers, spill 0 B of 0 allowed")));
}

TEST(EvaluateGate, BuildFailsOnASpillWhateverElseThereIs) {
  TestCase c;
  c.Add(TestCompile("ok"));
  c.Add(TestResource());
  c.Add(TestResource(4));
  EXPECT_EQ(c.Verdict("build"), "fail");
  EXPECT_THAT(c.Reason("build"), HasSubstr("spills 8 bytes"));
}

TEST(EvaluateGate, BuildIsInconclusiveWhereTheCompilerGaveUp) {
  for (const char* outcome : {"ice", "timeout", "oom", "rejected"}) {
    TestCase c;
    c.Add(TestCompile(outcome));
    EXPECT_EQ(c.Verdict("build"), "inconclusive") << outcome;
  }
}

TEST(EvaluateGate, BuildDoesNotApplyWhereARejectionWasExpectedAndControlled) {
  TestCase c;
  c.Add(TestCompile("rejected", "rejected"));
  EXPECT_EQ(c.Verdict("build"), "not_applicable");
  EXPECT_THAT(c.Reason("build"), HasSubstr("with sm_90a as control"));
  Doc uncontrolled = TestCompile("rejected", "rejected");
  uncontrolled["body"]["control"]["outcome"] = "rejected";  // nothing compiles here
  TestCase other;
  other.Add(uncontrolled);
  EXPECT_EQ(other.Verdict("build"), "inconclusive");
}

TEST(EvaluateGate, CorrectPassesWhenEveryPartIsThere) {
  TestCase c;
  c.Add(TestParity());
  EXPECT_EQ(c.Verdict("correct"), "not run");
  EXPECT_THAT(c.Gate("correct").arithmetic, Contains("no run of memcheck"));
  c.Add(TestSanitizer("memcheck"));
  EXPECT_EQ(c.Verdict("correct"), "not run");
  c.Add(TestSanitizer("racecheck"));
  EXPECT_EQ(c.Verdict("correct"), "pass");
  EXPECT_THAT(c.Gate("correct").verdict["workloads"],
              ElementsAre("aligned-shape", "ragged-shape", "toy-shape"));
}

TEST(EvaluateGate, CorrectNeedsEveryLevelAndEnoughLaunches) {
  TestCase c;
  Doc parity = TestParity();
  parity["body"]["cases"].erase(2);
  parity["body"]["repeat_exact"]["launches"] = 999;
  c.Add(parity);
  c.Add(TestSanitizer("memcheck"));
  c.Add(TestSanitizer("racecheck"));
  const GateResult result = c.Gate("correct");
  EXPECT_TRUE(result.verdict.is_null());
  EXPECT_THAT(result.arithmetic, Contains("no parity on the level ragged"));
  EXPECT_THAT(result.arithmetic, Contains("only 999 repeated launches of 1000"));
}

TEST(EvaluateGate, CorrectFailsOnEveryKindOfFault) {
  const auto fails_with = [](const std::function<void(Doc&)>& change, const std::string& words) {
    TestCase c;
    c.AddCorrect();
    Doc parity = TestParity();
    change(parity["body"]);
    c.Add(parity);
    EXPECT_EQ(c.Verdict("correct"), "fail") << words;
    EXPECT_THAT(c.Reason("correct"), HasSubstr(words));
  };
  fails_with(
      [](Doc& body) {
        body["cases"][1]["mismatches"] = 3;
        body["cases"][1]["first_index"] = 17;
      },
      "3 of 1000 elements differ, the first at 17");
  fails_with([](Doc& body) { body["cases"][0]["unwritten"] = 1; }, "not written");
  fails_with([](Doc& body) { body["cases"][0]["guard_faults"] = 1; }, "outside its output");
  fails_with([](Doc& body) { body["cases"][0]["inputs_unchanged"] = false; }, "wrote its inputs");
  fails_with([](Doc& body) { body["repeat_exact"]["distinct_digests"] = 2; }, "not deterministic");
  fails_with(
      [](Doc& body) {
        body["mode"] = "tolerance";
        body["bound_e9"] = 5;
        body["cases"][2]["rel_l2_e9"] = 6;
      },
      "relative error 6e-9, the bound is 5e-9");
  fails_with(
      [](Doc& body) {
        body["mode"] = "tolerance";
        body["bound_e9"] = 5;
        body["cases"][2]["nan_actual"] = 1;
      },
      "1 NaN where 0 were expected");
}

TEST(EvaluateGate, CorrectFailsOnAnyHazardHoweverWellItIsTimed) {
  for (const char* key : {"errors", "hazards_displayed", "hazards_total"}) {
    TestCase c;
    c.AddCorrect();
    Doc races = TestSanitizer("racecheck");
    races["body"][key] = 5;
    c.Add(races);
    c.Add(TestPair(TestSamples(kGain)));
    EXPECT_EQ(c.Verdict("correct"), "fail") << key;
    EXPECT_THAT(c.Reason("correct"), HasSubstr("racecheck found 5"));
    EXPECT_EQ(c.Verdict("isolated"), "pass");
  }
}

TEST(EvaluateGate, CorrectIsInconclusiveWhereTheReferenceIsUnstable) {
  TestCase c;
  c.AddCorrect();
  Doc reference = TestParity();
  reference["vid"] = "unfused";
  reference["body"]["repeat_exact"]["distinct_digests"] = 2;
  c.Add(reference, "reference");
  EXPECT_EQ(c.Verdict("correct"), "inconclusive");
}

TEST(EvaluateGate, IsolatedPassesAGainAndPrintsItsNumbers) {
  TestCase c;
  c.Add(TestPair(TestSamples(kGain)));
  const GateResult result = c.Gate("isolated");
  EXPECT_EQ(TextAt(result.verdict, "verdict"), "pass") << TextAt(result.verdict, "reason");
  EXPECT_THAT(result.verdict["workloads"], ElementsAre("canonical-shape"));
  EXPECT_THAT(TextAt(result.verdict, "reason"), HasSubstr("threshold 1.000 %"));
  EXPECT_THAT(result.arithmetic, Contains(HasSubstr("95 % interval over 6 processes")));
  EXPECT_THAT(result.arithmetic, Contains(HasSubstr("A/A")));
}

TEST(EvaluateGate, IsolatedFailsWhatIsTooSmallAndLeavesNoiseOpen) {
  TestCase small;
  small.Add(TestPair(TestSamples(0.002)));
  EXPECT_EQ(small.Verdict("isolated"), "fail");
  TestCase noisy;
  noisy.Add(TestPair(TestSamples(0.012, 0.02)));
  EXPECT_EQ(noisy.Verdict("isolated"), "inconclusive");
}

TEST(EvaluateGate, IsolatedNeedsAPlanAndItsSizes) {
  TestCase c;
  Doc pair = TestPair(TestSamples(kGain));
  pair["plan"] = nullptr;
  c.Add(pair);
  EXPECT_EQ(c.Verdict("isolated"), "inconclusive");
  EXPECT_THAT(c.Reason("isolated"), HasSubstr("it has no plan"));
  TestCase cut;
  pair = TestPair(TestSamples(kGain));
  pair["plan"]["quads"] = 60;  // stopped when it looked good
  cut.Add(pair);
  EXPECT_EQ(cut.Verdict("isolated"), "inconclusive");
  EXPECT_THAT(cut.Reason("isolated"), HasSubstr("planned were 6 of 60"));
  TestCase elsewhere;
  pair = TestPair(TestSamples(kGain));
  pair["plan"]["gate"] = "block";
  elsewhere.Add(pair);
  EXPECT_EQ(elsewhere.Verdict("isolated"), "not run");
}

TEST(EvaluateGate, IsolatedNeedsSamplesThatATimerCanTell) {
  TestCase c;
  Doc pair = TestPair(TestSamples(kGain));
  pair["body"]["tick_ns"] = 1000;
  c.Add(pair);
  EXPECT_THAT(c.Reason("isolated"), HasSubstr("1,000 ticks"));
  std::vector<Sample> quick = TestSamples(kGain);
  for (Sample& sample : quick) sample.picoseconds /= 100;
  TestCase other;
  pair = TestPair(quick);
  pair["body"]["bytes"] = 1000;
  other.Add(pair);
  EXPECT_EQ(other.Verdict("isolated"), "inconclusive");
  EXPECT_THAT(other.Reason("isolated"), HasSubstr("100 us"));
}

TEST(EvaluateGate, TwoRunsOfOnePlanMustAgree) {
  TestCase c;
  c.Add(TestPair(TestSamples(0.002)));
  c.Add(TestPair(TestSamples(kGain)));
  EXPECT_EQ(c.Verdict("isolated"), "inconclusive");
  EXPECT_THAT(c.Reason("isolated"), HasSubstr("2 runs of one plan disagree"));
  TestCase planned_again;
  planned_again.Add(TestPair(TestSamples(0.002), 5));
  planned_again.Add(TestPair(TestSamples(kGain), 9));
  EXPECT_EQ(planned_again.Verdict("isolated"), "pass") << "a new plan is a new question";
}

TEST(EvaluateGate, TimingsOfSmallShapesDoNotSpeak) {
  TestCase c;
  Doc pair = TestPair(TestSamples(kGain));
  pair["workload"]["level"] = "aligned";
  c.Add(pair);
  EXPECT_EQ(c.Verdict("isolated"), "not run");
}

TEST(EvaluateGate, OnlyValidNativeFreshExecutedResultsOfTheRecordCount) {
  const auto left_out = [](const std::function<void(TestCase&, Doc&)>& change,
                           const std::string& words) {
    TestCase c;
    Doc pair = TestPair(TestSamples(kGain));
    change(c, pair);
    if (c.record["evidence"].empty()) c.Add(pair);
    const GateResult result = c.Gate("isolated");
    EXPECT_TRUE(result.verdict.is_null()) << words;
    EXPECT_THAT(result.arithmetic, Contains(HasSubstr(words)));
  };
  left_out([](TestCase&, Doc& pair) { pair["origin"] = "imported"; }, "imported, not measured");
  left_out([](TestCase&, Doc& pair) { pair["origin"] = "modelled"; }, "modelled, not measured");
  left_out([](TestCase&, Doc& pair) { pair["word"] = "emulated"; }, "not executed on sm_90a");
  left_out([](TestCase&, Doc& pair) { pair["experiment"] = "another-one"; },
           "it is of another-one");
  left_out([](TestCase& c, Doc& pair) { c.Add(pair, "screen"); }, "its role is screen");
  left_out(
      [](TestCase& c, Doc& pair) {
        Freshness& fresh = c.freshness[c.Add(pair)];
        fresh.stale = true;
        fresh.reason = "source: changed since";
      },
      "stale: source");
  left_out([](TestCase& c, Doc& pair) { c.freshness.erase(c.Add(pair)); }, "never compared");
  left_out(
      [](TestCase& c, Doc& pair) {
        c.Add(pair);
        c.record["evidence"][0]["valid"] = false;
        c.record["evidence"][0]["invalid_reason"] = "wrong shape";
      },
      "marked invalid: wrong shape");
  left_out([](TestCase&, Doc& pair) { pair["body"]["audits"]["inputs_unchanged"] = false; },
           "refused: E-AUDIT-MUTATED");
}

TEST(EvaluateGate, VerdictsAreOfOneDeviceClass) {
  TestCase c;
  c.record["scope"]["archs"] = {"sm_121a", "sm_90a"};
  c.Add(TestCompile("ok"));
  c.Add(TestResource());
  Doc other = TestCompile("oom");
  other["target"] = "sm_121a";
  c.Add(other);
  EXPECT_THAT(DeviceClasses(c.Get()), ElementsAre("sm_121a", "sm_90a"));
  EXPECT_EQ(c.Verdict("build", "sm_90a"), "pass");
  EXPECT_EQ(c.Verdict("build", "sm_121a"), "inconclusive");
  EXPECT_EQ(c.Verdict("build", "sm_120a"), "not run");
  Doc host = TestParity();
  host["target"] = "host";
  c.Add(host);
  EXPECT_THAT(DeviceClasses(c.Get()), ElementsAre("host", "sm_121a", "sm_90a"));
  EXPECT_EQ(c.Verdict("correct", "host"), "pass") << "no sanitizer of a device there";
}

TEST(EvaluateGate, ASkipStandsOnlyWhereAnEarlierGateEndedWithoutAPass) {
  TestCase c;
  c.record["skipped"] = Doc::array({{{"gate", "block"},
                                     {"because_gate", "isolated"},
                                     {"because_evidence", nullptr},
                                     {"log_seq", 7}}});
  EXPECT_EQ(c.Verdict("block"), "not run");
  EXPECT_THAT(c.Gate("block").arithmetic, Contains(HasSubstr("isolated is not run")));
  c.Add(TestPair(TestSamples(0.002)));
  EXPECT_EQ(c.Verdict("block"), "skipped");
  EXPECT_EQ(c.Reason("block"), "isolated is fail");

  TestCase passing;
  passing.record["skipped"] = c.record["skipped"];
  passing.Add(TestPair(TestSamples(kGain)));
  EXPECT_EQ(passing.Verdict("block"), "not run");
  EXPECT_THAT(passing.Gate("block").arithmetic, Contains(HasSubstr("isolated is pass")));

  TestCase backwards;
  backwards.record["skipped"] = c.record["skipped"];
  backwards.record["skipped"][0]["because_gate"] = "deployment";
  EXPECT_EQ(backwards.Verdict("block"), "not run");
  backwards.record["skipped"][0]["because_gate"] = nullptr;
  EXPECT_EQ(backwards.Verdict("block"), "not run");
}

TEST(EvaluateGate, ASkipDoesNotHideWhatWasRun) {
  TestCase c;
  c.Add(TestCompile("oom"));
  c.record["skipped"] = Doc::array({{{"gate", "isolated"}, {"because_gate", "build"}}});
  EXPECT_EQ(c.Verdict("isolated"), "skipped");
  c.Add(TestPair(TestSamples(kGain)));
  EXPECT_EQ(c.Verdict("isolated"), "pass");
}

TEST(EvaluateGate, HostTimingsNeedMoreProcesses) {
  TestCase c;
  Doc pair = TestPair(TestSamples(kGain));
  pair["target"] = "host";
  pair["body"]["timer"] = "host";
  c.Add(pair);
  EXPECT_EQ(c.Verdict("isolated", "host"), "inconclusive");
  EXPECT_THAT(c.Reason("isolated", "host"), HasSubstr("10 are needed"));
}

}  // namespace
}  // namespace h3rt::lab
