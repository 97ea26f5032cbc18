// One record by itself, the tables and what is read in texts.
#include <gtest/gtest.h>

#include <set>

#include "h3rt/lab/test_store.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

const Doc& Policy() {
  static const Doc* const policy =
      new Doc(Doc::parse(ReadFile(std::string(H3RT_SOURCE_DIR) + "/research/policy.json").value()));
  return *policy;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;  // code, pointer

Pairs FoundIn(const Doc& record) {
  Findings findings;
  ValidateRecord(record, Policy(), "f", 3, findings);
  Pairs out;
  for (const Finding& finding : findings.Sorted()) {
    EXPECT_EQ(finding.line, 3);
    out.emplace_back(finding.code, finding.pointer);
  }
  return out;
}

// A record with one change gives exactly one finding.
void Expect(const std::string& code, const std::string& pointer,
            const std::function<void(Doc&)>& change) {
  Doc record = TestRecord("alpha-one");
  change(record);
  EXPECT_EQ(FoundIn(record), (Pairs{{code, pointer}}));
}
std::function<void(Doc&)> Set(const std::string& pointer, const Doc& value) {
  return [=](Doc& record) { record[Doc::json_pointer(pointer)] = value; };
}

TEST(Record, IsGoodAsTheTestsMakeIt) {
  EXPECT_EQ(FoundIn(TestRecord("alpha-one")), Pairs());
  EXPECT_TRUE(UnexplainedNulls(TestRecord("alpha-one")).empty());
}

TEST(Record, FormIsHeldByTheTables) {
  Expect("E-FIELD-MISSING", "/name", [](Doc& r) { r.erase("name"); });
  Expect("E-FIELD-MISSING", "/source/paths", [](Doc& r) { r["source"].erase("paths"); });
  Expect("E-FIELD-UNKNOWN", "/nmae", Set("/nmae", "x"));
  Expect("E-FIELD-UNKNOWN", "/gates/isolate", Set("/gates/isolate", nullptr));
  Expect("E-TYPE", "/name", Set("/name", 3));
  Expect("E-TYPE", "/name", Set("/name", ""));
  Expect("E-TYPE", "/name", Set("/name", std::string(121, 'x')));
  Expect("E-TYPE", "/name", Set("/name", nullptr));
  Expect("E-TYPE", "/id", Set("/id", "Alpha-One"));
  Expect("E-TYPE", "/scope/archs/0", Set("/scope/archs", {"SM121"}));
  Expect("E-TYPE", "/record_digest", Set("/record_digest", "abc"));
  Expect("E-TYPE", "/retention/purpose", Set("/retention/purpose", Doc::array()));
  Expect("E-TYPE", "/retention/callable", Set("/retention/callable", "yes"));
  Expect("E-TYPE", "/source", Set("/source", Doc::array()));
  Expect("E-ENUM", "/kind", Set("/kind", "kernel"));
  Expect("E-ENUM", "/group", Set("/group", "no-such-group"));
  Expect("E-STATUS-ENUM", "/status", Set("/status", "Production_Accepted"));
  Expect("E-JSON-ENC", "/name", Set("/name", "a\x1b[31m"));
  Expect("E-JSON-ENC", "/name", Set("/name", "a\xff"));
}

TEST(Record, NamesTheNearestKnownField) {
  Doc record = TestRecord("alpha-one");
  record["relation"] = record["relations"];
  record.erase("relations");
  Findings findings;
  ValidateRecord(record, Policy(), "f", 1, findings);
  EXPECT_NE(TextOf(findings).find("nearest known name is \"relations\""), std::string::npos);
}

TEST(Record, PlaceholdersAreNoValues) {
  for (const char* word : {"unknown", "N/A", "TBD", "-1", "?"}) {
    Expect("E-PLACEHOLDER", "/name", Set("/name", word));
    Expect("E-PLACEHOLDER", "/source/commit", Set("/source/commit", word));
    Expect("E-PLACEHOLDER", "/status", Set("/status", word));
  }
  Expect("E-PLACEHOLDER", "/decision/log_seq", Set("/decision/log_seq", -1));
  Expect("E-PLACEHOLDER", "/decision/log_seq", Set("/decision/log_seq", "unknown"));
}

TEST(Record, NullsAreExplainedAndExplanationsAreNotStale) {
  Expect("E-NULL", "/boundary", [](Doc& r) { r["missing"].erase(0); });
  Expect("E-MISSING-STALE", "/missing/0/pointer", Set("/boundary", "The layout of K."));
  Expect("E-MISSING-STALE", "/missing/0/pointer", [](Doc& r) {
    r["missing"].insert(r["missing"].begin(), r["missing"][0]);
    r["missing"][0]["pointer"] = "/no/such/field";
  });
  // An empty list may be what is not enumerated, and a gate that was not run what is missing.
  Doc record = TestRecord("alpha-one");
  Doc gap = record["missing"][0];
  gap["pointer"] = "/variants";
  gap["why"] = "not_enumerated";
  record["missing"].push_back(gap);
  gap["pointer"] = "/gates/block";
  gap["why"] = "not_run";
  record["missing"].push_back(gap);
  EXPECT_EQ(FoundIn(record), Pairs());
  Expect("E-RULE", "/missing/0/why", Set("/missing/0/why", "not_enumerated"));
  // Nothing is asked of the source that is not here, nor of artifacts that are gone.
  record = TestRecord("alpha-one");
  record["source"]["state"] = "not_started";
  record["source"]["paths"] = Doc::array();
  record["retention"]["callable"] = false;
  record["missing"].erase(2);
  record["artifacts"] = {{{"path", "a/b"},
                          {"kind", "patch"},
                          {"sha256", nullptr},
                          {"bytes", nullptr},
                          {"exists", false}}};
  EXPECT_EQ(FoundIn(record), Pairs());
  record["artifacts"][0]["exists"] = true;
  EXPECT_EQ(FoundIn(record),
            (Pairs{{"E-NULL", "/artifacts/0/bytes"}, {"E-NULL", "/artifacts/0/sha256"}}));
  EXPECT_EQ(UnexplainedNulls(record).size(), 2u);
}

TEST(Record, StatusAndKindAskForMore) {
  Expect("E-RULE", "/boundary", Set("/status", "architecture_rejected"));
  Expect("E-RULE", "/scope/eligible", Set("/status", "production_accepted"));
  Expect("E-RULE", "/scope/non_claims", Set("/status", "research_retained"));
  Expect("E-RULE", "/kind", [](Doc& r) {
    r["status"] = "production_accepted";
    r["kind"] = "profile";
    r["scope"]["eligible"] = "rows >= 1";
    r["missing"].erase(1);
  });
  Doc record = TestRecord("alpha-one", "research_retained");
  record["kind"] = "profile";
  EXPECT_EQ(FoundIn(record), Pairs());
}

TEST(Record, ProvenanceRules) {
  Expect("E-RULE", "/imported_status", Set("/imported_status", "incomplete"));
  Expect("E-RULE", "/decision/log_seq", Set("/decision/log_seq", nullptr));
  Expect("E-RULE", "/provenance/from", Set("/provenance/origin", "imported"));
  const Doc from = {{"document", "seed"}, {"line", 3}, {"sha256", std::string(64, 'a')}};
  Expect("E-RULE", "/provenance/from", Set("/provenance/from", from));
}

TEST(Record, SourceRules) {
  Expect("E-RULE", "/source/paths", Set("/source/paths", Doc::array()));
  Expect("E-PATH", "/source/paths/0", Set("/source/paths", {"/etc/passwd"}));
  Expect("E-PATH", "/source/paths/0", Set("/source/paths", {"../outside"}));
  Expect("E-RULE", "/source/digest", [](Doc& r) {
    r["source"]["state"] = "external";
    r["source"]["digest"] = std::string(64, 'a');
    r["missing"].erase(2);
  });
  for (const char* state : {"unrecoverable", "not_started"}) {
    Expect("E-RULE", "/retention/callable", Set("/source/state", state));
    Expect("E-RULE", "/retention/purpose", [&](Doc& r) {
      r["source"]["state"] = state;
      r["retention"]["callable"] = false;
      r["retention"]["purpose"] = {"reproducer"};
    });
  }
}

TEST(Record, VariantEvidenceAndGateRules) {
  const Doc variant = {
      {"vid", "a"}, {"params", Doc::object()}, {"source_digest", nullptr}, {"note", nullptr}};
  Expect("E-RULE", "/variants", Set("/variants", {variant, variant}));
  Expect("E-REL-SELF", "/baseline", [](Doc& r) {
    r["baseline"] = {{"id", "alpha-one"}, {"vid", nullptr}};
    r["missing"].erase(5);
  });
  Doc record = TestRecord("alpha-one");
  record["variants"] = {variant};
  record["baseline"] = {{"id", "alpha-one"}, {"vid", "a"}};
  record["missing"].erase(5);
  EXPECT_EQ(FoundIn(record), Pairs());

  const std::string digest(64, 'a');
  Expect("E-RULE", "/evidence/1", Set("/evidence", {Cited(digest), Cited(digest)}));
  Doc cited = Cited(digest);
  cited["vid"] = "b";
  Expect("E-EV-REF", "/evidence/0/vid", Set("/evidence", Doc::array({cited})));
  cited = Cited(digest);
  cited["valid"] = false;
  cited["invalid_log_seq"] = 4;
  Expect("E-RULE", "/evidence/0/invalid_reason", Set("/evidence", Doc::array({cited})));
  cited["invalid_reason"] = "The payload was that of another slot.";
  cited["valid"] = true;
  cited["invalid_log_seq"] = nullptr;
  Expect("E-RULE", "/evidence/0/invalid_reason", Set("/evidence", Doc::array({cited})));

  const Doc skip = {{"gate", "block"},
                    {"because_gate", "isolated"},
                    {"because_evidence", nullptr},
                    {"log_seq", nullptr}};
  Doc record2 = TestRecord("alpha-one");
  record2["skipped"] = {skip};
  EXPECT_EQ(FoundIn(record2), Pairs());
  Expect("E-RULE", "/skipped/0/because_gate", [&](Doc& r) {
    r["skipped"] = {skip};
    r["skipped"][0]["because_gate"] = "trajectory";
  });
  Expect("E-RULE", "/skipped/0", [&](Doc& r) {
    r["skipped"] = {skip};
    r["skipped"][0]["because_gate"] = nullptr;
  });
  const Doc verdict = {{"class", "sm_90a"},
                       {"verdict", "skipped"},
                       {"reason", "Not needed."},
                       {"evidence", Doc::array()},
                       {"workloads", Doc::array()},
                       {"policy_digest", digest},
                       {"log_seq", 1}};
  Expect("E-RULE", "/gates/block", Set("/gates/block", Doc::array({verdict})));
  record2["gates"]["block"] = {verdict, verdict};
  EXPECT_EQ(FoundIn(record2), (Pairs{{"E-ORDER", "/gates/block"}}));
}

TEST(Record, ClosedWorkNamesItsConditions) {
  const Doc closed = {
      {"log_seq", 1},
      {"rule", "Do not repeat unchanged."},
      {"candidate_digest", nullptr},
      {"reuse_only_in", nullptr},
      {"reopen",
       {{"mode", "condition"}, {"conditions", {"Another pipeline."}}, {"auto", nullptr}}}};
  Doc record = TestRecord("alpha-one");
  record["closed"] = closed;
  EXPECT_EQ(FoundIn(record), Pairs());
  Expect("E-CLOSED", "/closed/reopen/conditions", [&](Doc& r) {
    r["closed"] = closed;
    r["closed"]["reopen"]["conditions"] = Doc::array();
  });
}

TEST(Record, NumbersInDecisionsCiteEvidence) {
  Expect("W-NUMBER", "/decision/text", Set("/decision/text", "It is 3.1 % faster."));
  Expect("E-RULE", "/scope/eligible", [](Doc& r) {
    r["scope"]["eligible"] = "rows at least 3";
    r["missing"].erase(1);
  });
  for (const char* found : {"12.5%", "1.031x", "takes 4 ms", "4.17ms", "(3 GB)", "20.9-23.4%",
                            "16 GiB/s", "0.5 \xc2\xb5s", "2 times"}) {
    EXPECT_FALSE(FirstUncitedNumber(found).empty()) << found;
  }
  for (const char* none :
       {"Phase 2B of sm_121a", "128 rows", "on 2026-08-26", "{ev:0123abcd/body/p50_ns}",
        "FP8 needs P2", "1,000 launches", "{ev:0123456789 is 4 ms"}) {
    EXPECT_EQ(FirstUncitedNumber(none), "") << none;
  }
  EXPECT_EQ(References("a {ev:x/y} b {ev:z}"), (std::vector<std::string>{"x/y", "z"}));
}

TEST(Predicate, IsParsedAndEvaluated) {
  const Doc facts = {{"rows", 4096}, {"hidden", 5376}, {"dtype", "bf16"}};
  const auto value = [&](const std::string& text) {
    bool holds = false;
    const std::string why = EvaluatePredicate(text, &facts, holds);
    return why.empty() ? (holds ? "yes" : "no") : "why";
  };
  EXPECT_STREQ(value("rows >= 4096"), "yes");
  EXPECT_STREQ(value("rows > 4096"), "no");
  EXPECT_STREQ(value("rows != -4096 and dtype == bf16"), "yes");
  EXPECT_STREQ(value("rows < 1 and hidden == 5376 or dtype == bf16"), "yes");
  EXPECT_STREQ(value("dtype == bf16 or rows < 1 and hidden == 1"), "yes");
  EXPECT_STREQ(value("rows < 1 or dtype != bf16"), "no");
  for (const char* bad :
       {"", "rows", "rows >=", "rows >= 1 and", "rows => 1", "rows >= 1 xor rows == 1",
        "dtype < bf16", "rows == bf16", "other == 1", "4 == rows", "rows  == 1", "rows == 1 ",
        "rows == 99999999999999999999"}) {
    EXPECT_STREQ(value(bad), "why") << bad;
  }
}

TEST(Policy, TheCommittedOneIsGoodAndRulesHold) {
  Findings findings;
  ValidatePolicy(Policy(), findings);
  EXPECT_EQ(findings.errors(), 0) << TextOf(findings);
  const auto code_of = [](const std::function<void(Doc&)>& change) {
    Doc policy = Policy();
    change(policy);
    Findings found;
    ValidatePolicy(policy, found);
    EXPECT_EQ(found.errors(), 1) << TextOf(found);
    return found.errors() == 0 ? "" : found.Sorted()[0].code;
  };
  EXPECT_EQ(code_of(Set("/groups/0", "cute")), "E-POLICY");
  EXPECT_EQ(code_of(Set("/architectures/sm_90a/capability", "9.1")), "E-POLICY");
  EXPECT_EQ(code_of(Set("/gates/isolated/min_gain_ppm", "1 %")), "E-TYPE");
  EXPECT_EQ(code_of([](Doc& p) { p["gates"]["block"].erase("reason"); }), "E-FIELD-MISSING");
}

TEST(Schema, ComesFromTheTables) {
  const Doc schema = SchemaOf();
  const Doc& record = schema["$defs"]["record"];
  std::set<std::string> fields;
  const Doc whole = TestRecord("alpha-one");
  for (const auto& [name, value] : whole.items()) fields.insert(name);
  EXPECT_EQ(record["properties"].size(), fields.size());
  for (const Doc& name : record["required"]) EXPECT_EQ(fields.count(name.get<std::string>()), 1u);
  EXPECT_EQ(record["properties"]["status"]["enum"].size(), 7u);
  EXPECT_EQ(record["properties"]["imported_status"]["enum"].size(), 8u);  // and null
  EXPECT_EQ(record["additionalProperties"], false);
  EXPECT_EQ(schema["$defs"]["bodies"].size(), 10u);
  EXPECT_EQ(schema["$defs"]["evidence"]["properties"]["subject"]["properties"]["baseline"]["type"],
            (Doc{"object", "null"}));
}

}  // namespace
}  // namespace h3rt::lab
