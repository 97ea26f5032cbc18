#include <gtest/gtest.h>

#include "h3rt/imports/import.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/lab/gate.h"
#include "h3rt/lab/lab.h"
#include "h3rt/lab/test_store.h"

namespace h3rt::lab {
namespace {

Evidence LastEvidence(const TestStore& store, const std::string& id) {
  Findings findings;
  const Doc cited = store.Get(id)["evidence"].back();
  return LoadEvidence(store.store, findings).at(cited["sha256"].get<std::string>());
}

StatusView ViewOf(const TestStore& store, const std::string& id, const std::string& status) {
  const Lab lab = OpenLab(store.store).value();
  for (const StatusView& view : PermittedStatuses(lab.CaseOf(lab.registry.Find(id)->json))) {
    if (view.status == status) return view;
  }
  return {};
}

TEST(ImportFixture, EveryTensorOfTheFolderIsNamedWithTheHashOfItsBytes) {
  const TestStore store;
  const std::string folder = FreshFolder("fixture");
  const std::vector<float> a = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  const std::string bytes(reinterpret_cast<const char*>(a.data()), 24);
  const auto* const data = reinterpret_cast<const std::byte*>(a.data());
  ASSERT_TRUE(WriteSafetensors(folder + "/one.safetensors",
                               {{"a", ConstTensorView(data, DType::kF32, h3rt::Shape({2, 3}))},
                                {"b", ConstTensorView(data, DType::kF32, h3rt::Shape({1}))}})
                  .ok());
  Findings findings;
  const auto seq = ImportFixture(store.store, folder, "beta-two", findings);
  ASSERT_TRUE(seq.ok()) << seq.status() << TextOf(findings);
  EXPECT_GT(*seq, 0);
  const Doc envelope = LastEvidence(store, "beta-two").json;
  EXPECT_EQ(envelope["kind"], "fixture");
  EXPECT_EQ(envelope["origin"], "inspected");
  const Doc& body = envelope["body"];
  EXPECT_EQ(body["reload_ok"], true);
  ASSERT_EQ(body["tensors"].size(), 2u);
  EXPECT_EQ(
      body["tensors"][0],
      (Doc{{"name", "a"}, {"dtype", "F32"}, {"shape", {2, 3}}, {"sha256", DigestOfText(bytes)}}));
  EXPECT_EQ(body["tensors"][1]["sha256"], DigestOfText(bytes.substr(0, 4)));
  EXPECT_EQ(store.Check().errors(), 0) << TextOf(store.Check());
  // The same once more is nothing new.
  EXPECT_EQ(ImportFixture(store.store, folder, "beta-two", findings).value(), -1);
}

TEST(ImportFixture, FoldersWithoutWholeTensorsAndUnknownRecordsAreRefused) {
  const TestStore store;
  const std::string folder = FreshFolder("fixture");
  Findings findings;
  EXPECT_EQ(ImportFixture(store.store, folder, "beta-two", findings).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(ImportFixture(store.store, folder + "/none", "beta-two", findings).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/torn.safetensors", "12345678{").ok());
  EXPECT_EQ(ImportFixture(store.store, folder, "beta-two", findings).status().code(),
            absl::StatusCode::kDataLoss);
  std::filesystem::remove(folder + "/torn.safetensors");
  ASSERT_TRUE(WriteSafetensors(folder + "/none.safetensors", {}).ok());
  EXPECT_FALSE(ImportFixture(store.store, folder, "gamma-three", findings).ok());
  EXPECT_TRUE(findings.Has("E-BUNDLE"));
}

TEST(ImportInspection, ADocumentCarriesARejectionUntilItChanges) {
  const TestStore store;
  store.Write("research/note.md", "It crosses the boundary.\n");
  store.Change1("beta-two", [](Doc& record) { record["decision"]["log_seq"] = 1; });
  EXPECT_FALSE(ViewOf(store, "beta-two", "architecture_rejected").permitted);
  Findings findings;
  const auto seq = ImportInspection(store.store,
                                    {.document = "research/note.md",
                                     .experiment = "beta-two",
                                     .rule = "one writer",
                                     .boundary = ""},
                                    findings);
  ASSERT_TRUE(seq.ok()) << seq.status() << TextOf(findings);
  const Evidence evidence = LastEvidence(store, "beta-two");
  EXPECT_EQ(evidence.json["origin"], "inspected");
  EXPECT_EQ(evidence.json["body"]["rule"], "one writer");
  EXPECT_TRUE(evidence.json["body"]["boundary"].is_null());
  EXPECT_EQ(evidence.json["body"]["document_sha256"], DigestOfText("It crosses the boundary.\n"));
  EXPECT_EQ(store.Get("beta-two")["evidence"].back()["role"], "result");
  EXPECT_EQ(store.Check().errors(), 0) << TextOf(store.Check());
  EXPECT_FALSE(FreshnessOf(store.store, evidence, store.policy).stale);
  const StatusView carried = ViewOf(store, "beta-two", "architecture_rejected");
  EXPECT_TRUE(carried.permitted) << carried.first_missing;
  store.Write("research/note.md", "It does not.\n");
  EXPECT_TRUE(FreshnessOf(store.store, evidence, store.policy).stale);
  EXPECT_FALSE(ViewOf(store, "beta-two", "architecture_rejected").permitted);
}

TEST(ImportInspection, WithoutARuleOrADocumentOfTheTreeNothingIsTaken) {
  const TestStore store;
  store.Write("research/note.md", "text\n");
  const size_t before = store.Get("beta-two")["evidence"].size();
  for (const InspectionRequest& request :
       std::vector<InspectionRequest>{{"research/note.md", "beta-two", "", ""},
                                      {"research/none.md", "beta-two", "rule", ""},
                                      {"../note.md", "beta-two", "rule", ""},
                                      {"/etc/hostname", "beta-two", "rule", ""},
                                      {"research/note.md", "gamma-three", "rule", ""}}) {
    Findings findings;
    EXPECT_FALSE(ImportInspection(store.store, request, findings).ok()) << request.document;
  }
  EXPECT_EQ(store.Get("beta-two")["evidence"].size(), before);
}

}  // namespace
}  // namespace h3rt::lab
