// One spoiled store for each rule, and the proof that each rule is needed: with its code muted, its
// fixture is no longer found.
#include "h3rt/lab/validate.h"

#include <gtest/gtest.h>

#include <set>

#include "h3rt/lab/test_store.h"

namespace h3rt::lab {
namespace {

namespace fs = std::filesystem;

struct Fixture {
  const char* code;
  const char* what;
  std::function<void(TestStore&)> spoil;
  const char* with = nullptr;  // another code that cannot be kept out
};

std::function<void(TestStore&)> Change(const std::string& id, const std::string& pointer,
                                       const Doc& value) {
  return [=](TestStore& t) {
    t.Change1(id, [&](Doc& record) { record[Doc::json_pointer(pointer)] = value; });
  };
}
std::function<void(TestStore&)> Swap(const std::string& file, const std::string& from,
                                     const std::string& to) {
  return [=](TestStore& t) { t.Replace(file, from, to); };
}

// Puts a record that names an artifact which is good but for what a fixture changes.
std::function<void(TestStore&)> Artifact(const std::function<void(TestStore&, Doc&)>& change) {
  return [=](TestStore& t) {
    t.Write("notes/a.txt", "hello\n");
    Doc artifact = {{"path", "notes/a.txt"},
                    {"kind", "design"},
                    {"sha256", DigestOfText("hello\n")},
                    {"bytes", 6},
                    {"exists", true}};
    change(t, artifact);
    t.Change1("beta-two", [&](Doc& record) { record["artifacts"] = Doc::array({artifact}); });
  };
}

// More evidence of alpha-one, cited.
std::function<void(TestStore&)> Evidence2(const std::string& pointer, const Doc& value) {
  return [=](TestStore& t) {
    Doc envelope = TestEnvelope(t.store, "alpha-one");
    envelope[Doc::json_pointer(pointer)] = value;
    const std::string digest = t.AddEvidence(envelope);
    t.Change1("alpha-one", [&](Doc& record) { record["evidence"].push_back(Cited(digest)); });
  };
}

// A verdict as EvaluateGate gives it over the evidence of alpha-one.
Doc Verdict(const TestStore& t, const char* gate) {
  Findings findings;
  const auto evidence = LoadEvidence(t.store, findings);
  const auto fresh = FreshnessOfAll(t.store, evidence, t.policy);
  const Doc record = t.Get("alpha-one");
  const Doc manifest;
  const Case c{.record = record,
               .evidence = evidence,
               .freshness = fresh,
               .policy = t.policy,
               .manifest = manifest,
               .store = t.store};
  Doc verdict = EvaluateGate(c, gate, "sm_90a").verdict;
  EXPECT_EQ(TextAt(verdict, "verdict"), "pass");
  verdict["policy_digest"] = DigestOf(t.policy);
  // Written with the entry that comes next.
  verdict["log_seq"] = static_cast<int64_t>(LoadLog(t.store, findings).value().entries.size()) + 1;
  return verdict;
}

// Gives alpha-one a verdict that its evidence carries, then changes what was compiled.
void Age(TestStore& t, const char* status) {
  t.Write(kReadmeFile, "# h3rt\n");
  t.Change1("alpha-one", [&](Doc& record) {
    record["gates"]["build"] = Doc::array({Verdict(t, "build")});
    record["status"] = status;
    if (record["status"] == "production_accepted") {
      record["scope"]["eligible"] = "rows >= 1";
      record["missing"].erase(1);
    }
  });
  t.Write("kernels/add.h", "int header = 2;\n");
}

// A line that follows the chain, whatever it says.
void AppendToLog(TestStore& t, const std::function<void(Doc&)>& change) {
  Findings findings;
  const Log log = LoadLog(t.store, findings).value();
  Doc entry = EmptyEntry("entry", "By hand");
  entry["seq"] = static_cast<int64_t>(log.entries.size()) + 1;
  entry["prev"] = log.head_hash;
  entry["ts"] = UtcNow();
  entry["registry"] = log.entries.back().json["registry"];
  change(entry);
  entry["hash"] = LogHash(entry);
  t.Write(kLogFile, t.Read(kLogFile) + CanonicalText(entry) + "\n");
}

// The registry written by hand: digests right, layout right, no log entry.
void Rewrite(TestStore& t, const std::function<void(Registry&)>& change) {
  Findings findings;
  Registry registry = LoadRegistry(t.store, findings).value();
  change(registry);
  t.Write(kRegistryFile, RegistryText(registry));
}

const Doc& Relation(const char* name, const Doc& value) {
  static thread_local Doc out;
  out = {{"supersedes", Doc::array()},
         {"superseded_by", nullptr},
         {"duplicate_of", nullptr},
         {"shares_evidence_with", Doc::array()},
         {"derived_from", Doc::array()}};
  out[name] = value;
  return out;
}

void DeepPolicy(TestStore& t) { t.Write(kPolicyFile, std::string(65, '[') + std::string(65, ']')); }

const std::vector<Fixture>& DocumentFixtures() {
  static const auto* const fixtures = new std::vector<Fixture>{
      {"E-IO", "no registry", [](TestStore& t) { t.Remove(kRegistryFile); }},
      {"E-IO", "no policy", [](TestStore& t) { t.Remove(kPolicyFile); }},
      {"E-JSON", "truncated",
       [](TestStore& t) { t.Write(kRegistryFile, t.Read(kRegistryFile).substr(0, 900)); }},
      {"E-JSON", "garbage after the end",
       [](TestStore& t) { t.Write(kRegistryFile, t.Read(kRegistryFile) + "x"); }},
      {"E-JSON", "a record line without its end",
       Swap(kRegistryFile, "\"variants\":[]},", "\"variants\":[},")},
      {"E-JSON-ENC", "a byte order mark",
       [](TestStore& t) { t.Write(kRegistryFile, "\xef\xbb\xbf" + t.Read(kRegistryFile)); }},
      {"E-JSON-ENC", "a lone surrogate", Swap(kRegistryFile, "A record", "\\ud800 record")},
      {"E-JSON-DUPKEY", "a key twice", Swap(kRegistryFile, "\"id\":", "\"id\":\"x\",\"id\":")},
      {"E-JSON-LIMIT", "deep", DeepPolicy},
      {"E-JSON-NUM", "a fraction", Swap(kPolicyFile, "10000", "1e4")},
      {"E-CANON", "space", Swap(kRegistryFile, "\"group\":", "\"group\": ")},
      {"E-CANON", "indented",
       [](TestStore& t) {
         t.Write(kRegistryFile, Doc::parse(t.Read(kRegistryFile)).dump(1) + "\n");
       }},
      {"E-EOL", "carriage returns",
       [](TestStore& t) {
         std::string text = t.Read(kRegistryFile);
         for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
           text.insert(at, "\r");
         }
         t.Write(kRegistryFile, text);
       }},
      {"E-MERGE", "a conflict",
       [](TestStore& t) {
         t.Write(kRegistryFile,
                 "<<<<<<< ours\n" + t.Read(kRegistryFile) + "=======\n>>>>>>> theirs\n");
       }},
      {"E-MERGE", "a conflict in the policy",
       [](TestStore& t) {
         t.Write(kPolicyFile, "<<<<<<< ours\n" + t.Read(kPolicyFile) + "=======\n>>>>>>> theirs\n");
       }},
      {"E-FIELD-UNKNOWN", "a field too many", Change("beta-two", "/nmae", "x")},
      {"E-FIELD-MISSING", "a field too few",
       [](TestStore& t) { t.Change1("beta-two", [](Doc& record) { record.erase("name"); }); }},
      {"E-FIELD-MISSING", "evidence without a field",
       [](TestStore& t) {
         Doc envelope = TestEnvelope(t.store, "alpha-one");
         envelope["body"].erase("flags");
         const std::string digest = t.AddEvidence(envelope);
         t.Change1("alpha-one", [&](Doc& record) { record["evidence"].push_back(Cited(digest)); });
       }},
      {"E-TYPE", "a number for a name", Change("beta-two", "/name", 3)},
      {"E-ENUM", "a group of no policy", Change("beta-two", "/group", "other")},
      {"E-STATUS-ENUM", "upper case", Change("beta-two", "/status", "Incomplete")},
      {"E-PLACEHOLDER", "unknown", Change("beta-two", "/source/commit", "unknown")},
      {"E-NULL", "an unexplained null",
       [](TestStore& t) {
         t.Change1("beta-two", [](Doc& record) { record["missing"].erase(0); });
       }},
      {"E-MISSING-STALE", "a gap that was filled", Change("beta-two", "/boundary", "K's layout")},
      {"E-RULE", "rejected by no boundary", Change("alpha-one", "/scope/non_claims", Doc::array())},
      {"E-POLICY", "another policy than the registry's",
       [](TestStore& t) {
         t.policy["gates"]["isolated"]["min_gain_ppm"] = 1;
         t.Write(kPolicyFile, t.policy.dump(1) + "\n");
       }},
      {"E-DIGEST", "edited by hand", Swap(kRegistryFile, "A record", "An old record")},
      {"E-ORDER", "two lines exchanged",
       [](TestStore& t) {
         Rewrite(t, [](Registry& r) { std::swap(r.records[0], r.records[1]); });
       }},
  };
  return *fixtures;
}

const std::vector<Fixture>& LinkFixtures() {
  static const auto* const fixtures = new std::vector<Fixture>{
      {"E-ID-DUP", "an id twice",
       [](TestStore& t) { Rewrite(t, [](Registry& r) { r.records.push_back(r.records[1]); }); }},
      {"E-ID-REUSE", "a retired id",
       [](TestStore& t) {
         Rewrite(t, [](Registry& r) { r.header["tombstones"] = {"beta-two"}; });
       }},
      {"W-ID-NEAR", "hyphens only",
       [](TestStore& t) {
         EXPECT_TRUE(t.Put(EmptyEntry("entry", "More"), {TestRecord("betat-wo")}).ok());
       }},
      {"E-REQ-MISSING", "a required record",
       [](TestStore& t) {
         t.ChangePolicy([](Doc& policy) { policy["required_ids"].push_back("gamma-three"); });
       }},
      {"E-REL-DANGLING", "no such record",
       Change("beta-two", "/relations/derived_from", Doc::array({"gone-one"}))},
      {"E-REL-DANGLING", "no such baseline",
       [](TestStore& t) {
         t.Change1("beta-two", [](Doc& record) {
           record["baseline"] = {{"id", "alpha-one"}, {"vid", "no-such"}};
           record["missing"].erase(5);
         });
       }},
      {"E-REL-CYCLE", "a circle",
       [](TestStore& t) {
         Change("beta-two", "/relations/derived_from", Doc::array({"alpha-one"}))(t);
         Change("alpha-one", "/relations/derived_from", Doc::array({"beta-two"}))(t);
       }},
      {"E-REL-ONESIDED", "superseded by one side",
       Change("beta-two", "/relations", Relation("superseded_by", "alpha-one"))},
      {"E-REL-ONESIDED", "supersedes one side",
       Change("beta-two", "/relations", Relation("supersedes", Doc::array({"alpha-one"})))},
      {"E-REL-SELF", "itself", Change("beta-two", "/relations/duplicate_of", "beta-two")},
      {"W-SHARED-EVIDENCE", "one result twice",
       [](TestStore& t) {
         Doc entry = EmptyEntry("decision", "A copy");
         entry["status"] = "incomplete";
         Doc record = t.Get("beta-two");
         record["evidence"] = Doc::array({Cited(t.evidence)});
         EXPECT_TRUE(t.Put(entry, {record}).ok());
       }},
      {"E-CLOSED", "closed by no entry",
       Change(
           "beta-two", "/closed",
           {{"log_seq", 1},
            {"rule", "Not again unchanged."},
            {"candidate_digest", nullptr},
            {"reuse_only_in", nullptr},
            {"reopen",
             {{"mode", "unchanged_forbidden"}, {"conditions", Doc::array()}, {"auto", nullptr}}}})},
  };
  return *fixtures;
}

const std::vector<Fixture>& ArtifactFixtures() {
  static const auto* const fixtures = new std::vector<Fixture>{
      {"E-PATH", "absolute", Artifact([](TestStore&, Doc& a) { a["path"] = "/etc/passwd"; })},
      {"E-PATH", "through a link", Artifact([](TestStore& t, Doc& a) {
         fs::create_symlink("/etc", t.store.PathOf("notes/out"));
         a["path"] = "notes/out/passwd";
       })},
      {"E-ART-MISSING", "gone", Artifact([](TestStore& t, Doc&) { t.Remove("notes/a.txt"); })},
      {"E-ART-FLAG", "there after all", Artifact([](TestStore&, Doc& a) { a["exists"] = false; })},
      {"E-ART-HASH", "other bytes",
       Artifact([](TestStore& t, Doc&) { t.Write("notes/a.txt", "hellO\n"); })},
      {"E-ART-HASH", "another size",
       Artifact([](TestStore& t, Doc&) { t.Write("notes/a.txt", "hi\n"); })},
      {"E-ART-LFS", "a pointer", Artifact([](TestStore& t, Doc&) {
         t.Write("notes/a.txt",
                 "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 6\n");
       })},
  };
  return *fixtures;
}

const std::vector<Fixture>& EvidenceFixtures() {
  static const auto* const fixtures = new std::vector<Fixture>{
      {"E-EV-NAME", "content of another name",
       [](TestStore& t) {
         t.Write("benchmarks/nvcc/alpha-one/" + std::string(64, '0') + ".json",
                 t.Read(t.EvidenceFile(t.evidence)));
       }},
      {"E-EV-NAME", "in another folder",
       [](TestStore& t) {
         t.Write("benchmarks/host/alpha-one/" + t.evidence + ".json",
                 t.Read(t.EvidenceFile(t.evidence)));
       }},
      {"E-EV-REF", "no such evidence",
       Change("beta-two", "/evidence", Doc::array({Cited(std::string(64, 'a'))}))},
      {"E-EV-REF", "evidence of another record",
       [](TestStore& t) {
         const std::string digest = t.AddEvidence(TestEnvelope(t.store, "alpha-one"));
         Change("beta-two", "/evidence", Doc::array({Cited(digest)}))(t);
       }},
      {"E-EV-REF", "evidence of no record",
       [](TestStore& t) { t.AddEvidence(TestEnvelope(t.store, "gone-one")); }},
      {"E-EV-REF", "a variant that the record has not", Evidence2("/vid", "fused")},
      {"E-EV-REF", "a plan that the log has not",
       Evidence2("/plan", {{"log_seq", 2},
                           {"entry_hash", std::string(64, 'a')},
                           {"gate", "isolated"},
                           {"processes", 6},
                           {"quads", 60},
                           {"min_gain_ppm", 10000},
                           {"min_abs_ns", 20000}})},
      {"E-EV-REF", "a shape that is not eligible",
       [](TestStore& t) {
         t.Change1("alpha-one", [](Doc& record) {
           record["scope"]["eligible"] = "rows >= 4096 and hidden == 5376";
           record["missing"].erase(1);
         });
         Evidence2("/workload", {{"id", "small"},
                                 {"level", "canonical"},
                                 {"dims", {{"rows", 17}, {"hidden", 5376}}},
                                 {"dtypes", Doc::object()},
                                 {"generator", nullptr},
                                 {"seed", nullptr},
                                 {"input_sha256", Doc::object()},
                                 {"calls", 1}})(t);
       }},
      {"E-EV-REF", "a reference in words",
       Change("beta-two", "/decision/text", "See {ev:00000000/body}.")},
      {"E-EV-SIZE", "a tree over the limit",
       [](TestStore& t) { t.Write("benchmarks/host/big.z", std::string((8 << 20) + 1, 'x')); }},
      {"E-SAMPLES", "no blob",
       [](TestStore& t) {
         for (const auto& file :
              fs::directory_iterator(t.store.PathOf("benchmarks/nvcc/alpha-one"))) {
           if (file.path().extension() == ".z") fs::remove(file.path());
         }
       }},
      {"E-ORIGIN", "modelled and executed",
       [](TestStore& t) {
         Doc envelope = TestEnvelope(t.store, "alpha-one");
         envelope["word"] = "executed";
         envelope["origin"] = "modelled";
         const std::string digest = t.AddEvidence(envelope);
         t.Change1("alpha-one", [&](Doc& r) { r["evidence"].push_back(Cited(digest)); });
       }},
      {"E-TIME", "a run in the future", Evidence2("/invocation/end_us", 4'000'000'000'000'000)},
  };
  return *fixtures;
}

const std::vector<Fixture>& StatusFixtures() {
  static const auto* const fixtures = new std::vector<Fixture>{
      {"E-STATUS-EVIDENCE", "rejected without a gate",
       Change("beta-two", "/status", "performance_rejected")},
      {"E-STATUS-EVIDENCE", "a verdict that somebody wrote",
       [](TestStore& t) {
         Doc verdict = Verdict(t, "build");
         verdict["verdict"] = "fail";
         Change("alpha-one", "/gates/build", Doc::array({verdict}))(t);
       }},
      {"W-UNDERCLAIM", "less than the evidence", Change("alpha-one", "/status", "incomplete")},
      {"E-DISPATCH", "selected and not accepted",
       [](TestStore& t) {
         t.Write(kManifestFile, CanonicalText({{"schema", "lab.manifest/1"},
                                               {"entries",
                                                {{{"id", "beta-two"},
                                                  {"class", "sm_90a"},
                                                  {"eligible", nullptr},
                                                  {"entry", Doc::array()},
                                                  {"evidence", Doc::array()},
                                                  {"source_digest", nullptr},
                                                  {"workloads", Doc::array()}}}}}) +
                                    "\n");
       }},
      {"E-DISPATCH", "reachable by default", Change("beta-two", "/retention/dispatch", "default")},
      {"W-STALE", "accepted and aged", [](TestStore& t) { Age(t, "production_accepted"); },
       // No experiment can pass all six gates yet.
       "E-STATUS-EVIDENCE"},
      {"W-AGED", "retained and aged", [](TestStore& t) { Age(t, "research_retained"); }},
      {"W-NUMBER", "a number without evidence",
       Change("beta-two", "/decision/text", "It is 3 % faster.")},
      {"E-CLAIM", "no such evidence", Swap(kReadmeFile, "ev:", "ev:0000000000")},
      {"E-CLAIM", "too short",
       [](TestStore& t) {
         t.Replace(kReadmeFile, "ev:" + t.evidence.substr(0, 12), "ev:" + t.evidence.substr(0, 7));
       }},
      {"E-CLAIM", "stale",
       [](TestStore& t) {
         Doc entry = EmptyEntry("decision", "Open again");
         entry["status"] = "incomplete";
         Doc record = t.Get("alpha-one");
         record["status"] = "incomplete";
         EXPECT_TRUE(t.Put(entry, {record}).ok());
         t.Write("kernels/add.h", "int header = 2;\n");
       }},
      {"E-LOG-COVER", "a record changed without an entry",
       [](TestStore& t) {
         Rewrite(t, [](Registry& r) {
           r.records[1].json["name"] = "Another";
           RefreshDigest(r.records[1].json);
         });
       }},
      {"E-LOG-COVER", "a record removed",
       [](TestStore& t) { Rewrite(t, [](Registry& r) { r.records.pop_back(); }); }},
      {"E-LOG-COVER", "a header changed",
       [](TestStore& t) { Rewrite(t, [](Registry& r) { r.header["tombstones"] = {"old-one"}; }); }},
      {"E-LOG-COVER", "an entry that claims a change",
       [](TestStore& t) {
         AppendToLog(t, [](Doc& entry) {
           entry["records"] = {
               {{"id", "beta-two"}, {"before", nullptr}, {"after", std::string(64, 'a')}}};
         });
       }},
      {"E-LOG-COVER", "a decision that no entry has", Change("beta-two", "/decision/log_seq", 99)},
      {"E-LOG-CHAIN", "a word changed",
       Swap(kLogFile, "The store of tests", "The store of others")},
      {"E-LOG-CUT", "the last line gone",
       [](TestStore& t) {
         Change("beta-two", "/name", "Another")(t);
         const std::string text = t.Read(kLogFile);
         t.Write(kLogFile, text.substr(0, text.rfind('\n', text.size() - 2) + 1));
       }},
      {"E-LOG-TORN", "half a line",
       [](TestStore& t) { t.Write(kLogFile, t.Read(kLogFile) + "{\"actions\":["); }},
      {"E-LOG-FORM", "a second genesis",
       [](TestStore& t) { AppendToLog(t, [](Doc& entry) { entry["kind"] = "genesis"; }); }},
  };
  return *fixtures;
}

std::vector<Fixture> AllFixtures() {
  std::vector<Fixture> all;
  for (const auto* list : {&DocumentFixtures(), &LinkFixtures(), &ArtifactFixtures(),
                           &EvidenceFixtures(), &StatusFixtures()}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  return all;
}

std::set<std::string> CodesOf(const Findings& findings) {
  std::set<std::string> out;
  for (const auto& [code, count] : findings.counts()) out.insert(code);
  return out;
}

TEST(Validate, AGoodStoreHasNoFinding) {
  const TestStore t;
  const Findings findings = t.Check();
  EXPECT_EQ(findings.errors() + findings.warnings(), 0) << TextOf(findings);
}

TEST(Validate, EachFixtureGivesItsCodeAloneAndNoticesWhenItIsMuted) {
  for (const Fixture& fixture : AllFixtures()) {
    SCOPED_TRACE(std::string(fixture.code) + ": " + fixture.what);
    TestStore t;
    fixture.spoil(t);
    const Findings found = t.Check();
    std::set<std::string> wanted = {fixture.code};
    if (fixture.with != nullptr) wanted.insert(fixture.with);
    EXPECT_EQ(CodesOf(found), wanted) << TextOf(found);
    const Findings muted = t.Check(fixture.code);
    EXPECT_FALSE(muted.Has(fixture.code)) << TextOf(muted);
  }
}

// Codes that stores do not show are proved in other tests.
TEST(Validate, EveryCodeHasAFixture) {
  const std::map<std::string, const char*> elsewhere = {
      {"E-AUDIT-INPUT", "lab/evidence_rules_test.cc"},
      {"E-AUDIT-MUTATED", "lab/evidence_rules_test.cc"},
      {"E-AUDIT-OUTPUT", "lab/evidence_rules_test.cc"},
      {"E-AUDIT-POISON", "lab/evidence_rules_test.cc"},
      {"E-AUDIT-REPLAY", "lab/evidence_rules_test.cc"},
      {"E-AUDIT-SEED", "lab/evidence_rules_test.cc"},
      {"E-AUDIT-STREAM", "lab/evidence_rules_test.cc"},
      {"E-BUNDLE", "imports/bundle_test.cc"},
      {"E-EV-FORM", "lab/evidence_rules_test.cc"},
      {"E-EV-RECOMPUTE", "lab/evidence_rules_test.cc"},
      {"E-IMPOSSIBLE", "lab/evidence_rules_test.cc"},
      {"E-NCU-NUM", "lab/log_readers_test.cc"},
      {"E-PAIR-MISMATCH", "lab/evidence_rules_test.cc"},
      {"E-PARITY-EMPTY", "lab/evidence_rules_test.cc"},
      {"E-PROCESS", "lab/evidence_rules_test.cc"},
      {"E-REF-UNSTABLE", "lab/evidence_rules_test.cc"},
      {"E-REPORT", "pages/report_test.cc"},
      {"E-RES-MISSING", "lab/log_readers_test.cc"},
      {"E-SAN-CONTROL", "lab/evidence_rules_test.cc"},
      {"E-SAN-EMPTY", "lab/log_readers_test.cc"},
      {"E-SEED-FORM", "imports/import_seed_test.cc"},
      {"E-TOTALS", "imports/import_seed_test.cc"},
      {"W-EXCESS", "lab/evidence_rules_test.cc"},
      {"W-RES-HINT", "lab/log_readers_test.cc"},
      {"W-SEED-PATH", "imports/import_seed_test.cc"},
      {"W-TIME", "lab/evidence_rules_test.cc"},
  };
  std::set<std::string> here;
  for (const Fixture& fixture : AllFixtures()) here.insert(fixture.code);
  for (const CodeEntry& entry : CodeTable()) {
    const auto other = elsewhere.find(entry.code);
    EXPECT_TRUE(here.count(entry.code) == 1 || other != elsewhere.end())
        << entry.code << " has no fixture";
    if (other == elsewhere.end()) continue;
    EXPECT_EQ(here.count(entry.code), 0u) << entry.code << " is proved here, drop it from the list";
    const auto text = ReadFile(std::string(H3RT_SOURCE_DIR) + "/h3rt/" + other->second);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_NE(text->find(std::string("\"") + entry.code), std::string::npos)
        << other->second << " says nothing of " << entry.code;
  }
  for (const auto& [code, file] : elsewhere) EXPECT_NE(FindCode(code), nullptr) << code;
}

TEST(Validate, StrictRaisesStaleAcceptedWorkAndUncitedNumbersOnly) {
  for (const Fixture& fixture : StatusFixtures()) {
    const CodeEntry* entry = FindCode(fixture.code);
    if (entry->severity == Severity::kError) continue;
    TestStore t;
    fixture.spoil(t);
    Findings strict;
    strict.SetStrict(true);
    Validate(t.store, {}, strict);
    const bool raised =
        std::string(fixture.code) == "W-STALE" || std::string(fixture.code) == "W-NUMBER";
    EXPECT_EQ(strict.errors() > t.Check().errors(), raised) << fixture.code;
  }
}

TEST(Validate, WithoutFilesNothingOutsideIsOpened) {
  TestStore t;
  fs::remove_all(t.store.PathOf("benchmarks"));
  fs::remove_all(t.store.PathOf("kernels"));
  t.Remove(kReadmeFile);
  EXPECT_GT(t.Check().errors(), 0);
  const Findings findings = t.Check("", /*filesystem=*/false);
  EXPECT_EQ(findings.errors() + findings.warnings(), 0) << TextOf(findings);
}

TEST(Validate, OfAGroupOnlyWhatConcernsIt) {
  TestStore t;
  Change("beta-two", "/decision/text", "It is 3 % faster.")(t);
  Change("beta-two", "/group", "attention")(t);
  Findings all, own, other;
  Validate(t.store, {}, all);
  Validate(t.store, {.group = "attention"}, own);
  Validate(t.store, {.group = "elementwise"}, other);
  EXPECT_EQ(all.warnings(), 1);
  EXPECT_EQ(own.warnings(), 1);
  EXPECT_EQ(other.warnings(), 0);
}

TEST(Validate, ACircleIsPrinted) {
  TestStore t;
  EXPECT_TRUE(t.Put(EmptyEntry("entry", "More"), {TestRecord("gamma-three")}).ok());
  Change("gamma-three", "/relations/derived_from", Doc::array({"alpha-one"}))(t);
  Change("alpha-one", "/relations/derived_from", Doc::array({"beta-two"}))(t);
  Change("beta-two", "/relations/derived_from", Doc::array({"gamma-three"}))(t);
  const Findings findings = t.Check();
  EXPECT_EQ(findings.errors(), 1);
  EXPECT_NE(TextOf(findings).find("alpha-one -> beta-two -> gamma-three -> alpha-one"),
            std::string::npos)
      << TextOf(findings);
}

// Nothing in a registry's text makes the check crash: every line of a good one is damaged.
TEST(Validate, SurvivesWhateverARecordHolds) {
  const TestStore t;
  Findings findings;
  const Registry registry = LoadRegistry(t.store, findings).value();
  const Doc flat = registry.records[0].json.flatten();
  const Doc values[] = {nullptr, 7, "x", Doc::array(), Doc::object(), Doc::array({1}), true};
  for (const char* muted : {"E-TYPE", "E-FIELD-MISSING", "E-ENUM"}) {
    for (const auto& [pointer, old] : flat.items()) {
      for (const Doc& value : values) {
        Registry spoiled = registry;
        spoiled.records[0].json[Doc::json_pointer(pointer)] = value;
        Findings found;
        found.Mute(muted);
        ValidateRecord(spoiled.records[0].json, t.policy, "f", 1, found);
        ValidateLinks(t.store, spoiled, t.policy, nullptr, true, found);
      }
    }
  }
}

}  // namespace
}  // namespace h3rt::lab
