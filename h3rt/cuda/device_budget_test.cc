#include "h3rt/cuda/device_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace h3rt {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGiB = 1ull << 30;

TEST(DeviceBudget, AnIntegratedDeviceTakesItFromAvailableSystemMemory) {
  // The driver's free bytes are low because the page cache holds the checkpoint.
  const absl::StatusOr<DeviceBudget> budget = BudgetOfDevice({.integrated = true,
                                                              .device_total_bytes = 120 * kGiB,
                                                              .device_free_bytes = 3 * kGiB,
                                                              .system_available_bytes = 90 * kGiB});
  ASSERT_TRUE(budget.ok()) << MessageOf(budget.status());
  EXPECT_EQ(budget->bytes, 89 * kGiB);
  EXPECT_FALSE(budget->may_offload);
  EXPECT_THAT(budget->source, HasSubstr("system memory"));
}

TEST(DeviceBudget, AnIntegratedDeviceNeverPassesItsOwnTotal) {
  const absl::StatusOr<DeviceBudget> budget = BudgetOfDevice({.integrated = true,
                                                              .device_total_bytes = 40 * kGiB,
                                                              .device_free_bytes = 40 * kGiB,
                                                              .system_available_bytes = 90 * kGiB});
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->bytes, 40 * kGiB);
}

TEST(DeviceBudget, AnIntegratedDeviceWithoutMemoryIsACleanError) {
  for (const uint64_t available : {uint64_t{0}, kGiB - 1, kGiB}) {
    const absl::StatusOr<DeviceBudget> budget =
        BudgetOfDevice({.integrated = true,
                        .device_total_bytes = 120 * kGiB,
                        .device_free_bytes = 100 * kGiB,
                        .system_available_bytes = available});
    ASSERT_FALSE(budget.ok()) << available;
    EXPECT_EQ(budget.status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(DeviceBudget, ADiscreteDeviceTakesItsFreeMemoryAndMayOffload) {
  const absl::StatusOr<DeviceBudget> budget = BudgetOfDevice({.integrated = false,
                                                              .device_total_bytes = 140 * kGiB,
                                                              .device_free_bytes = 100 * kGiB,
                                                              .system_available_bytes = 8 * kGiB});
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->bytes, 100 * kGiB);
  EXPECT_TRUE(budget->may_offload);
}

TEST(DeviceBudget, ADiscreteDeviceThatIsFullOrAbsurdIsRefused) {
  EXPECT_EQ(BudgetOfDevice({.device_total_bytes = kGiB}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      BudgetOfDevice({.device_total_bytes = kGiB, .device_free_bytes = 2 * kGiB}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(DeviceBudget, RefusesWhatDoesNotFitBeforeAllocating) {
  const DeviceBudget budget = {.bytes = 10 * kGiB, .may_offload = true, .source = "free memory"};
  EXPECT_TRUE(CheckFits(budget, 10 * kGiB, "the plan").ok());
  for (const uint64_t needed : {10 * kGiB + 1, std::numeric_limits<uint64_t>::max()}) {
    const absl::Status status = CheckFits(budget, needed, "the plan");
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(MessageOf(status), HasSubstr("the plan does not fit"));
    EXPECT_THAT(MessageOf(status), HasSubstr("10.00 GiB"));
  }
}

}  // namespace
}  // namespace h3rt
