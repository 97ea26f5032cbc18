#include <gtest/gtest.h>

#include "h3rt/imports/import.h"
#include "h3rt/lab/test_store.h"

namespace h3rt::lab {
namespace {

// What a store holds, to see that nothing was written.
std::map<std::string, std::string> Contents(const Store& store) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store.root)) {
    if (entry.is_regular_file() && entry.path().filename() != "LOCK") {
      files[entry.path().string()] = ReadFile(entry.path().string()).value();
    }
  }
  return files;
}

class Bundles : public ::testing::Test {
 protected:
  Bundles() {
    store_.Change1("beta-two", [](Doc& record) {
      record["variants"] = {{{"vid", "fast"},
                             {"params", Doc::object()},
                             {"source_digest", nullptr},
                             {"note", nullptr}}};
    });
  }
  NewEvidence Piece(const std::string& id = "beta-two") {
    NewEvidence piece{TestEnvelope(store_.store, id), {{"compile.log", "it compiled\n"}}};
    return piece;
  }
  absl::StatusOr<BundleResult> Import(const std::string& bytes) {
    findings_ = Findings();
    return ImportBundle(store_.store, bytes, "b.bundle", findings_);
  }
  // Refused with E-BUNDLE, and the store is what it was.
  void ExpectRefused(const std::string& bytes, const std::string& why) {
    const auto before = Contents(store_.store);
    const absl::StatusOr<BundleResult> result = Import(bytes);
    EXPECT_FALSE(result.ok()) << why;
    EXPECT_TRUE(findings_.Has("E-BUNDLE")) << why;
    EXPECT_EQ(findings_.exit_code(), ExitCode::kDataLoss);
    EXPECT_NE(TextOf(findings_).find(why), std::string::npos) << why << "\n" << TextOf(findings_);
    EXPECT_TRUE(Contents(store_.store) == before) << why;
  }
  TestStore store_;
  Findings findings_;
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// A bundle of one entry with a right digest.
std::string OneEntry(const std::string& content, const std::string& name) {
  return "h3rt-lab-bundle/1\n" +
         CanonicalText(
             {{"entries",
               {{{"bytes", content.size()}, {"name", name}, {"sha256", DigestOfText(content)}}}}}) +
         "\n" + content;
}

TEST_F(Bundles, EvidenceIsTakenInOnceAndTheSecondImportChangesNothing) {
  NewEvidence fast = Piece();
  fast.envelope["vid"] = "fast";
  const std::string bytes = PackBundle({Piece(), fast}).value();
  const auto first = Import(bytes);
  ASSERT_TRUE(first.ok()) << first.status() << TextOf(findings_);
  EXPECT_EQ(first->added, 2);
  EXPECT_EQ(first->present, 0);
  EXPECT_GT(first->log_seq, 0);
  EXPECT_EQ(first->experiments, std::vector<std::string>{"beta-two"});
  const Doc record = store_.Get("beta-two");
  ASSERT_EQ(record["evidence"].size(), 2u);
  EXPECT_EQ(record["evidence"][0]["role"], "result");
  EXPECT_EQ(record["variants"].size(), 1u);
  EXPECT_EQ(store_.Check().errors(), 0) << TextOf(store_.Check());

  const auto before = Contents(store_.store);
  const auto second = Import(bytes);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->added, 0);
  EXPECT_EQ(second->present, 2);
  EXPECT_EQ(second->digests, first->digests);
  EXPECT_TRUE(Contents(store_.store) == before);
}

// Only the candidate of an experiment may carry its gates; another variant is there to be looked
// at.
TEST_F(Bundles, AVariantThatIsNotTheCandidateOnlyScreens) {
  constexpr char kId[] = "elem-fused-residual-rmsnorm";
  ASSERT_TRUE(store_.Put(EmptyEntry("entry", "A record"), {TestRecord(kId)}).ok());
  NewEvidence candidate = Piece(kId);
  candidate.envelope["vid"] = "fused";
  NewEvidence other = Piece(kId);
  other.envelope["vid"] = "fused_resident";
  ASSERT_TRUE(Import(PackBundle({candidate, other}).value()).ok()) << TextOf(findings_);
  std::map<std::string, std::string> roles;
  const Doc record = store_.Get(kId);
  for (const Doc& cited : record["evidence"]) roles[TextAt(cited, "vid")] = TextAt(cited, "role");
  EXPECT_EQ(roles["fused"], "result");
  EXPECT_EQ(roles["fused_resident"], "screen");
}

TEST_F(Bundles, PackingIsDeterministicAndReadsBackWhatWasPacked) {
  const std::string bytes = PackBundle({Piece()}).value();
  EXPECT_EQ(bytes, PackBundle({Piece()}).value());
  const auto evidence = ParseBundle(bytes, "b", findings_);
  ASSERT_TRUE(evidence.has_value()) << TextOf(findings_);
  ASSERT_EQ(evidence->size(), 1u);
  const Doc& blob = (*evidence)[0].envelope["blobs"][0];
  EXPECT_EQ(Inflate((*evidence)[0].blobs.at("compile.log"),
                    static_cast<uint64_t>(IntAt(blob, "raw_bytes")))
                .value(),
            "it compiled\n");
}

TEST_F(Bundles, AFlippedByteAnywhereIsFound) {
  const std::string bytes = PackBundle({Piece()}).value();
  for (size_t i = 0; i < bytes.size(); i += i < 400 ? 1 : 13) {
    std::string spoilt = bytes;
    spoilt[i] = static_cast<char>(spoilt[i] ^ 1);
    Findings findings;
    EXPECT_FALSE(ParseBundle(spoilt, "b", findings).has_value()) << i;
    EXPECT_TRUE(findings.Has("E-BUNDLE")) << i;
  }
}

TEST_F(Bundles, CutAddedAndMissingBytesAreRefused) {
  const std::string bytes = PackBundle({Piece()}).value();
  for (size_t n = 0; n < bytes.size(); n += 29) {
    Findings findings;
    EXPECT_FALSE(ParseBundle(bytes.substr(0, n), "b", findings).has_value()) << n;
    EXPECT_TRUE(findings.Has("E-BUNDLE")) << n;
  }
  ExpectRefused(bytes + "x", "1 bytes after the last entry");
  ExpectRefused("", "first line");
  ExpectRefused("h3rt-lab-bundle/1\n", "no index");
  ExpectRefused("h3rt-lab-bundle/1\n{\"entries\":[]}\n", "no evidence in it");
  ExpectRefused(Replaced(bytes, "bundle/1", "bundle/2"), "first line");
}

TEST_F(Bundles, NamesThatLeaveTheStoreAreRefused) {
  const std::string digest = DigestOfText("x");
  for (const std::string& name :
       {std::string("../../x.json"), "/" + digest + ".json", digest + "/../x.json", digest + ".exe",
        digest, std::string("x"), std::string()}) {
    ExpectRefused(OneEntry("x", name), "named by its digest");
  }
  ExpectRefused(OneEntry("x", DigestOfText("y") + ".z"), "its bytes have the digest");
  ExpectRefused(OneEntry("x", digest + ".z"), "no evidence names it");
  ExpectRefused(OneEntry("x", digest + ".json"), digest);
}

TEST_F(Bundles, AnEnvelopeWithoutItsFormIsRefused) {
  for (const char* key : {"kind", "subject", "body", "plan"}) {
    NewEvidence piece = Piece();
    piece.blobs.clear();
    piece.envelope.erase(key);
    const std::string text = CanonicalText(piece.envelope);
    ExpectRefused(OneEntry(text, DigestOfText(text) + ".json"), key);
  }
  const std::string spaced = " " + CanonicalText(Piece().envelope);
  ExpectRefused(OneEntry(spaced, DigestOfText(spaced) + ".json"), "not canonical");
}

TEST_F(Bundles, UnknownExperimentVariantAndPlanAreRefusedWhole) {
  ExpectRefused(PackBundle({Piece(), Piece("gamma-three")}).value(), "unknown experiment");
  NewEvidence other = Piece();
  other.envelope["vid"] = "slow";
  ExpectRefused(PackBundle({Piece(), other}).value(), "no variant");
  NewEvidence planned = Piece();
  planned.envelope["plan"] = {{"log_seq", 1},       {"entry_hash", std::string(64, 'a')},
                              {"gate", "isolated"}, {"processes", 6},
                              {"quads", 60},        {"min_gain_ppm", 10000},
                              {"min_abs_ns", 20000}};
  ExpectRefused(PackBundle({Piece(), planned}).value(), "plan");
}

TEST_F(Bundles, AKnownPlanIsTakenAndAnUnplannedTimingMayOnlyScreen) {
  Doc entry = EmptyEntry("plan", "A plan");
  const int64_t seq = store_.Put(entry, {}).value();
  Findings findings;
  const std::string hash = TextAt(LoadLog(store_.store, findings)->entries.back().json, "hash");
  NewEvidence planned = Piece();
  planned.envelope["plan"] = {{"log_seq", seq},     {"entry_hash", hash}, {"gate", "isolated"},
                              {"processes", 6},     {"quads", 60},        {"min_gain_ppm", 10000},
                              {"min_abs_ns", 20000}};
  EXPECT_TRUE(Import(PackBundle({planned}).value()).ok()) << TextOf(findings_);
  NewEvidence timing = Piece();
  timing.envelope["kind"] = "timing_single";
  timing.envelope["body"] = {{"arm", "fast"},
                             {"samples_blob", "compile.log"},
                             {"unit", "ns"},
                             {"mode", "batched"},
                             {"batch", 20},
                             {"timer", "event"},
                             {"tick_ns", 32},
                             {"warmups", 3},
                             {"statistics", Doc::object()}};
  ASSERT_TRUE(Import(PackBundle({timing}).value()).ok()) << TextOf(findings_);
  EXPECT_EQ(store_.Get("beta-two")["evidence"].back()["role"], "screen");
}

TEST_F(Bundles, OtherToolsLogsBecomeInspectionsThatNoGateCounts) {
  const std::string folder = std::string(H3RT_TEST_DATA) + "/lab/logs/";
  for (const auto& [form, name] :
       {std::pair<const char*, const char*>{"ptxas-log", "ptxas_two_targets.txt"},
        {"sanitizer-log", "racecheck_one_race.txt"},
        {"ncu-csv", "ncu_grouped.csv"}}) {
    const auto seq = ImportLogFile(store_.store, form, folder + name, "beta-two", findings_);
    ASSERT_TRUE(seq.ok()) << form << seq.status() << TextOf(findings_);
    EXPECT_GT(*seq, 0);
  }
  for (const Doc& cited : store_.Get("beta-two")["evidence"]) EXPECT_EQ(cited["role"], "reference");
  EXPECT_EQ(store_.Check().errors(), 0) << TextOf(store_.Check());
  EXPECT_EQ(findings_.errors(), 0);
  EXPECT_FALSE(
      ImportLogFile(store_.store, "ncu-csv", folder + "memcheck_clean.txt", "beta-two", findings_)
          .ok());
  EXPECT_TRUE(findings_.Has("E-NCU-NUM"));
  EXPECT_EQ(ImportLogFile(store_.store, "pdf", folder + "x", "beta-two", findings_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(Bundles, TheInventoryFindsWhatChangedIsGoneOrNew) {
  const std::string folder = FreshFolder("fixtures");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder + "/" + name).parent_path());
    ASSERT_TRUE(WriteFileAtomically(folder + "/" + name, text).ok());
  };
  write("a.bin", "one");
  write("sub/b.bin", "two");
  ASSERT_TRUE(ImportInventory(store_.store, folder).ok());
  const Doc inventory = Doc::parse(store_.Read(kInventoryFile));
  EXPECT_EQ(inventory["files"][1],
            (Doc{{"path", "sub/b.bin"}, {"bytes", 3}, {"sha256", DigestOfText("two")}}));
  Findings clean;
  VerifyInventory(store_.store, folder, clean);
  EXPECT_EQ(TextOf(clean), "");
  write("a.bin", "onE");
  std::filesystem::remove(folder + "/sub/b.bin");
  write("c.bin", "new");
  Findings findings;
  VerifyInventory(store_.store, folder, findings);
  EXPECT_EQ(findings.errors(), 3) << TextOf(findings);
  for (const char* code : {"E-ART-HASH", "E-ART-MISSING", "E-ART-FLAG"}) {
    EXPECT_TRUE(findings.Has(code)) << code;
  }
  EXPECT_FALSE(ImportInventory(store_.store, folder + "/none").ok());
  EXPECT_EQ(store_.Check().errors(), 0) << TextOf(store_.Check());
}

}  // namespace
}  // namespace h3rt::lab
