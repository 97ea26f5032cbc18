#include "h3rt/harness/inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "h3rt/harness/gpu.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/statistics.h"

namespace h3rt::lab {
namespace {

using Type = ExperimentTensor::Type;
using Fill = ExperimentTensor::Fill;

ExperimentTensor Tensor(Type type, Fill fill, int64_t n, double scale = 1.0) {
  return {"t", type, ExperimentTensor::Role::kInput, {n}, fill, scale};
}

std::vector<std::byte> Made(const ExperimentTensor& tensor, size_t index = 0, uint64_t seed = 7) {
  std::vector<std::byte> held(static_cast<size_t>(ElementsOf(tensor) * ElementBytes(tensor.type)));
  GenerateInput(tensor, index, seed, held);
  return held;
}

std::vector<float> Floats(const ExperimentTensor& tensor) {
  const std::vector<std::byte> held = Made(tensor);
  std::vector<float> values(held.size() / 4);
  std::memcpy(values.data(), held.data(), held.size());
  return values;
}

TEST(Generator, DrawsAreSplitmix64AtAPlaceOfTheirOwn) {
  // The published generator, started at a stream's state: its n-th output is draw n - 1.
  const uint64_t state = InputState(7, 2);
  uint64_t running = state;
  for (int64_t i = 0; i < 5; ++i) {
    for (uint64_t which = 0; which < 4; ++which) {
      EXPECT_EQ(InputDraw(state, i, which), NextRandom(running));
    }
  }
}

TEST(Generator, NormalsHaveTheMomentsOfNormals) {
  const std::vector<float> values = Floats(Tensor(Type::kF32, Fill::kNormal, 1 << 20, 2.0));
  double mean = 0, squares = 0, fourths = 0;
  int64_t beyond_two = 0;
  for (const float v : values) {
    const double z = static_cast<double>(v) / 2.0;
    mean += z;
    squares += z * z;
    fourths += z * z * z * z;
    beyond_two += std::fabs(z) > 2.0 ? 1 : 0;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(mean / n, 0.0, 0.005);
  EXPECT_NEAR(squares / n, 1.0, 0.01);
  EXPECT_NEAR(fourths / n, 3.0 - 1.2 / 8, 0.03);  // of a sum of eight uniform numbers
  EXPECT_NEAR(static_cast<double>(beyond_two) / n, 0.0455, 0.003);
}

TEST(Generator, UniformsAndIntegersFillTheirRange) {
  for (const float v : Floats(Tensor(Type::kF32, Fill::kUniform, 10000, 3.0))) {
    ASSERT_LE(std::fabs(v), 3.0f);
  }
  const std::vector<std::byte> held = Made(Tensor(Type::kI32, Fill::kUniform, 10000, 2.0));
  std::set<int32_t> seen;
  for (size_t i = 0; i < held.size(); i += 4) {
    int32_t value = 0;
    std::memcpy(&value, &held[i], 4);
    seen.insert(value);
  }
  EXPECT_EQ(seen, (std::set<int32_t>{-2, -1, 0, 1, 2}));
}

TEST(Generator, EdgesHoldZerosOfBothSignsSubnormalsAndLargeValues) {
  const std::vector<std::byte> held = Made(Tensor(Type::kBf16, Fill::kEdge, 4096));
  int zeros = 0, minus_zeros = 0, subnormals = 0, large = 0, finite = 0;
  for (size_t i = 0; i < held.size(); i += 2) {
    uint16_t bits = 0;
    std::memcpy(&bits, &held[i], 2);
    const float value = Bf16ToFloat(bits);
    zeros += bits == 0 ? 1 : 0;
    minus_zeros += bits == 0x8000 ? 1 : 0;
    subnormals += (bits & 0x7f80) == 0 && (bits & 0x7f) != 0 ? 1 : 0;
    large += std::fabs(value) == 0x1p56f ? 1 : 0;
    finite += std::isfinite(value) ? 1 : 0;
  }
  EXPECT_EQ(finite, 4096);
  EXPECT_GT(zeros, 50);
  EXPECT_GT(minus_zeros, 50);
  EXPECT_GT(subnormals, 100);
  EXPECT_GT(large, 100);
}

TEST(Generator, SeedsTensorsAndElementsDiffer) {
  const ExperimentTensor tensor = Tensor(Type::kBf16, Fill::kNormal, 1000);
  EXPECT_EQ(Made(tensor), Made(tensor));
  EXPECT_NE(Made(tensor, 0), Made(tensor, 1));
  EXPECT_NE(Made(tensor, 0, 7), Made(tensor, 0, 8));
  // A part of a longer tensor is the same, whatever the threads.
  const std::vector<std::byte> whole = Made(Tensor(Type::kBf16, Fill::kNormal, 3000000));
  EXPECT_TRUE(std::equal(whole.begin(), whole.begin() + 2000, Made(tensor).begin()));
}

TEST(Generator, DigestsOfTheFirstExperimentAreThoseOfItsInputs) {
  const Experiment* experiment = FindExperiment("elem-fused-residual-rmsnorm");
  ASSERT_NE(experiment, nullptr);
  const ExperimentWorkload& toy = experiment->workloads[0];
  const auto digests = InputDigests(*experiment, toy);
  ASSERT_TRUE(digests.ok());
  ASSERT_EQ(digests->size(), 3u);  // x, r, w
  for (const auto& [name, digest] : digests->items())
    EXPECT_TRUE(IsDigest(digest.get<std::string>())) << name;
  EXPECT_NE((*digests)["x"], (*digests)["r"]);
  // Fixed for ever: another value means another generator, which needs another name.
  EXPECT_EQ((*digests)["w"], "345f6749ee2332af82be3f74d72384a275a1ebfbc607ecb7317dc6257b8992c9");
}

TEST(Generator, TermsOfTheOutputDigestDependOnWordAndPlace) {
  EXPECT_NE(DigestTerm(1, 0), DigestTerm(0, 0));
  EXPECT_NE(DigestTerm(1, 0) + DigestTerm(2, 1), DigestTerm(2, 0) + DigestTerm(1, 1));
}

TEST(Comparator, SeesEveryPlantedDifference) {
  const Doc result = ComparatorSelfTest();
  EXPECT_EQ(result.size(), 4u);
  for (const auto& [what, seen] : result.items()) EXPECT_EQ(seen, true) << what;
}

TEST(Comparator, MeasuresAreThoseOfTheDefinitions) {
  const std::vector<float> expected = {3.0f, -4.0f, 0.0f, 0.0f};
  std::vector<float> actual = expected;
  const auto compare = [&] {
    return CompareOutputs(Type::kF32, std::as_bytes(std::span(actual)),
                          std::as_bytes(std::span(actual)), std::as_bytes(std::span(expected)),
                          0xff, 0x5a);
  };
  EXPECT_EQ(compare().mismatches, 0);
  EXPECT_EQ(compare().first_index, -1);
  actual[3] = -0.0f;  // other bits, the same value
  EXPECT_EQ(compare().mismatches, 1);
  EXPECT_EQ(compare().max_ulp, 0);
  EXPECT_EQ(compare().rel_l2, 0.0);
  actual[1] = std::nextafter(-4.0f, -5.0f);
  actual[0] = 3.5f;
  const OutputNumbers n = compare();
  EXPECT_EQ(n.elements, 4);
  EXPECT_EQ(n.mismatches, 3);
  EXPECT_EQ(n.first_index, 0);
  EXPECT_EQ(n.first_actual_bits, 0x40600000u);
  EXPECT_EQ(n.max_abs, 0.5);
  EXPECT_NEAR(n.rel_l2, 0.1, 1e-9);
  EXPECT_EQ(n.max_ulp, 1 << 21);
}

}  // namespace
}  // namespace h3rt::lab
