// Generated inputs against the hashes of the golden index.
#include "h3rt/kernels/attention/exact/inputs.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "h3rt/base/hash.h"
#include "h3rt/kernels/attention/exact/golden_file.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

std::string Hash(const std::vector<uint16_t>& values) {
  return Sha256Hex(std::as_bytes(std::span(values)));
}

TEST(ExactInputsTest, HashesOfTheIndexUpTo4097Tokens) {
  const GoldenIndex index = ReadGoldenIndex(H3RT_TEST_DATA "/sage2/index.json").value();
  int cases = 0;
  for (const GoldenCase& golden : index.cases) {
    if (golden.inputs.q_len > 5000) continue;
    SCOPED_TRACE(golden.name);
    const ExactInputs in = MakeExactInputs(golden.inputs, 2);
    EXPECT_EQ(Hash(in.q), golden.q_sha256);
    EXPECT_EQ(Hash(in.k), golden.k_sha256);
    EXPECT_EQ(Hash(in.v), golden.v_sha256);
    ++cases;
  }
  EXPECT_EQ(cases, 17);
}

TEST(ExactInputsTest, ThreadsDoNotMatterAndSeedsDo) {
  ExactInputSpec spec;
  spec.batch = 3;
  spec.q_len = 7;
  spec.k_len = 333;
  spec.q_heads = 4;
  spec.k_heads = 2;
  spec.head_dim = 40;
  spec.type = ExactType::kF16;
  const ExactInputs one = MakeExactInputs(spec, 1);
  const ExactInputs many = MakeExactInputs(spec, 13);
  EXPECT_EQ(one.q.size(), 3u * 7 * 4 * 40);
  EXPECT_EQ(one.k.size(), 3u * 333 * 2 * 40);
  EXPECT_EQ(one.v.size(), one.k.size());
  EXPECT_EQ(one.q, many.q);
  EXPECT_EQ(one.k, many.k);
  EXPECT_EQ(one.v, many.v);
  spec.seed = 1;
  EXPECT_NE(MakeExactInputs(spec).v, one.v);
}

// The formula at one place, in integers.
TEST(ExactInputsTest, OneElementByHand) {
  ExactInputSpec spec;
  spec.q_len = spec.k_len = 1;
  spec.head_dim = 2;
  uint64_t z =
      1 * 0xd1b54a32d192ed03ull + 1 * 0x9e3779b97f4a7c15ull;  // seed 0, stream k, element 1
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  double k = -131070;
  for (int i = 0; i < 4; ++i) k += static_cast<double>(z >> (16 * i) & 0xffff);
  spec.bias = 0.0;
  EXPECT_EQ(MakeExactInputs(spec).k[1], FloatToBf16(static_cast<float>(k / 32768)));
}

TEST(ExactInputsTest, NoElements) {
  ExactInputSpec spec;
  spec.q_len = 3;
  const ExactInputs in = MakeExactInputs(spec, 4);
  EXPECT_EQ(in.q.size(), 384u);
  EXPECT_TRUE(in.k.empty());
  EXPECT_TRUE(in.v.empty());
}

}  // namespace
}  // namespace h3rt
