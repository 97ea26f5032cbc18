// The oracle's preparation against the bytes and hashes of the public library.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "h3rt/base/hash.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/kernels/attention/exact/golden_file.h"
#include "h3rt/kernels/attention/oracle/prepare_testing.h"

namespace h3rt {
namespace {

constexpr int64_t kLongest = 5000;  // tokens; the canonical case is the device's

const GoldenIndex& Index() {
  static const GoldenIndex index = ReadGoldenIndex(H3RT_TEST_DATA "/sage2/index.json").value();
  return index;
}

// Bytes of what preparation gives, by the keys of the golden files. q and k of this granularity and
// of the path's geometry, v of the path's maximum.
using Bytes = std::vector<std::byte>;
template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return Bytes(bytes.begin(), bytes.end());
}

std::map<std::string, Bytes> Prepare(const GoldenCase& golden, const ExactInputs& in,
                                     ExactPath path, ExactGranularity granularity,
                                     const OracleHardware& hardware) {
  ExactProblem p = GoldenProblem(golden, path, granularity);
  p.q.data = in.q.data();
  p.k.data = in.k.data();
  p.v.data = in.v.data();
  const OracleWorkspace w(p, hardware);
  EXPECT_TRUE(w.status.ok()) << w.status;
  const ExactPrepared& r = w.prepared;
  const int64_t dim = p.padded_dim();
  std::map<std::string, Bytes> out;
  out["k_mean"] = BytesOf(w.Copy(r.k_mean, w.sizes.k_mean));
  const std::string qk = std::string(path == ExactPath::kB ? "sm90." : "sm89.") +
                         (granularity == ExactGranularity::kPerWarp ? "per_warp." : "per_thread.");
  out[qk + "q_int8"] = BytesOf(PublicCodes(r.q8, p.batch, p.q_heads, p.q_len, dim));
  out[qk + "k_int8"] = BytesOf(PublicCodes(r.k8, p.batch, p.k_heads, p.k_len, dim));
  out[qk + "q_scale"] = BytesOf(w.Copy(r.q_scale, w.sizes.q_scale));
  out[qk + "k_scale"] = BytesOf(w.Copy(r.k_scale, w.sizes.k_scale));
  const std::string v = path == ExactPath::kA16 ? "v2.25." : "v448.0.";
  out[v + "v_fp8"] = BytesOf(PublicValueCodes(r.v8, p.batch, p.k_heads, p.k_len, dim));
  out[v + "v_scale"] = BytesOf(w.Copy(r.v_scale, w.sizes.v_scale));
  return out;
}

// Keys of a case whose hash is not the library's.
std::set<std::string> Differing(const GoldenCase& golden, const OracleHardware& hardware) {
  const ExactInputs in = MakeExactInputs(golden.inputs);
  std::set<std::string> out;
  std::set<std::string> compared;
  for (const ExactPath path : {ExactPath::kA16, ExactPath::kA32, ExactPath::kB}) {
    for (const auto& [key, bytes] :
         Prepare(golden, in, path, ExactGranularity::kPerWarp, hardware)) {
      const bool mean = key == "k_mean";
      if (!mean && golden.prepared.find(key) == golden.prepared.end()) {
        ADD_FAILURE() << golden.name << " has no hash of " << key;
        continue;
      }
      compared.insert(key);
      if (Sha256Hex(bytes) != (mean ? golden.k_mean_sha256 : golden.prepared.at(key))) {
        out.insert(golden.name + " " + key);
      }
    }
  }
  EXPECT_EQ(compared.size(), 13u);  // the mean; q and k twice, codes and scales; v twice
  EXPECT_EQ(golden.prepared.size(), 12u);
  return out;
}

TEST(OraclePrepareTest, EveryHashUpTo4097TokensIsTheLibrarys) {
  OracleHardware hardware;
  hardware.rcp = &H200Rcp;
  int cases = 0;
  for (const GoldenCase& golden : Index().cases) {
    if (golden.inputs.q_len > kLongest) continue;
    ++cases;
    EXPECT_EQ(Differing(golden, hardware), std::set<std::string>{});
  }
  EXPECT_EQ(cases, 17);
}

// Scales and means never depend on it; so many code tensors do, each by the last bit of MUFU.RCP.
TEST(OraclePrepareTest, WhatTheCorrectlyRoundedReciprocalWouldGiveOtherwise) {
  std::set<std::string> differing;
  for (const GoldenCase& golden : Index().cases) {
    if (golden.inputs.q_len <= kLongest) differing.merge(Differing(golden, {}));
  }
  std::set<std::string> expected;
  const std::pair<const char*, std::vector<const char*>> lists[] = {
      {"one_tile", {"v2.25.v_fp8", "v448.0.v_fp8"}},
      {"ragged_130", {"v2.25.v_fp8", "v448.0.v_fp8"}},
      {"d64_200", {"v2.25.v_fp8", "v448.0.v_fp8"}},
      {"batch2_100", {"v2.25.v_fp8", "v448.0.v_fp8"}},
      {"fp16_192", {"v2.25.v_fp8"}},
      {"gqa_160", {"v2.25.v_fp8", "v448.0.v_fp8", "sm89.per_warp.q_int8", "sm90.per_warp.q_int8"}},
      {"ragged_255",
       {"v2.25.v_fp8", "v448.0.v_fp8", "sm89.per_warp.k_int8", "sm90.per_warp.k_int8"}},
      {"causal_256",
       {"v2.25.v_fp8", "v448.0.v_fp8", "sm89.per_warp.k_int8", "sm90.per_warp.k_int8"}},
  };
  for (const auto& [name, keys] : lists) {
    for (const char* key : keys) expected.insert(std::string(name) + " " + key);
  }
  for (const char* name : {"ragged_1000", "tiles_4096", "ragged_4097", "causal_2049"}) {
    for (const char* key : {"v2.25.v_fp8", "sm89.per_warp.q_int8", "sm89.per_warp.k_int8",
                            "sm90.per_warp.q_int8", "sm90.per_warp.k_int8"}) {
      expected.insert(std::string(name) + " " + key);
    }
  }
  EXPECT_EQ(differing, expected);
}

// Every byte of the tensor `key` of the file; says the first that differs.
void ExpectTensor(const SafetensorsFile& file, const std::string& key, const Bytes& got) {
  const absl::StatusOr<ConstTensorView> wanted = file.Get(key);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  const auto& entry = file.entries().at(key);
  ASSERT_EQ(got.size(), entry.end - entry.begin) << key;
  const std::byte* const bytes = wanted->data();
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], bytes[i]) << key << ", byte " << i;
  }
}

TEST(OraclePrepareTest, BytesOfTheFiles) {
  OracleHardware hardware;
  hardware.rcp = &H200Rcp;
  for (const char* name : {"aligned_q128_kv192", "one_row", "d64_200"}) {
    SCOPED_TRACE(name);
    const SafetensorsFile file =
        SafetensorsFile::Open(std::string(H3RT_TEST_DATA "/sage2/") + name + ".safetensors")
            .value();
    const GoldenCase& golden = *Index().Find(name);
    const ExactInputs in = MakeExactInputs(golden.inputs);
    for (const ExactPath path : {ExactPath::kA16, ExactPath::kA32, ExactPath::kB}) {
      for (const auto& [key, bytes] :
           Prepare(golden, in, path, ExactGranularity::kPerWarp, hardware)) {
        ExpectTensor(file, key, bytes);
      }
    }
  }
}

TEST(OraclePrepareTest, BytesOfThePerThreadFile) {
  OracleHardware hardware;
  hardware.rcp = &H200Rcp;
  const SafetensorsFile file =
      SafetensorsFile::Open(H3RT_TEST_DATA "/sage2/per_thread_quant.safetensors").value();
  size_t compared = 0;
  for (const char* name : {"aligned_q128_kv192", "ragged_130", "d64_200"}) {
    SCOPED_TRACE(name);
    const GoldenCase& golden = *Index().Find(name);
    const ExactInputs in = MakeExactInputs(golden.inputs);
    for (const ExactPath path : {ExactPath::kA32, ExactPath::kB}) {
      for (const auto& [key, bytes] :
           Prepare(golden, in, path, ExactGranularity::kPerThread, hardware)) {
        if (key.find("per_thread") == key.npos) continue;
        ExpectTensor(file, std::string(name) + "." + key, bytes);
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, file.entries().size());
}

TEST(OraclePrepareTest, OneWrongSignIsSeen) {
  const GoldenCase& golden = *Index().Find("one_row");
  ExactInputs in = MakeExactInputs(golden.inputs);
  in.q[5] ^= 0x8000;
  const auto bytes =
      Prepare(golden, in, ExactPath::kB, ExactGranularity::kPerWarp, {.rcp = &H200Rcp});
  EXPECT_NE(
      Sha256Hex(bytes.at("sm90.per_warp.q_int8")) + Sha256Hex(bytes.at("sm90.per_warp.q_scale")),
      golden.prepared.at("sm90.per_warp.q_int8") + golden.prepared.at("sm90.per_warp.q_scale"));
  EXPECT_EQ(Sha256Hex(bytes.at("sm90.per_warp.k_int8")),
            golden.prepared.at("sm90.per_warp.k_int8"));
}

}  // namespace
}  // namespace h3rt
