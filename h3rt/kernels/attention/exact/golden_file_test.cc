// Reading golden indices: the project's own, and malformed ones.
#include "h3rt/kernels/attention/exact/golden_file.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "h3rt/base/json.h"

namespace h3rt {
namespace {

TEST(GoldenFileTest, OwnIndex) {
  const absl::StatusOr<GoldenIndex> index = ReadGoldenIndex(H3RT_TEST_DATA "/sage2/index.json");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->device, "NVIDIA H200");
  ASSERT_EQ(index->cases.size(), 18u);
  EXPECT_EQ(index->Find("nothing"), nullptr);
  const GoldenCase* const canonical = index->Find("canonical_h3_37808");
  ASSERT_NE(canonical, nullptr);
  EXPECT_EQ(canonical->section, "public_hash");
  EXPECT_EQ(canonical->inputs.q_len, 37808);
  EXPECT_EQ(canonical->inputs.k_heads, 56);
  EXPECT_EQ(canonical->inputs.seed, 440420u);
  EXPECT_EQ(canonical->inputs.bias, 3.0);
  EXPECT_FALSE(canonical->outputs[0].rel_l2.has_value());
  EXPECT_EQ(canonical->prepared.count("sm90.per_warp.k_int8"), 1u);
  const GoldenCase* const flat = index->Find("flat_384");
  EXPECT_TRUE(flat->inputs.flat);
  EXPECT_EQ(index->Find("nobias_300")->inputs.bias, 0.0);
  EXPECT_EQ(index->Find("fp16_192")->inputs.type, ExactType::kF16);
  EXPECT_TRUE(index->Find("causal_256")->causal);
  for (const GoldenCase& golden : index->cases) {
    std::set<std::pair<ExactPath, ExactGranularity>> kinds;
    for (const GoldenOutput& output : golden.outputs) {
      kinds.insert({output.path, output.granularity});
      EXPECT_EQ(output.key, GoldenKey(output.path, output.granularity));
      EXPECT_EQ(output.per_head_sha256.size(), static_cast<size_t>(golden.inputs.q_heads));
    }
    EXPECT_EQ(kinds.size(), 8u) << golden.name;
  }
}

TEST(GoldenFileTest, ProblemIsDenseNhdWithTheLibrarysDefaults) {
  const GoldenIndex index = ReadGoldenIndex(H3RT_TEST_DATA "/sage2/index.json").value();
  const ExactProblem p =
      GoldenProblem(*index.Find("gqa_160"), ExactPath::kA1, ExactGranularity::kPerThread);
  EXPECT_EQ(p.path, ExactPath::kA1);
  EXPECT_EQ(p.granularity, ExactGranularity::kPerThread);
  EXPECT_EQ(p.q.row_stride, 4 * 128);
  EXPECT_EQ(p.k.row_stride, 2 * 128);
  EXPECT_EQ(p.k.batch_stride, 160 * 2 * 128);
  EXPECT_EQ(p.o.head_stride, 128);
  EXPECT_TRUE(p.smooth_k);
  EXPECT_EQ(p.sm_scale, 0.08838834764831845f);
}

const char* const kMinimal = R"({"device": "d", "cases": {"s": [{"name": "one", "seed": 1, "B": 1,
 "Nq": 2, "Nk": 3, "Hq": 2, "Hk": 1, "D": 64, "causal": false, "dtype": "bf16", "new": [],
 "q_sha256": "H", "k_sha256": "H", "v_sha256": "H", "k_mean_sha256": "H",
 "sm89.per_warp.q_int8_sha256": "H", "out": {"sm89.fp32.per_warp": {"o_sha256": "H",
 "lse_sha256": "H", "lse_raw_sha256": "H", "per_head_sha256": ["H", "H"],
 "rel_l2_vs_f32": 0.5}}}]}})";

Json Minimal() {
  std::string text = kMinimal;
  for (size_t at = 0; (at = text.find("\"H\"", at)) != text.npos;) {
    text.replace(at, 3, "\"" + std::string(64, 'a') + "\"");
  }
  return ParseJson(text, "test").value();
}

TEST(GoldenFileTest, Minimal) {
  const absl::StatusOr<GoldenIndex> index = ParseGoldenIndex(Minimal().dump(), "test");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->cases.at(0).outputs.at(0).rel_l2, 0.5);
  EXPECT_EQ(index->cases.at(0).prepared.at("sm89.per_warp.q_int8"), std::string(64, 'a'));
}

// The message names the key and, once it is known, the case.
template <typename Change>
void ExpectRefused(const std::string& named, const Change& change) {
  SCOPED_TRACE(named);
  Json json = Minimal();
  change(json, json["cases"]["s"][0]);
  const absl::Status status = ParseGoldenIndex(json.dump(), "index.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find(named), std::string::npos) << status;
  EXPECT_NE(status.message().find("index.json"), std::string::npos) << status;
}

TEST(GoldenFileTest, Malformed) {
  for (const char* key : {"name", "seed", "B", "Nq", "Nk", "Hq", "Hk", "D", "causal", "dtype",
                          "q_sha256", "k_sha256", "v_sha256", "k_mean_sha256", "out"}) {
    ExpectRefused(key, [&](Json&, Json& c) { c.erase(key); });
    ExpectRefused(key, [&](Json&, Json& c) { c[key] = Json::array(); });
  }
  for (const char* key : {"B", "Nq", "Nk", "Hq", "Hk", "D"}) {
    ExpectRefused(key, [&](Json&, Json& c) { c[key] = 0; });
    ExpectRefused(key, [&](Json&, Json& c) { c[key] = -1; });
    ExpectRefused(key, [&](Json&, Json& c) { c[key] = (int64_t{1} << 31) + 1; });
    ExpectRefused(key, [&](Json&, Json& c) { c[key] = 1.5; });
    ExpectRefused(key, [&](Json&, Json& c) { c[key] = 18446744073709551615ull; });
  }
  ExpectRefused("elements of q", [](Json&, Json& c) {
    for (const char* key : {"B", "Nq", "Hq", "D"}) c[key] = int64_t{1} << 31;
  });
  ExpectRefused("elements of k", [](Json&, Json& c) {
    c["Nk"] = int64_t{1} << 31;
    c["D"] = 1024;
  });
  ExpectRefused("a multiple of Hk", [](Json&, Json& c) { c["Hk"] = 3; });
  ExpectRefused("fp8", [](Json&, Json& c) { c["dtype"] = "fp8"; });
  ExpectRefused("bias", [](Json&, Json& c) { c["bias"] = "3"; });
  ExpectRefused("flat", [](Json&, Json& c) { c["flat"] = 1; });
  ExpectRefused("hex digits", [](Json&, Json& c) { c["q_sha256"] = std::string(64, 'A'); });
  ExpectRefused("q_int8", [](Json&, Json& c) { c["sm89.per_warp.q_int8_sha256"] = 5; });
  ExpectRefused("sm80", [](Json&, Json& c) { c["out"]["sm80.fp32.per_warp"] = Json::object(); });
  for (const char* key : {"o_sha256", "lse_sha256", "lse_raw_sha256", "per_head_sha256"}) {
    ExpectRefused(key, [&](Json&, Json& c) { c["out"]["sm89.fp32.per_warp"].erase(key); });
    ExpectRefused(key, [&](Json&, Json& c) { c["out"]["sm89.fp32.per_warp"][key] = "x"; });
  }
  ExpectRefused("list of 2 hashes",
                [](Json&, Json& c) { c["out"]["sm89.fp32.per_warp"]["per_head_sha256"].erase(0); });
  ExpectRefused("per_head_sha256", [](Json&, Json& c) {
    c["out"]["sm89.fp32.per_warp"]["per_head_sha256"][1] = nullptr;
  });
  ExpectRefused("rel_l2",
                [](Json&, Json& c) { c["out"]["sm89.fp32.per_warp"]["rel_l2_vs_f32"] = "0"; });
  ExpectRefused("rel_l2",
                [](Json&, Json& c) { c["out"]["sm89.fp32.per_warp"]["rel_l2_vs_f32"] = -1; });
  for (const std::string& name : {std::string(), std::string("../x"), std::string("a/b"),
                                  std::string("a\nb\x1b[31m"), std::string(81, 'x')}) {
    ExpectRefused("name", [&](Json&, Json& c) { c["name"] = name; });
  }
  ExpectRefused("elements of q", [](Json&, Json& c) {
    c["Nq"] = int64_t{1} << 31;
    c["D"] = 8;
  });
  ExpectRefused("one_head", [](Json&, Json& c) {
    c["name"] = "one_head";
    c["out"] = 3;
  });
  ExpectRefused("two cases", [](Json& j, Json& c) { j["cases"]["t"] = Json::array({c}); });
  ExpectRefused("cases", [](Json& j, Json&) { j["cases"] = Json::array(); });
  ExpectRefused("cases", [](Json& j, Json&) { j.erase("cases"); });
  ExpectRefused("cases.t", [](Json& j, Json&) { j["cases"]["t"] = 1; });
  ExpectRefused("device", [](Json& j, Json&) { j.erase("device"); });
  ExpectRefused("not an object", [](Json& j, Json&) { j["cases"]["t"] = Json::array({1}); });
}

TEST(GoldenFileTest, NotJsonAndNoFile) {
  EXPECT_EQ(ParseGoldenIndex("{", "x").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(ParseGoldenIndex("[]", "x").ok());
  EXPECT_EQ(ReadGoldenIndex(H3RT_TEST_DATA "/sage2/none.json").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace h3rt
