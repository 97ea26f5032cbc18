// What people do to a registry, from a plan to a verdict, and what is refused on the way.
#include <gtest/gtest.h>

#include "h3rt/lab/lab.h"
#include "h3rt/lab/test_store.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

constexpr char kId[] = "alpha-one";

Doc LastEntry(const TestStore& t) {
  Findings findings;
  return LoadLog(t.store, findings).value().entries.back().json;
}

// The store of tests with what its evidence was derived from, and sources that know their digest.
struct ActionStore : TestStore {
  ActionStore() {
    Findings findings;
    const std::string old = TextAt(Get(kId)["evidence"][1], "sha256");
    Doc resource = LoadEvidence(store, findings).at(old).json;
    resource["blobs"] = Doc::array();
    const std::string digest = AddEvidence(
        resource, {{"compile.log",
                    "ptxas info    : Compiling entry function 'add_kernel' for 'sm_90a'\n"
                    "ptxas info    : Function properties for add_kernel\n"
                    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                    "ptxas info    : Used 32 registers, used 0 barriers\n"}});
    for (const char* id : {kId, "beta-two"}) {
      Change1(id, [&](Doc& record) {
        if (id == kId) record["evidence"][1] = Cited(digest);
        record["source"]["digest"] = ClosureDigest(store, {"kernels/add.cu"}).value();
        Doc& missing = record["missing"];
        for (size_t i = missing.size(); i > 0; --i) {
          if (TextAt(missing[i - 1], "pointer") == "/source/digest") missing.erase(i - 1);
        }
      });
    }
  }
};

bool Says(const absl::Status& status, std::string_view words) {
  return MessageOf(status).find(words) != std::string::npos;
}

TEST(WritePlan, FixesSizesAndThresholdsInTheLog) {
  const ActionStore t;
  PlanRequest request{.id = kId, .gate = "isolated", .hypothesis = "It is faster."};
  request.predicted_low_ns = 5;
  request.predicted_high_ns = 9;
  const int64_t seq = WritePlan(t.store, request, "").value();
  const Doc entry = LastEntry(t);
  EXPECT_EQ(IntAt(entry, "seq"), seq);
  EXPECT_EQ(entry["authorizes"], Doc::array({"run alpha-one isolated"}));
  EXPECT_EQ(IntAt(entry["projections"][0], "high"), 9);
  Findings findings;
  const Log log = LoadLog(t.store, findings).value();
  const Doc plan = PlanOf(log, kId, "isolated");
  EXPECT_EQ(plan.size(), 7u);
  EXPECT_EQ(IntAt(plan, "log_seq"), seq);
  EXPECT_EQ(TextAt(plan, "entry_hash"), log.head_hash);
  EXPECT_EQ(IntAt(plan, "quads"), 60);
  EXPECT_EQ(At(plan, "min_gain_ppm"), t.policy["gates"]["isolated"]["min_gain_ppm"]);
  EXPECT_TRUE(PlanOf(log, kId, "block").is_null());
  EXPECT_TRUE(PlanOf(log, "beta-two", "isolated").is_null());
}

TEST(WritePlan, RefusesWhatCanDecideNothing) {
  const ActionStore t;
  const std::string log = t.Read(kLogFile);
  const PlanRequest good{.id = kId, .gate = "isolated", .hypothesis = "It is faster."};
  PlanRequest bad = good;
  bad.gate = "speed";
  EXPECT_TRUE(Says(WritePlan(t.store, bad, "").status(), "trajectory or deployment"));
  bad = good;
  bad.id = "alpha";
  EXPECT_TRUE(Says(WritePlan(t.store, bad, "").status(), "one of alpha-one"));
  for (const auto& [processes, quads] : {std::pair(1, 60), {65, 60}, {6, 7}, {6, 10001}}) {
    bad = good;
    bad.processes = processes;
    bad.quads = quads;
    EXPECT_EQ(WritePlan(t.store, bad, "").status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(t.Read(kLogFile), log);
}

TEST(ApplyGates, WritesVerdictsThatChangedWithOneEntryAndNothingTwice) {
  const ActionStore t;
  const GateReport report = ApplyGates(t.store, kId, "", "").value();
  const Doc entry = LastEntry(t);
  EXPECT_EQ(IntAt(entry, "seq"), report.log_seq);
  EXPECT_EQ(TextAt(entry, "kind"), "decision");
  const Doc verdicts = t.Get(kId)["gates"]["build"];
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(TextAt(verdicts[0], "verdict"), "pass");
  EXPECT_EQ(TextAt(verdicts[0], "class"), "sm_90a");
  EXPECT_EQ(IntAt(verdicts[0], "log_seq"), report.log_seq);
  EXPECT_EQ(entry["evidence"], verdicts[0]["evidence"]);
  // Words only: a number in the log would need a citation.
  EXPECT_EQ(entry["actions"][0], "build on sm_90a: pass");
  const GateReport again = ApplyGates(t.store, kId, "build", "").value();
  EXPECT_EQ(again.log_seq, -1);
  ASSERT_EQ(again.results.size(), 1u);
  EXPECT_EQ(again.results[0].verdict, verdicts[0]);
  EXPECT_EQ(LastEntry(t), entry);
  EXPECT_EQ(t.Check().errors(), 0) << TextOf(t.Check());
}

TEST(ApplyGates, RefusesEvidenceWhoseBlobsSaySomethingElse) {
  const ActionStore t;
  Findings findings;
  const Doc blob = LoadEvidence(t.store, findings).at(t.evidence).json["blobs"][0];
  const std::string file = t.EvidenceFile(t.evidence);
  const std::string path = file.substr(0, file.rfind('/') + 1) + TextAt(blob, "sha256") + ".z";
  const std::string log = t.Read(kLogFile);
  std::string bytes = t.Read(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  t.Write(path, bytes);
  const absl::Status edited = ApplyGates(t.store, kId, "", "").status();
  EXPECT_EQ(ExitCodeOf(edited), ExitCode::kDataLoss) << edited;
  EXPECT_TRUE(Says(edited, "E-ART-HASH")) << edited;
  t.Remove(path);
  const absl::Status gone = ApplyGates(t.store, kId, "build", "").status();
  EXPECT_TRUE(Says(gone, path)) << gone;
  EXPECT_EQ(t.Read(kLogFile), log) << "nothing was written";
  // What is marked as invalid is not looked at: so it can be mended.
  ASSERT_TRUE(InvalidateEvidence(t.store, kId, t.evidence, "Its log is lost.", "").ok());
  EXPECT_TRUE(ApplyGates(t.store, kId, "", "").ok());
}

TEST(ApplyGates, RefusesNumbersThatTheLogOfTheToolDoesNotGive) {
  const ActionStore t;
  Doc envelope = TestEnvelope(t.store, kId);
  envelope["kind"] = "sanitizer";
  envelope["origin"] = "measured";
  envelope["word"] = "executed";
  envelope["body"] = {{"tool", "memcheck"},
                      {"version", "2025.3"},
                      {"errors", 0},
                      {"hazards_displayed", nullptr},
                      {"hazards_total", nullptr},
                      {"kernels", Doc::array()},
                      {"control", {{"planted", true}, {"found", true}}},
                      {"log", "sanitizer.log"}};
  const std::string digest = t.AddEvidence(
      envelope,
      {{"sanitizer.log", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 2 errors\n"}});
  t.Change1(kId, [&](Doc& record) { record["evidence"].push_back(Cited(digest)); });
  const absl::Status status = ApplyGates(t.store, kId, "", "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(Says(status, "E-EV-RECOMPUTE")) << status;
}

TEST(SetRecord, RefusesAStatusThatTheEvidenceDoesNotCarry) {
  const ActionStore t;
  const SetRequest request{.id = "beta-two",
                           .patch = {{"status", "performance_rejected"}},
                           .title = "Too slow",
                           .decision = "It looks slow."};
  const absl::Status status = SetRecord(t.store, request, "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Says(status, "status performance_rejected is not carried by the evidence"));
  EXPECT_TRUE(Says(status, "missing: a pass of the correct gate")) << status;
  EXPECT_TRUE(Says(status, "lab show beta-two --why"));
  SetRequest far = request;
  far.id = kId;
  far.patch["status"] = "temporarily_blocked";
  EXPECT_TRUE(Says(SetRecord(t.store, far, "").status(),
                   "research_retained to temporarily_blocked, wanted incomplete first"));
  EXPECT_EQ(TextAt(t.Get("beta-two"), "status"), "incomplete");
}

TEST(SetRecord, ChangesWhatPeopleDecideAndNothingElse) {
  const ActionStore t;
  SetRequest request{.id = "beta-two",
                     .patch = {{"name", "Another name"}},
                     .title = "A better name",
                     .decision = "The old one said nothing."};
  const int64_t seq = SetRecord(t.store, request, "").value();
  const Doc record = t.Get("beta-two");
  EXPECT_EQ(TextAt(record, "name"), "Another name");
  EXPECT_EQ(IntAt(record["decision"], "log_seq"), seq);
  EXPECT_EQ(TextAt(record["source"], "digest"), ClosureDigest(t.store, {"kernels/add.cu"}).value());
  EXPECT_EQ(TextAt(LastEntry(t), "status"), "incomplete");
  const auto refused = [&](const Doc& patch) {
    request.patch = patch;
    return SetRecord(t.store, request, "").status();
  };
  EXPECT_TRUE(Says(refused({{"gates", nullptr}}), "field gates"));
  EXPECT_TRUE(Says(refused({{"evidence", Doc::array()}}), "field evidence"));
  EXPECT_TRUE(Says(refused(Doc::array()), "no object"));
  EXPECT_TRUE(Says(refused(Doc::object()), "nothing"));
  EXPECT_TRUE(Says(refused({{"group", "no-such-group"}}), "E-"));
  request.decision.clear();
  EXPECT_TRUE(Says(refused({{"name", "Third name"}}), "--because"));
}

Doc GoodWords() {
  return {{"name", "A new record"}, {"group", "elementwise"}, {"kind", "candidate"}};
}

TEST(AddRecord, FillsWhatTheFileLeavesOutAndTheStoreHolds) {
  const ActionStore t;
  Doc words = GoodWords();
  words["decision"]["text"] = "To be measured.";
  words["scope"] = {{"archs", {"sm_90a"}}, {"non_claims", {"no timing"}}};
  words["relations"]["derived_from"] = {kId};
  words["retention"]["purpose"] = {"evidence"};
  words["variants"] = {{{"vid", "wide"}}, {{"vid", "narrow"}, {"params", {{"rows", "two"}}}}};
  const AddRequest request{
      .id = "gamma-three", .words = words, .title = "A third", .decision = "It is wanted."};
  const int64_t seq = AddRecord(t.store, request, "").value();
  const Doc record = t.Get("gamma-three");
  for (const char* field : {"name", "group", "kind"}) EXPECT_EQ(record[field], words[field]);
  EXPECT_EQ(record["decision"], Doc({{"log_seq", seq}, {"text", "To be measured."}}));
  EXPECT_EQ(record["scope"]["archs"], Doc::array({"sm_90a"}));
  EXPECT_EQ(record["scope"]["workloads"], Doc::array());
  EXPECT_EQ(record["relations"]["derived_from"], Doc::array({kId}));
  EXPECT_EQ(record["retention"]["purpose"], Doc::array({"evidence"}));
  EXPECT_EQ(TextAt(record["variants"][0], "vid"), "wide");
  EXPECT_TRUE(record["variants"][0]["note"].is_null());
  EXPECT_EQ(TextAt(record["variants"][1]["params"], "rows"), "two");
  EXPECT_EQ(TextAt(record, "status"), "incomplete");
  EXPECT_EQ(record["provenance"], Doc({{"from", nullptr}, {"origin", "native"}}));
  EXPECT_EQ(TextAt(record["source"], "state"), "not_started");
  for (const char* gate : kGates) EXPECT_TRUE(record["gates"][gate].is_null());
  EXPECT_EQ(UnexplainedNulls(record), std::vector<std::string>());
  ASSERT_EQ(record["missing"].size(), 5u);
  for (const char* pointer :
       {"/baseline", "/boundary", "/scope/eligible", "/source/commit", "/source/patch"}) {
    const Doc* gap = FindBy(record["missing"], "pointer", pointer);
    ASSERT_NE(gap, nullptr) << pointer;
    EXPECT_EQ(TextAt(*gap, "why"), "not_applicable");
  }
  const Doc entry = LastEntry(t);
  EXPECT_EQ(IntAt(entry, "seq"), seq);
  EXPECT_EQ(TextAt(entry, "title"), "A third");
  EXPECT_EQ(TextAt(entry, "decision"), "It is wanted.");
  ASSERT_EQ(entry["records"].size(), 1u);
  EXPECT_TRUE(entry["records"][0]["before"].is_null());
  EXPECT_EQ(entry["records"][0]["after"], record["record_digest"]);
  EXPECT_EQ(t.Check().errors(), 0) << TextOf(t.Check());
}

TEST(AddRecord, ThreeFieldsAreEnoughAlsoForARecordThatThePolicyMisses) {
  ActionStore t;
  t.ChangePolicy([](Doc& policy) { policy["required_ids"].push_back("gamma-three"); });
  EXPECT_EQ(t.Check().errors(), 1) << TextOf(t.Check());
  const AddRequest request{.id = "gamma-three", .words = GoodWords(), .decision = "Wanted."};
  ASSERT_TRUE(AddRecord(t.store, request, "").ok());
  EXPECT_EQ(TextAt(LastEntry(t), "title"), "New record: gamma-three");
  EXPECT_EQ(t.Check().errors(), 0) << TextOf(t.Check());
}

TEST(AddRecord, RefusesWhatIsNoRecordAndWritesNothing) {
  const ActionStore t;
  Findings findings;
  Registry registry = LoadRegistry(t.store, findings).value();
  registry.header["tombstones"] = {"old-one"};
  t.Write(kRegistryFile, RegistryText(registry));
  const std::string before = t.Read(kRegistryFile), log = t.Read(kLogFile);
  const auto refused = [&](const std::string& id, const Doc& change, std::string_view words) {
    AddRequest request{.id = id, .words = GoodWords(), .decision = "Wanted."};
    if (change.is_object()) request.words.update(change);
    if (!change.is_object()) request.words = change;
    const absl::Status status = AddRecord(t.store, request, "").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << id << change << status;
    EXPECT_TRUE(Says(status, words)) << id << change << status;
  };
  const Doc same = Doc::object();
  const std::string id = "gamma-three";
  refused(kId, same, "an id that the registry has");
  refused("old-one", same, "a retired id");
  for (const char* bad : {"", "ab", "Gamma", "gamma--three", "-gamma", "gamma_three", "../gamma"}) {
    refused(bad, same, "words with one hyphen");
  }
  refused(std::string(81, 'a'), same, "3 to 80");
  refused(id, Doc::array(), "no object");
  refused(id, "words", "no object");
  for (const char* field : {"id", "status", "gates", "evidence", "source", "provenance", "mood"}) {
    refused(id, {{field, "x"}}, std::string("field ") + field);
  }
  refused(id, {{"decision", {{"log_seq", 1}}}}, "field decision.log_seq");
  refused(id, {{"scope", "all"}}, "scope that is no object");
  refused(id, {{"scope", {{"mood", 1}}}}, "E-FIELD");
  refused(id, {{"scope", {{"archs", {"gpu"}}}}}, "E-");
  refused(id, {{"variants", 3}}, "E-TYPE");
  refused(id, {{"variants", {3}}}, "E-TYPE");
  refused(id, {{"variants", {Doc::object()}}}, "E-FIELD");
  refused(id, {{"variants", {{{"vid", "a"}}, {{"vid", "a"}}}}}, "two variants");
  refused(id, {{"name", nullptr}}, "E-");
  refused(id, {{"group", "no-such-group"}}, "E-ENUM");
  refused(id, {{"kind", "idea"}}, "E-ENUM");
  refused(id, {{"retention", {{"callable", true}}}}, "nothing to call");
  refused(id, {{"relations", {{"derived_from", {"nobody-here"}}}}}, "E-REL-DANGLING");
  refused(id, {{"relations", {{"derived_from", {id}}}}}, "E-REL-SELF");
  refused(id, {{"relations", {{"supersedes", {kId}}}}}, "E-REL-ONESIDED");
  for (const char* field : {"name", "group", "kind"}) {
    AddRequest request{.id = id, .words = GoodWords(), .decision = "Wanted."};
    request.words.erase(field);
    EXPECT_TRUE(Says(AddRecord(t.store, request, "").status(), std::string("no ") + field));
  }
  const AddRequest silent{.id = id, .words = GoodWords()};
  EXPECT_TRUE(Says(AddRecord(t.store, silent, "").status(), "--because"));
  EXPECT_EQ(t.Read(kRegistryFile), before);
  EXPECT_EQ(t.Read(kLogFile), log);
}

TEST(InvalidateEvidence, MarksWhatTheDigitsName) {
  const ActionStore t;
  ASSERT_TRUE(ApplyGates(t.store, kId, "", "").ok());
  const std::string digits = t.evidence.substr(0, 12);
  const int64_t seq = InvalidateEvidence(t.store, kId, digits, "Wrong flags.", "").value();
  const Doc reference = t.Get(kId)["evidence"][0];
  EXPECT_FALSE(BoolAt(reference, "valid", true));
  EXPECT_EQ(TextAt(reference, "invalid_reason"), "Wrong flags.");
  EXPECT_EQ(IntAt(reference, "invalid_log_seq"), seq);
  EXPECT_EQ(LastEntry(t)["evidence"], Doc::array({t.evidence}));
  EXPECT_TRUE(BoolAt(t.Get(kId)["evidence"][1], "valid"));
  const absl::Status few = InvalidateEvidence(t.store, kId, digits.substr(0, 7), "x", "").status();
  EXPECT_EQ(few.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Says(few, "at least 8 digits"));
}

TEST(AppendEntry, TakesWordsAndNoFieldOfTheChain) {
  const ActionStore t;
  const int64_t seq =
      AppendEntry(t.store, {{"title", "A note"}, {"not_done", {"Nothing was run."}}}, "").value();
  EXPECT_EQ(IntAt(LastEntry(t), "seq"), seq);
  EXPECT_EQ(TextAt(LastEntry(t), "kind"), "entry");
  EXPECT_EQ(LastEntry(t)["not_done"][0], "Nothing was run.");
  for (const char* field : {"hash", "prev", "records", "schema", "seq", "ts"}) {
    const absl::Status status = AppendEntry(t.store, {{"title", "x"}, {field, 1}}, "").status();
    EXPECT_TRUE(Says(status, "the log sets it")) << status;
  }
  EXPECT_TRUE(Says(AppendEntry(t.store, {{"mood", "good"}}, "").status(), "a field of an entry"));
}

}  // namespace
}  // namespace h3rt::lab
