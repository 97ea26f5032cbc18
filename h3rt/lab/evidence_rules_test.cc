// A fixture for each rule of evidence, and the cheats that timing harnesses have met.
#include "h3rt/lab/evidence_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include "h3rt/lab/test_evidence.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const double kGain = std::log(1.03);

std::vector<std::string> CodesOf(const Findings& findings) {
  std::set<std::string> codes;
  for (const Finding& finding : findings.Sorted()) codes.insert(finding.code);
  return {codes.begin(), codes.end()};
}

std::vector<std::string> EnvelopeCodes(const Doc& envelope) {
  Findings findings;
  CheckEnvelope({DigestOf(envelope), "benchmarks/x.json", envelope}, TestPolicy(), findings);
  return CodesOf(findings);
}

Doc Changed(Doc envelope, const std::string& pointer, const Doc& value) {
  envelope[Doc::json_pointer(pointer)] = value;
  return envelope;
}

// Exactly this code, from exactly this change.
void ExpectCode(const Doc& sound, const std::string& pointer, const Doc& value,
                const std::string& code) {
  EXPECT_THAT(EnvelopeCodes(sound), IsEmpty());
  EXPECT_THAT(EnvelopeCodes(Changed(sound, pointer, value)), ElementsAre(code)) << pointer;
}

const Doc& SoundPair() {
  static const Doc* const pair = new Doc(TestPair(TestSamples(kGain)));
  return *pair;
}

TEST(CheckEnvelope, AcceptsSoundEvidenceOfEveryKind) {
  for (const Doc& envelope :
       {TestCompile("ok"), TestCompile("rejected", "rejected"), TestCompile("ice"), TestResource(),
        TestParity(), TestSanitizer("memcheck"), TestSanitizer("racecheck"), SoundPair(),
        TestInspection(), TestFailure("x")}) {
    EXPECT_THAT(EnvelopeCodes(envelope), IsEmpty()) << envelope["kind"];
  }
}

TEST(CheckEnvelope, HoldsOriginsToTheirKinds) {
  ExpectCode(SoundPair(), "/origin", "compiled", "E-ORIGIN");
  ExpectCode(SoundPair(), "/origin", "inspected", "E-ORIGIN");
  ExpectCode(SoundPair(), "/origin", "modelled", "E-ORIGIN");
  ExpectCode(SoundPair(), "/word", "assembled", "E-ORIGIN");
  ExpectCode(TestParity(), "/origin", "imported", "E-ORIGIN");
  ExpectCode(TestSanitizer("memcheck"), "/word", nullptr, "E-ORIGIN");
  ExpectCode(TestCompile("ok"), "/origin", "inspected", "E-ORIGIN");
  ExpectCode(TestInspection(), "/origin", "compiled", "E-ORIGIN");
  // A model that says what it is.
  Doc model = TestInspection();
  model["origin"] = "modelled";
  EXPECT_THAT(EnvelopeCodes(model), IsEmpty());
}

TEST(CheckEnvelope, FindsTimesThatCannotBe) {
  const int64_t now = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  ExpectCode(TestParity(), "/invocation/end_us", 5, "E-TIME");
  ExpectCode(TestParity(), "/invocation/end_us", now + 3 * 86'400'000'000, "E-TIME");
  ExpectCode(TestParity(), "/invocation/end_us", now + 3'600'000'000, "W-TIME");
  ExpectCode(SoundPair(), "/body/process_ids/2/start_us", 5, "E-TIME");
}

TEST(CheckEnvelope, FindsBlobsThatAreNotNamed) {
  ExpectCode(SoundPair(), "/blobs", Doc::array(), "E-SAMPLES");
  ExpectCode(TestSanitizer("memcheck"), "/body/log", "sanitizer.log", "E-EV-REF");
}

TEST(CheckEnvelope, ARejectionNeedsItsWordsAndAControl) {
  ExpectCode(TestCompile("rejected", "rejected"), "/body/diagnostics", Doc::array(), "E-RULE");
  ExpectCode(TestCompile("rejected", "rejected"), "/body/control", nullptr, "E-RULE");
}

TEST(CheckEnvelope, AResourceReportHoldsTheKernelsOfTheSubject) {
  ExpectCode(TestResource(), "/body/kernels", Doc::array(), "E-RES-MISSING");
  ExpectCode(TestResource(), "/body/kernels/0/symbol", "_Z5OtherPf", "E-RES-MISSING");
}

TEST(CheckEnvelope, NothingComparedIsNoParity) {
  ExpectCode(TestParity(), "/body/cases", Doc::array(), "E-PARITY-EMPTY");
  ExpectCode(TestParity(), "/body/cases/1/elements", 0, "E-PARITY-EMPTY");
  ExpectCode(TestParity(), "/body/repeat_exact/launches", 0, "E-PARITY-EMPTY");
}

TEST(CheckEnvelope, ParityIsConsistentInItself) {
  ExpectCode(TestParity(), "/body/cases/0/mismatches", 1001, "E-RULE");
  ExpectCode(TestParity(), "/body/mode", "tolerance", "E-RULE");  // without a bound
  ExpectCode(TestParity(), "/body/expected", "mismatch", "E-RULE");
  // A NaN equals a NaN of the same bits: equally many on both sides, or bits differ.
  ExpectCode(TestParity(), "/body/cases/0/nan_actual", 4, "E-RULE");
  Doc nans = TestParity();
  nans["body"]["cases"][0]["nan_actual"] = 4;
  nans["body"]["cases"][0]["nan_expected"] = 4;
  EXPECT_THAT(EnvelopeCodes(nans), IsEmpty());
}

TEST(CheckEnvelope, AReferenceThatDiffersFromItselfIsUnstable) {
  const Doc itself = Changed(TestParity(), "/vid", "unfused");
  ExpectCode(itself, "/body/repeat_exact/distinct_digests", 2, "E-REF-UNSTABLE");
  ExpectCode(itself, "/body/cases/0/mismatches", 2, "E-REF-UNSTABLE");
}

TEST(CheckEnvelope, ASanitizerMustHaveSeenTheKernelAndAPlantedFault) {
  const Doc sound = TestSanitizer("memcheck");
  ExpectCode(sound, "/body/kernels", Doc::array(), "E-SAN-EMPTY");
  ExpectCode(sound, "/body/kernels/0/launches", 0, "E-SAN-EMPTY");
  ExpectCode(sound, "/body/kernels/0/symbol", "_ZN4h3rt11OtherKernelEv", "E-SAN-EMPTY");
  ExpectCode(sound, "/subject/kernels", Doc::array(), "E-SAN-EMPTY");
  ExpectCode(sound, "/body/control", nullptr, "E-SAN-CONTROL");
  ExpectCode(sound, "/body/control/found", false, "E-SAN-CONTROL");
  ExpectCode(sound, "/body/control/found", 0, "E-SAN-CONTROL");
  ExpectCode(sound, "/body/control/planted", nullptr, "E-SAN-CONTROL");
}

TEST(CheckEnvelope, PairsHaveTwoArmsUnderTheSameConditions) {
  ExpectCode(SoundPair(), "/subject/baseline", nullptr, "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/body/baseline", "fused", "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/vid", "another", "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/body/batch", 20, "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/body/calls", 49, "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/workload/input_sha256", Doc::object(), "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/workload", nullptr, "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/environment/class/device", nullptr, "E-PAIR-MISMATCH");
  ExpectCode(SoundPair(), "/body/statistics/samples_candidate", 1, "E-PAIR-MISMATCH");
}

TEST(CheckEnvelope, ProcessesAreDistinct) {
  ExpectCode(SoundPair(), "/body/process_ids/1", SoundPair()["body"]["process_ids"][0],
             "E-PROCESS");
  ExpectCode(SoundPair(), "/body/process_ids/1", 17, "E-PROCESS");
  Doc fewer = SoundPair();
  fewer["body"]["process_ids"].erase(0);
  EXPECT_THAT(EnvelopeCodes(fewer), ElementsAre("E-PROCESS"));
  ExpectCode(SoundPair(), "/body/statistics/processes", 5, "E-SAMPLES");
}

TEST(CheckEnvelope, NothingIsFasterThanMemoryOrArithmetic) {
  // 433 us at 4.8 TB/s are 2.08 GB; 10^15 operations would take 505 us.
  Doc pair = Changed(SoundPair(), "/body/copy_bytes_per_s", nullptr);
  ExpectCode(pair, "/body/bytes", 2'200'000'000, "E-IMPOSSIBLE");
  ExpectCode(pair, "/body/operations", 1'000'000'000'000'000, "E-IMPOSSIBLE");
  // A peak that the run claims for itself does not help.
  pair["body"]["peak_bytes_per_s"] = 99'000'000'000'000;
  ExpectCode(pair, "/body/bytes", 2'200'000'000, "E-IMPOSSIBLE");
}

TEST(CheckEnvelope, AGainAboveTheRooflineIsLookedAt) {
  // At the copy rate 1.73 GB take 432.5 us: there is nothing left to gain.
  ExpectCode(SoundPair(), "/body/bytes", 1'800'000'000, "W-EXCESS");
}

TEST(CheckEnvelope, AuditsAreThereAndHold) {
  ExpectCode(SoundPair(), "/body/audits", nullptr, "E-EV-FORM");
  ExpectCode(SoundPair(), "/body/audits", Doc::array(), "E-EV-FORM");
  ExpectCode(SoundPair(), "/body/audits/wall_ns", nullptr, "E-EV-FORM");
  ExpectCode(SoundPair(), "/body/audits/same_input_ratio_e9", 1040000000, "E-AUDIT-INPUT");
  ExpectCode(SoundPair(), "/body/audits/seed_ratio_e9", 1040000000, "E-AUDIT-SEED");
  ExpectCode(SoundPair(), "/body/audits/seed_ratio_e9", 960000000, "E-AUDIT-SEED");
  ExpectCode(SoundPair(), "/body/audits/outputs_audited", 0, "E-AUDIT-OUTPUT");
  // One a process: the bad one is found.
  Doc list = SoundPair();
  list["body"]["audits"] = Doc::array({TestAudits(), TestAudits()});
  ExpectCode(list, "/body/audits/1/poison_left", 1, "E-AUDIT-POISON");
  // Within tolerance: slower on one input is no cheat.
  list["body"]["audits"][0]["same_input_ratio_e9"] = 900000000;
  EXPECT_THAT(EnvelopeCodes(list), IsEmpty());
}

// What cheats do to the numbers, and the code that tells them.
TEST(RedTeam, AReplayCacheIsFasterOnAnInputItHasSeen) {
  ExpectCode(SoundPair(), "/body/audits/same_input_ratio_e9", 40000000000, "E-AUDIT-REPLAY");
}
TEST(RedTeam, WorkOnASideStreamShowsOnTheWall) {
  ExpectCode(SoundPair(), "/body/audits/wall_ns", 400000000, "E-AUDIT-STREAM");
}
TEST(RedTeam, APatchedTimerDisagreesWithTheWall) {
  ExpectCode(SoundPair(), "/body/audits/event_ns", 50000000, "E-AUDIT-STREAM");
  ExpectCode(SoundPair(), "/body/audits/event_ns", 0, "E-AUDIT-STREAM");
  ExpectCode(SoundPair(), "/body/audits/event_ns", 180000000, "E-AUDIT-STREAM");
}
TEST(RedTeam, LazyWorkLeavesPoison) {
  ExpectCode(SoundPair(), "/body/audits/poison_left", 37808, "E-AUDIT-POISON");
}
TEST(RedTeam, InputMutationIsSeen) {
  ExpectCode(SoundPair(), "/body/audits/inputs_unchanged", false, "E-AUDIT-MUTATED");
}
TEST(RedTeam, TheOutputOfAnotherRunIsNotTheResult) {
  ExpectCode(SoundPair(), "/body/audits/output_digests_ok", false, "E-AUDIT-OUTPUT");
}
TEST(RedTeam, ReducedPrecisionDiffersInBits) {
  TestCase c;
  c.AddCorrect();
  Doc reduced = TestParity();
  for (Doc& one : reduced["body"]["cases"]) {
    one["mismatches"] = 700;
    one["first_index"] = 0;
  }
  c.Add(reduced);
  EXPECT_EQ(c.Verdict("correct"), "fail");
  ExpectCode(SoundPair(), "/body/audits/output_digests_ok", false, "E-AUDIT-OUTPUT");
}
TEST(RedTeam, AnEmptyLoopIsFasterThanMemory) {
  // What a first version of the probe measured: 6.8 us for 2.1 GB.
  std::vector<Sample> samples = TestSamples(kGain);
  for (Sample& sample : samples) sample.picoseconds = 6'800'000 + sample.picoseconds / 1000;
  Doc pair = TestPair(samples);
  pair["body"]["bytes"] = 2'100'000'000;
  Findings findings;
  CheckEnvelope({"", "x", pair}, TestPolicy(), findings);
  EXPECT_TRUE(findings.Has("E-IMPOSSIBLE"));
}

TEST(SymbolMatches, FindsPlainNamesInMangledOnes) {
  EXPECT_TRUE(SymbolMatches(kTestMangled, kTestKernel));
  EXPECT_TRUE(SymbolMatches("void h3rt::TestKernel<float>(float*)", kTestKernel));
  EXPECT_TRUE(SymbolMatches("_Z1kPf", "k"));
  EXPECT_FALSE(SymbolMatches("_Z2kkPf", "k"));
  EXPECT_FALSE(SymbolMatches("_ZN4h3rt11TestKernel2EPf", kTestKernel));
  EXPECT_FALSE(SymbolMatches(kTestMangled, ""));
}

// With blobs, in a store.
std::vector<std::string> StoredCodes(const TestStore& at, const Evidence& evidence) {
  Findings findings;
  ValidateEvidence(at.store, evidence, TestPolicy(), findings);
  return CodesOf(findings);
}

TEST(ValidateEvidence, AcceptsASoundPairWithItsSamples) {
  const TestStore at("sound");
  const std::vector<Sample> samples = TestSamples(kGain);
  const Evidence evidence = at.Write(SoundPair(), {{"samples.bin", PackSamples(samples)}});
  EXPECT_THAT(StoredCodes(at, evidence), IsEmpty());
  Findings findings;
  RecomputeEvidence(at.store, evidence, findings);
  EXPECT_EQ(findings.errors(), 0) << findings.ToJson().dump();
}

TEST(ValidateEvidence, FindsSamplesThatAreNotThere) {
  const TestStore at("gone");
  const Evidence evidence =
      at.Write(SoundPair(), {{"samples.bin", PackSamples(TestSamples(kGain))}});
  for (const auto& file : std::filesystem::recursive_directory_iterator(at.store.root)) {
    if (file.path().extension() == ".z") std::filesystem::remove(file.path());
  }
  EXPECT_THAT(StoredCodes(at, evidence), ElementsAre("E-SAMPLES"));
}

TEST(ValidateEvidence, FindsSamplesThatAreNotSamples) {
  const auto codes = [](const std::function<void(std::vector<Sample>&)>& change, int cut = 0) {
    const TestStore at("samples");
    std::vector<Sample> samples = TestSamples(kGain);
    change(samples);
    std::string packed = PackSamples(samples);
    packed.resize(packed.size() - static_cast<size_t>(cut));
    return StoredCodes(at, at.Write(SoundPair(), {{"samples.bin", packed}}));
  };
  const auto only = ElementsAre(std::string("E-SAMPLES"));
  EXPECT_THAT(codes([](auto&) {}, 5), only);
  EXPECT_THAT(codes([](auto& samples) { samples[7].picoseconds = 0; }), only);
  EXPECT_THAT(codes([](auto& samples) { samples[7].picoseconds = -433; }), only);
  EXPECT_THAT(codes([](auto& samples) { samples[7].picoseconds = 0x7FF8000000000000; }), only);
  EXPECT_THAT(codes([](auto& samples) { samples[7].slot = 0; }), only);
  EXPECT_THAT(codes([](auto& samples) { samples.resize(samples.size() - 64); }), only);
  EXPECT_THAT(codes([](auto& samples) { samples.resize(samples.size() - 2); }), only)
      << "half a control quad";
  EXPECT_THAT(codes([](auto& samples) {
                for (Sample& sample : samples) sample.process = 0;
              }),
              only);
  EXPECT_THAT(codes([](auto& samples) {
                for (Sample& sample : samples) {
                  if (sample.role == 1) sample.arm = 1;
                }
              }),
              only);
  EXPECT_THAT(codes([](auto& samples) { samples[0].arm = 1 - samples[0].arm; }),
              ElementsAre("E-PAIR-MISMATCH"));
  EXPECT_THAT(codes([](auto& samples) { samples[0].picoseconds = 200'000'000; }),
              ElementsAre("E-IMPOSSIBLE"))
      << "one call of 200 us, and 1.2 GB take 250 us";
}

TEST(RecomputeEvidence, FindsAnyNumberThatTheSamplesDoNotGive) {
  const TestStore at("recompute");
  const std::string packed = PackSamples(TestSamples(kGain));
  const Doc statistics = SoundPair()["body"]["statistics"];
  for (const auto& [key, value] : statistics.items()) {
    if (!value.is_number_integer() || key == "bootstrap_seed") continue;
    const Doc edited = Changed(SoundPair(), "/body/statistics/" + key, value.get<int64_t>() + 1);
    Findings findings;
    RecomputeEvidence(at.store, at.Write(edited, {{"samples.bin", packed}}), findings);
    ASSERT_EQ(findings.errors(), 1) << key;
    EXPECT_EQ(findings.Sorted()[0].code, "E-EV-RECOMPUTE");
    EXPECT_EQ(findings.Sorted()[0].pointer, "/body/statistics/" + key);
    EXPECT_THAT(findings.Sorted()[0].message, HasSubstr("recomputed " + value.dump()));
  }
  Findings findings;
  const Doc more = Changed(SoundPair(), "/body/statistics/speedup_e9", 5);
  RecomputeEvidence(at.store, at.Write(more, {{"samples.bin", packed}}), findings);
  EXPECT_THAT(CodesOf(findings), ElementsAre("E-EV-RECOMPUTE"));
}

TEST(RecomputeEvidence, ComparesSingleTimings) {
  const TestStore at("single");
  std::vector<Sample> samples = TestSamples(kGain);
  Doc envelope = TestEnvelope("timing_single");
  envelope["body"] = {{"samples_blob", "samples.bin"},
                      {"statistics", SingleStatisticsDoc(samples)}};
  Findings none;
  RecomputeEvidence(at.store, at.Write(envelope, {{"samples.bin", PackSamples(samples)}}), none);
  EXPECT_EQ(none.errors(), 0);
  samples[3].picoseconds += 1'000'000;
  Findings findings;
  RecomputeEvidence(at.store, at.Write(envelope, {{"samples.bin", PackSamples(samples)}}),
                    findings);
  EXPECT_THAT(CodesOf(findings), ElementsAre("E-EV-RECOMPUTE"));
}

TEST(RecomputeEvidence, CountsTheHazardsOfTheLogAgain) {
  const TestStore at("sanitizer");
  const std::string log =
      "========= COMPUTE-SANITIZER\n"
      "========= Error: Race reported between Write access at k(int *)+0xd0\n"
      "=========     and Read access at k(int *)+0xd0 [256 hazards]\n"
      "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n";
  Doc envelope = TestSanitizer("racecheck");
  envelope["body"]["log"] = "sanitizer.log";
  envelope["body"]["errors"] = 1;
  envelope["body"]["hazards_displayed"] = 1;
  envelope["body"]["hazards_total"] = 256;
  Findings none;
  RecomputeEvidence(at.store, at.Write(envelope, {{"sanitizer.log", log}}), none);
  EXPECT_EQ(none.errors(), 0) << none.ToJson().dump();
  for (const char* key : {"errors", "hazards_displayed", "hazards_total"}) {
    const Doc edited = Changed(envelope, std::string("/body/") + key, 0);
    Findings findings;
    RecomputeEvidence(at.store, at.Write(edited, {{"sanitizer.log", log}}), findings);
    EXPECT_THAT(CodesOf(findings), ElementsAre("E-EV-RECOMPUTE")) << key;
  }
  Findings unlogged;
  RecomputeEvidence(at.store, {"", "x", TestSanitizer("racecheck")}, unlogged);
  EXPECT_THAT(CodesOf(unlogged), ElementsAre("E-EV-RECOMPUTE"));
}

TEST(RecomputeEvidence, ReadsTheCompilersReportAgain) {
  const TestStore at("resource");
  const auto report = [](const std::string& target, int registers) {
    return "ptxas info    : Compiling entry function '" + std::string(kTestMangled) + "' for '" +
           target + "'\nptxas info    : Function properties for " + kTestMangled +
           "\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n" +
           "ptxas info    : Used " + std::to_string(registers) + " registers, used 1 barriers\n";
  };
  // Two targets in one log: only the target of the evidence speaks.
  const std::map<std::string, std::string> blobs = {
      {"compile.log", report("sm_121a", 77) + report("sm_90a", 32)}};
  Findings none;
  RecomputeEvidence(at.store, at.Write(TestResource(), blobs), none);
  EXPECT_EQ(none.errors(), 0) << none.ToJson().dump();
  for (const char* key : {"registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes",
                          "static_shared_bytes", "barriers"}) {
    const Doc edited = Changed(TestResource(), std::string("/body/kernels/0/") + key, 99);
    Findings findings;
    RecomputeEvidence(at.store, at.Write(edited, blobs), findings);
    EXPECT_THAT(CodesOf(findings), ElementsAre("E-EV-RECOMPUTE")) << key;
  }
  Doc other = Changed(TestResource(), "/target", "sm_120a");
  Findings missing;
  RecomputeEvidence(at.store, at.Write(other, blobs), missing);
  EXPECT_THAT(CodesOf(missing), ElementsAre("E-EV-RECOMPUTE"));
}

// The committed pair, spoiled: what it speaks of must be what the experiment and the plan declare.
TEST(Declared, ATimingOfAnotherProblemOrPlanIsFound) {
  Findings loading;
  Evidence pair;
  for (auto& [digest, evidence] : LoadEvidence({H3RT_SOURCE_DIR}, loading)) {
    if (TextAt(evidence.json, "kind") == "timing_pair") pair = evidence;
  }
  ASSERT_FALSE(pair.json.is_null());
  const auto code_of = [&](const char* pointer, const Doc& value) {
    Evidence spoiled = pair;
    spoiled.json[Doc::json_pointer(pointer)] = value;
    Findings findings;
    CheckDeclared(spoiled, findings);
    return findings.errors() == 0 ? std::string() : findings.Sorted()[0].code;
  };
  EXPECT_EQ(code_of("/body/mode", "single"), "");
  EXPECT_EQ(code_of("/body/bytes", 1), "E-IMPOSSIBLE");
  EXPECT_EQ(code_of("/body/operations", nullptr), "E-IMPOSSIBLE");
  EXPECT_EQ(code_of("/body/calls", 1000000), "E-EV-REF");
  EXPECT_EQ(code_of("/body/baseline", "slowest-ever"), "E-PAIR-MISMATCH");
  EXPECT_EQ(code_of("/body/baseline", "fused"), "E-PAIR-MISMATCH");
  EXPECT_EQ(code_of("/workload/dims", {{"hidden", 8}, {"rows", 1}}), "E-EV-REF");
  EXPECT_EQ(code_of("/workload/id", "huge-999999"), "E-EV-REF");
  EXPECT_EQ(code_of("/subject/kernels", Doc::array()), "E-EV-REF");
  EXPECT_EQ(code_of("/invocation/signal", 11), "E-RULE");

  const Doc planned = {{"experiment", TextAt(pair.json, "experiment")},
                       {"gate", "isolated"},
                       {"min_abs_ns", At(pair.json["plan"], "min_abs_ns")},
                       {"min_gain_ppm", At(pair.json["plan"], "min_gain_ppm")},
                       {"processes", At(pair.json["plan"], "processes")},
                       {"quads", At(pair.json["plan"], "quads")}};
  const std::string before = "2026-01-01T00:00:00.000000000Z";
  EXPECT_EQ(WhyNotPlanned(pair.json, planned, before), "");
  EXPECT_NE(WhyNotPlanned(pair.json, planned, "2200-01-01T00:00:00.000000000Z"), "");
  for (const char* field : {"experiment", "gate", "processes", "quads", "min_gain_ppm"}) {
    Doc other = planned;
    other[field] = nullptr;
    EXPECT_NE(WhyNotPlanned(pair.json, other, before), "") << field;
  }
}

}  // namespace
}  // namespace h3rt::lab
