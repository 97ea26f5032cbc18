#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "h3rt/base/file.h"
#include "h3rt/imports/import.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

namespace fs = std::filesystem;

constexpr char kPage[] = "000_8301e0a778473419.txt";
constexpr char kLongLog[] = "002_1361d9a789086525.txt";
constexpr char kShortLog[] = "003_b50d3670fcf3993c.txt";

std::string Seed(const std::string& name) {
  return ReadFile(std::string(H3RT_SOURCE_DIR) + "/tests/data/lab/seeds/" + name).value();
}

std::vector<std::string> Messages(const Findings& findings, std::string_view code) {
  std::vector<std::string> out;
  for (const Finding& finding : findings.Sorted()) {
    if (finding.code == code) out.push_back(std::to_string(finding.line) + " " + finding.message);
  }
  return out;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(SeedPage, TheSeedCounts70RowsAgainst66AndFourStatusesDisagree) {
  Findings findings;
  const SeedPage page = ParseSeedPage(Seed(kPage), kPage, findings);
  EXPECT_EQ(page.rows.size(), 70u);
  EXPECT_EQ(page.printed_total, 66);
  EXPECT_EQ(page.sha256, "1afedd11c2fb8d6dc49e962d3a02aed78d3bd19c05033b68e7e93006c43678be");
  EXPECT_EQ(Messages(findings, "E-TOTALS"),
            (std::vector<std::string>{"123 production_accepted: 5 counted, 6 printed",
                                      "124 research_retained: 10 counted, 8 printed",
                                      "125 architecture_rejected: 9 counted, 7 printed",
                                      "129 incomplete: 26 counted, 25 printed",
                                      "130 total: 70 counted, 66 printed"}));
  EXPECT_EQ(findings.errors(), 5);
  EXPECT_EQ(Messages(findings, "W-SEED-PATH").size(), 44u);
  EXPECT_EQ(findings.warnings(), 44);
  EXPECT_EQ(page.rows[0].id, "elem-fused-residual-rmsnorm");
  EXPECT_EQ(page.rows[0].line, 34);
  EXPECT_EQ(page.rows[33].name, "Direct output into q_padding=32 buffers");
  EXPECT_EQ(page.rows[69].line, 103);
  EXPECT_EQ(page.rows[6].gaps, "Source, benchmark, residual-order parity");
}

TEST(SeedPage, CountsThatAgreeFindNothing) {
  const std::string page =
      "## Complete Registry\n\n"
      "| ID | Experiment | Status | Decision | Primary source/evidence | Evidence gaps |\n"
      "| --- | --- | --- | --- | --- | --- |\n"
      "| `one-thing` | One | `incomplete` | A \\| B. | `a/b.cc` | Source |\n\n"
      "## Totals\n\n| Status | Count |\n| --- | ---: |\n| `incomplete` | 1 |\n| **Total** | **1** "
      "|\n";
  Findings findings;
  const SeedPage parsed = ParseSeedPage(page, "page", findings);
  EXPECT_EQ(findings.errors() + findings.warnings(), 0);
  EXPECT_EQ(parsed.rows.size(), 1u);
  EXPECT_EQ(parsed.rows[0].decision, "A \\| B.");

  const auto code = [&](std::string_view from, std::string_view to) {
    Findings found;
    ParseSeedPage(Replaced(page, from, to), "page", found);
    return found.errors() + found.warnings() == 0 ? "" : found.Sorted().front().code;
  };
  EXPECT_EQ(code("| Source |", "| Source | more |"), "E-SEED-FORM");
  EXPECT_EQ(code("| Source |", "|  |"), "E-SEED-FORM");
  EXPECT_EQ(code("`one-thing`", "`One Thing`"), "E-SEED-FORM");
  EXPECT_EQ(code("| `incomplete` | A", "| `Incomplete` | A"), "E-STATUS-ENUM");
  EXPECT_EQ(code("`a/b.cc`", "roadmap"), "W-SEED-PATH");
  EXPECT_EQ(code("`a/b.cc`", "`roadmap`"), "W-SEED-PATH");
  EXPECT_EQ(code("`a/b.cc`", "`b.cc`"), "");
  EXPECT_EQ(code("**1**", "**2**"), "E-TOTALS");
  EXPECT_EQ(code("**1**", "one"), "E-SEED-FORM");
  EXPECT_EQ(code("| `incomplete` | 1 |\n", ""), "E-TOTALS");
  EXPECT_EQ(code("| `incomplete` | 1 |", "| `unknown` | 1 |"), "E-STATUS-ENUM");
  for (const char* bad : {"O\x01ne |", "O\xff |"}) {
    Findings found;
    ParseSeedPage(Replaced(page, "One |", bad), "page", found);
    EXPECT_TRUE(found.Has("E-JSON-ENC"));
  }
  EXPECT_EQ(code("## Totals", "## Sums"), "E-SEED-FORM");

  Findings twice;
  const std::string row = "| `one-thing` | One | `incomplete` | A \\| B. | `a/b.cc` | Source |\n";
  ParseSeedPage(Replaced(page, row, row + row), "page", twice);
  EXPECT_TRUE(twice.Has("E-ID-DUP"));
  Findings empty;
  ParseSeedPage("", "page", empty);
  EXPECT_TRUE(empty.Has("E-SEED-FORM"));
}

TEST(SeedLog, BothFormsGiveTheSameEntriesAndTheShorterIsAPrefix) {
  Findings findings;
  const std::vector<SeedEntry> shorter = ParseSeedLog(Seed(kShortLog), kShortLog, findings);
  const std::vector<SeedEntry> longer = ParseSeedLog(Seed(kLongLog), kLongLog, findings);
  EXPECT_EQ(findings.errors(), 0);
  ASSERT_EQ(shorter.size(), 3u);
  ASSERT_EQ(longer.size(), 6u);
  EXPECT_EQ(shorter[1].date, "2026-08-26");
  EXPECT_EQ(shorter[1].title, "Phase 0 Import And Verification");
  EXPECT_EQ(shorter[1].status, "research_retained");
  EXPECT_EQ(longer[2].title, "Closed Prior Work");
  EXPECT_EQ(longer[2].paragraphs.size(), 13u);  // heads, eleven rows, a paragraph
  EXPECT_EQ(longer[5].title, "Phase 2B Fixed Aligned Numerical Prototype");
  EXPECT_EQ(WhyNotPrefix(shorter, longer), "");
  EXPECT_NE(WhyNotPrefix(longer, shorter), "");
}

TEST(SeedLog, AnyEditOfTheShorterLogIsNoPrefix) {
  Findings findings;
  const std::vector<SeedEntry> longer = ParseSeedLog(Seed(kLongLog), kLongLog, findings);
  const std::string text = Seed(kShortLog);
  const std::pair<const char*, const char*> edits[] = {
      {"Rehashed ten", "Rehashed nine"},
      {"2026-08-26", "2026-08-27"},
      {"Phase 0 Import", "Phase 0 import"},
      {"research_retained", "incomplete"},
      {"| Neutral/slower |", "| Neutral |"},
      {"- Did not execute inference, modify dispatch, or touch the production service.\n", ""},
  };
  for (const auto& [from, to] : edits) {
    const auto edited = ParseSeedLog(Replaced(text, from, to), kShortLog, findings);
    EXPECT_NE(WhyNotPrefix(edited, longer), "") << from;
  }
}

TEST(SeedLog, WhatIsNoLogIsFound) {
  Findings none;
  ParseSeedLog("# A page\n\nof something else\n", "page", none);
  EXPECT_TRUE(none.Has("E-SEED-FORM"));
  Findings status;
  ParseSeedLog("## 2026-08-26: Title\n\nStatus: `good`\n", "page", status);
  EXPECT_TRUE(status.Has("E-STATUS-ENUM"));
}

// A store with the project's policy and inventory.
class SeedImport : public testing::Test {
 protected:
  SeedImport() {
    std::string folder = testing::TempDir() + "/lab_import_XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    store_.root = folder;
    fs::create_directories(store_.PathOf("research"));
    for (const char* file : {kPolicyFile, kSeedInventoryFile}) {
      fs::copy(fs::path(H3RT_SOURCE_DIR) / file, store_.PathOf(file));
    }
  }
  ~SeedImport() override {
    std::error_code ignored;
    fs::remove_all(store_.root, ignored);
  }
  SeedPage Page(const std::string& text) const {
    Findings ignored;
    return ParseSeedPage(text, kPage, ignored);
  }
  Registry Load() const {
    Findings findings;
    std::optional<Registry> registry = LoadRegistry(store_, findings);
    EXPECT_EQ(findings.errors(), 0);
    return registry ? *std::move(registry) : Registry();
  }
  std::string LogText() const { return ReadFile(store_.PathOf(kLogFile)).value_or(""); }

  Store store_;
};

TEST_F(SeedImport, EveryRowAndEveryOtherNameBecomesARecordThatIsSound) {
  ASSERT_TRUE(ImportSeedPage(store_, Page(Seed(kPage))).ok());
  const Registry registry = Load();
  Findings findings;
  const Doc policy = LoadPolicy(store_, findings).value();
  std::set<std::string> ids;
  int64_t imported = 0;
  for (const Record& record : registry.records) {
    ids.insert(record.id());
    ValidateRecord(record.json, policy, kRegistryFile, record.line, findings);
    EXPECT_EQ(TextAt(record.json, "status"), "incomplete");
    const bool from_page = TextAt(At(record.json, "provenance"), "origin") == "imported";
    EXPECT_EQ(from_page, !At(record.json, "imported_status").is_null());
    imported += from_page ? 1 : 0;
    for (const auto& [gate, verdicts] : At(record.json, "gates").items()) {
      EXPECT_TRUE(verdicts.is_null()) << gate;
    }
  }
  EXPECT_EQ(findings.errors() + findings.warnings(), 0);
  EXPECT_EQ(imported, 70);
  EXPECT_EQ(registry.records.size(), 80u);
  for (const Doc& id : At(policy, "required_ids")) {
    EXPECT_EQ(ids.count(id.get<std::string>()), 1u) << id;
  }
}

TEST_F(SeedImport, GapsSkipsAndRelationsAreTakenApart) {
  ASSERT_TRUE(ImportSeedPage(store_, Page(Seed(kPage))).ok());
  const Registry registry = Load();
  const auto gaps = [&](const char* id) {
    std::string out;
    for (const Doc& gap : At(registry.Find(id)->json, "missing")) {
      if (TextAt(gap, "why") == "not_applicable" || TextAt(gap, "pointer") == "/source/patch" ||
          TextAt(gap, "pointer") == "/baseline") {
        continue;
      }
      out += TextAt(gap, "pointer") + "=" + TextAt(gap, "what") + "(" + TextAt(gap, "why") + ") ";
    }
    return out;
  };
  EXPECT_EQ(gaps("backend-flashinfer"),
            "/source/digest=Adapter(not_run) /source/commit=version(unknown_historical) "
            "/gates/isolated=benchmark(not_run) /gates/correct=quality(not_run) ");
  EXPECT_EQ(gaps("sage-p0-narrow-scopes"),
            "/source/digest=Candidate source(unrecoverable) /source/commit=the commit of the "
            "origin's source(unknown_historical) ");
  EXPECT_NE(gaps("layout-swizzle-all").find("/variants=Enumeration(not_enumerated)"),
            std::string::npos);
  const Doc& prototype = registry.Find("vortex-exact-phase2b-aligned-prototype")->json;
  EXPECT_EQ(TextAt(At(prototype, "missing")[2], "what"), "resident-service and production gates");

  int64_t skips = 0;
  for (const Record& record : registry.records) skips += At(record.json, "skipped").empty() ? 0 : 1;
  EXPECT_EQ(skips, 6);
  const Doc& skipped = At(registry.Find("sage2-p2-direct-v-preparation-final")->json, "skipped");
  ASSERT_EQ(skipped.size(), 2u);
  EXPECT_EQ(TextAt(skipped[0], "gate"), "block");
  EXPECT_EQ(TextAt(skipped[0], "because_gate"), "isolated");
  EXPECT_EQ(TextAt(skipped[1], "gate"), "trajectory");
  const Doc& relations = At(registry.Find("qkv-to-sage-fused")->json, "relations");
  EXPECT_EQ(TextAt(relations, "duplicate_of"), "sage2-p1-entry-fusion-final");
  EXPECT_EQ(At(registry.Find("vortex-exact-phase2b-spill-variants")->json, "variants").size(), 5u);
}

TEST_F(SeedImport, TheLogBecomesEntriesAndItsTableClosesWork) {
  ASSERT_TRUE(ImportSeedPage(store_, Page(Seed(kPage))).ok());
  ASSERT_TRUE(ImportSeedLog(store_, Seed(kLongLog), kLongLog).ok());
  Findings findings;
  const Log log = LoadLog(store_, findings).value();
  EXPECT_EQ(findings.errors() + findings.warnings(), 0);
  std::map<std::string, int64_t> kinds;
  for (const LogEntry& entry : log.entries) ++kinds[TextAt(entry.json, "kind")];
  EXPECT_EQ(kinds, (std::map<std::string, int64_t>{
                       {"genesis", 1}, {"import", 6}, {"entry", 1}, {"close", 11}}));
  const Registry registry = Load();
  int64_t closed = 0;
  for (const Record& record : registry.records) {
    const Doc& rule = At(record.json, "closed");
    if (rule.is_null()) continue;
    ++closed;
    const LogEntry& entry = log.entries.at(static_cast<size_t>(IntAt(rule, "log_seq") - 1));
    EXPECT_EQ(TextAt(entry.json, "kind"), "close");
    EXPECT_EQ(TextAt(At(entry.json, "records")[0], "id"), record.id());
    EXPECT_EQ(TextAt(At(entry.json, "records")[0], "after"), TextAt(record.json, "record_digest"));
  }
  EXPECT_EQ(closed, 11);
  EXPECT_EQ(
      TextAt(At(At(registry.Find("wgmma-hopper-retarget")->json, "closed"), "reopen"), "auto"),
      "toolchain");
  const Doc& phase0 = log.entries[3].json;
  EXPECT_EQ(TextAt(phase0, "status"), "research_retained");
  EXPECT_EQ(At(phase0, "actions").size(), 5u);
  EXPECT_EQ(TextAt(At(phase0, "document"), "sha256"),
            "ed61f2d3697b1d045b45c8bd6100b84445e32eb9399b8cc7dc53ba11b36ed04a");
  EXPECT_TRUE(TextAt(phase0, "hypothesis").starts_with("the retained Sage inventory"));
}

TEST_F(SeedImport, ASecondImportChangesNothing) {
  ASSERT_TRUE(ImportSeedPage(store_, Page(Seed(kPage))).ok());
  ASSERT_TRUE(ImportSeedLog(store_, Seed(kLongLog), kLongLog).ok());
  const std::string log = LogText();
  EXPECT_EQ(ImportSeedPage(store_, Page(Seed(kPage))).value(), 2);
  EXPECT_EQ(ImportSeedLog(store_, Seed(kLongLog), kLongLog).value(), 19);
  EXPECT_EQ(LogText(), log);
}

TEST_F(SeedImport, WhatHasNoPlaceIsRefusedBeforeAnythingIsWritten) {
  const auto refused = [&](const std::string& text) {
    const absl::Status status = ImportSeedPage(store_, Page(text)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_FALSE(fs::exists(store_.PathOf(kRegistryFile)));
  };
  refused("no page at all");
  refused(Replaced(Seed(kPage), "`gemm-persistent`", "`gemm-unheard-of`"));
  refused(Replaced(Seed(kPage), "`gemm-persistent`", "`gemm-warp-specialized`"));  // twice
  EXPECT_FALSE(ImportSeedPage(store_, Page(Replaced(Seed(kPage), "| `production_accepted` | Exact",
                                                    "| `accepted` | Exact")))
                   .ok());
  ASSERT_TRUE(ImportSeedPage(store_, Page(Seed(kPage))).ok());
  const std::string log = LogText();
  EXPECT_FALSE(
      ImportSeedLog(store_, Replaced(Seed(kLongLog), "P0 score aliasing", "P9"), kLongLog).ok());
  EXPECT_FALSE(ImportSeedLog(store_, "nothing", kLongLog).ok());
  EXPECT_EQ(LogText(), log);
}

TEST_F(SeedImport, AnInventoryThatCannotBeReadIsAnError) {
  for (const char* text : {"{", "[]", "{\"schema\":\"lab.other/1\"}", "{\"records\":3}"}) {
    ASSERT_TRUE(WriteFileAtomically(store_.PathOf(kSeedInventoryFile), text).ok());
    EXPECT_FALSE(ImportSeedPage(store_, Page(Seed(kPage))).ok()) << text;
  }
  // Words of the wrong types are refused by the form of records.
  ASSERT_TRUE(
      WriteFileAtomically(store_.PathOf(kSeedInventoryFile),
                          "{\"schema\":\"lab.seed_inventory/1\",\"gap_words\":3,\"records\":"
                          "{\"gemm-persistent\":{\"group\":7,\"variants\":[1],\"relations\":[2]}}}")
          .ok());
  const std::string one =
      "## Complete Registry\n| a |\n| --- |\n"
      "| `gemm-persistent` | A | `incomplete` | B | C | D |\n## Totals\n";
  EXPECT_FALSE(ImportSeedPage(store_, Page(one)).ok());
  EXPECT_FALSE(fs::exists(store_.PathOf(kRegistryFile)));
}

TEST(SeedImported, TheCommittedRegistryNamesEveryRowOfThePage) {
  const Store store{H3RT_SOURCE_DIR};
  Findings findings;
  const std::optional<Registry> registry = LoadRegistry(store, findings);
  ASSERT_TRUE(registry.has_value());
  const SeedPage page = ParseSeedPage(Seed(kPage), kPage, findings);
  for (const SeedRow& row : page.rows) {
    const Record* record = registry->Find(row.id);
    ASSERT_NE(record, nullptr) << row.id;
    EXPECT_EQ(TextAt(record->json, "imported_status"), row.status) << row.id;
    EXPECT_EQ(TextAt(record->json, "name"), row.name);
  }
}

}  // namespace
}  // namespace h3rt::lab
