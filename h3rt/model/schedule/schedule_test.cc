// The grid against the public fixtures, bit for bit, and the Euler step against its definition.
#include "h3rt/model/schedule/schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h3rt/base/check.h"
#include "h3rt/io/safetensors.h"

namespace h3rt {
namespace {

std::vector<float> Values(const SafetensorsFile& file, const std::string& key) {
  const ConstTensorView view = file.Get(key).value();
  H3RT_CHECK(view.dtype() == DType::kF32);
  std::vector<float> values(static_cast<size_t>(view.elements()));
  std::memcpy(values.data(), view.data(), values.size() * sizeof(float));
  return values;
}

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Schedule, GridsOfTheFixturesAreEqualInBits) {
  for (const std::string model : {"nano", "mini"}) {
    const SafetensorsFile file =
        SafetensorsFile::Open(H3RT_TEST_DATA "/h3/" + model + "/schedule.safetensors").value();
    for (const int64_t points : {2, 5, 9, 21}) {
      for (const auto& [name, shift] : {std::pair{"video", 12.0}, {"audio", 3.0}}) {
        const std::string prefix = std::string(name) + "." + std::to_string(points);
        const Schedule schedule = MakeSchedule(points - 1, shift).value();
        EXPECT_TRUE(SameBytes(schedule.sigmas, Values(file, prefix + ".sigmas"))) << prefix;
        EXPECT_TRUE(SameBytes(schedule.timesteps, Values(file, prefix + ".timesteps"))) << prefix;
        EXPECT_EQ(schedule.forwards(), points - 1);
      }
    }
  }
}

// Without the fused multiply-add of the first half one value of audio n = 21 has other bits (C1):
// the fixture test above can see the difference.
TEST(Schedule, PlantedUnfusedGridHasOtherBits) {
  const Schedule schedule = MakeSchedule(20, 3.0).value();
  const float step = -1.0f / 20.0f;
  const volatile float product = step * 9.0f;  // rounded on its own
  const float b = product + 1.0f;
  EXPECT_NE((3.0f * b) / (1.0f + 2.0f * b), schedule.sigmas[9]);
}

TEST(Schedule, PublishedValues) {
  const Schedule five = MakeSchedule(4, 6.0).value();
  const float expected[] = {1.0f, 0.947368f, 0.857143f, 0.666667f, 0.0f};
  ASSERT_EQ(five.sigmas.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(five.sigmas[i], expected[i], 5e-7);
  const Schedule fifty = MakeSchedule(49, 12.0).value();
  EXPECT_NEAR(fifty.sigmas[1], 0.998267, 5e-7);
  EXPECT_NEAR(fifty.sigmas[48], 0.2, 5e-7);
}

TEST(Schedule, LimitsAreRefusedByName) {
  for (const int64_t bad :
       {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0}, int64_t{10001},
        int64_t{1} << 31, int64_t{1} << 32, std::numeric_limits<int64_t>::max()}) {
    const absl::Status status = MakeSchedule(bad, 12.0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(MessageOf(status), testing::HasSubstr(std::to_string(bad)));
  }
  for (const double bad : {0.0, -3.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e300,
                           1e-300, 1e-46, 1e-5}) {
    EXPECT_EQ(MakeSchedule(4, bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Schedule, EveryAcceptedGridGoesFromOneToZero) {
  for (const double shift : {0.05, 0.5, 1.0, 3.0, 12.0, 100.0, 1e5, 1e20}) {
    for (const int64_t forwards : {1, 2, 3, 7, 50, 999, 10000}) {
      const absl::StatusOr<Schedule> made = MakeSchedule(forwards, shift);
      ASSERT_TRUE(made.ok()) << shift << " " << forwards << ": " << MessageOf(made.status());
      EXPECT_NEAR(made->sigmas.front(), 1.0f, 1e-3f);
      EXPECT_EQ(made->sigmas.back(), 0.0f);
      EXPECT_GE(made->forwards(), 1);
      EXPECT_LE(made->forwards(), forwards);
      EXPECT_EQ(made->sigmas.size(), made->timesteps.size() + 1);
      for (size_t i = 0; i < made->timesteps.size(); ++i) {
        // Neighbours close to 1 may differ in the wrong direction by rounding, as in the public
        // scheduler; none may be 0 before the end.
        EXPECT_GT(made->sigmas[i], 0.0f);
        EXPECT_LE(made->sigmas[i + 1], made->sigmas[i] + 2e-7f);
        EXPECT_EQ(made->timesteps[i], 1.0f - made->sigmas[i]);
      }
    }
  }
}

TEST(Schedule, ConsecutiveDuplicatesAreDropped) {
  // At 1e20 every sigma but the last rounds to 1.
  const Schedule schedule = MakeSchedule(9, 1e20).value();
  EXPECT_THAT(schedule.sigmas, testing::ElementsAre(1.0f, 0.0f));
}

TEST(EulerStep, FollowsItsDefinitionOperationByOperation) {
  const Schedule schedule = MakeSchedule(20, 12.0).value();
  const std::vector<float> velocity = {0.1f, -2.5f, 3.14159f, 1e-8f, -0.0f, 7e4f};
  const std::vector<float> start = {1.7f, 0.3f, -2.2f, 5e-9f, 0.0f, -1e5f};
  for (int64_t step = 0; step < schedule.forwards(); ++step) {
    std::vector<float> x = start;
    EulerStep(schedule, step, velocity, x);
    const auto i = static_cast<size_t>(step);
    const float ratio = schedule.sigmas[i + 1] / schedule.sigmas[i];
    for (size_t k = 0; k < x.size(); ++k) {
      const volatile float move = (1.0f - schedule.timesteps[i]) * velocity[k];
      const volatile float x0 = start[k] + move;
      const volatile float kept = ratio * start[k];
      const volatile float pulled = (1.0f - ratio) * x0;
      const float expected = kept + pulled;
      EXPECT_EQ(std::bit_cast<uint32_t>(x[k]), std::bit_cast<uint32_t>(expected));
      const double exact = static_cast<double>(start[k]) +
                           (static_cast<double>(schedule.sigmas[i]) - schedule.sigmas[i + 1]) *
                               static_cast<double>(velocity[k]);
      EXPECT_NEAR(x[k], exact, 1e-6 * (std::abs(start[k]) + std::abs(velocity[k])));
    }
  }
}

TEST(EulerStep, TheLastStepLandsOnTheData) {
  const Schedule schedule = MakeSchedule(4, 3.0).value();
  std::vector<float> x = {2.0f};
  const std::vector<float> velocity = {-1.0f};
  EulerStep(schedule, 3, velocity, x);
  EXPECT_EQ(x[0], 2.0f + (1.0f - schedule.timesteps[3]) * -1.0f);
}

TEST(ConditionNoise, UsesTheFloatComplementAndNoFma) {
  const std::vector<float> noise = {1.0f, -0.7f, 3.3f, 1e6f};
  const std::vector<float> start = {0.0f, 1.3f, -2.9f, 0.11f};
  std::vector<float> z = start;
  MixConditionNoise(noise, z);
  EXPECT_EQ(z[0], 0.00099998713f);
  EXPECT_NE(z[0], 0.001f);
  for (size_t k = 0; k < z.size(); ++k) {
    const volatile float kept = 0.999f * start[k];
    const volatile float mixed = (1.0f - 0.999f) * noise[k];
    const float expected = kept + mixed;
    EXPECT_EQ(std::bit_cast<uint32_t>(z[k]), std::bit_cast<uint32_t>(expected));
  }
}

}  // namespace
}  // namespace h3rt
