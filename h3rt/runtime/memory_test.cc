#include "h3rt/runtime/memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace h3rt {
namespace {

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }
  static void Clear() {
    unsetenv("H3RT_FAKE_MEMORY");
    unsetenv("H3RT_MEMORY_LIMIT");
  }
};

TEST_F(MemoryTest, ReadsTheMachine) {
  const auto available = AvailableMemory();
  ASSERT_TRUE(available.ok());
  EXPECT_GT(*available, 1u << 20);
}

TEST_F(MemoryTest, FakeWinsOverLimitAndLimitOverTheMachine) {
  setenv("H3RT_MEMORY_LIMIT", "123456", 1);
  EXPECT_EQ(*AvailableMemory(), 123456u);
  setenv("H3RT_FAKE_MEMORY", "789", 1);
  EXPECT_EQ(*AvailableMemory(), 789u);
}

TEST_F(MemoryTest, RefusesWhatIsNotAPositiveNumber) {
  for (const char* text : {"0", "-1", "4G", "x", "99999999999999999999999"}) {
    setenv("H3RT_MEMORY_LIMIT", text, 1);
    const auto available = AvailableMemory();
    EXPECT_EQ(available.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(MessageOf(available.status()).find("H3RT_MEMORY_LIMIT"), std::string::npos);
  }
}

TEST_F(MemoryTest, PeakFollowsAnAllocation) {
  const uint64_t before = ResidentBytes();
  ASSERT_GT(before, 0u);
  {
    std::vector<char> block(64 << 20, 1);
    EXPECT_GE(PeakResidentBytes(), before + (60 << 20));
    EXPECT_EQ(block.back(), 1);
  }
}

}  // namespace
}  // namespace h3rt
