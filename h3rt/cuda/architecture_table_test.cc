#include "h3rt/cuda/architecture_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "h3rt/cuda/device_info.h"

namespace h3rt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const DeviceBuild kCpuBuild = {};
const DeviceBuild kCudaBuild = {.targets = {"90a", "120a", "121a"}, .attention = {}};
const DeviceBuild kFullBuild = {
    .targets = {"90a", "120a", "121a"},
    .attention = {ExactAttention::kPathBThread, ExactAttention::kPathA16Warp}};

// The rows of the six faked devices that people may have.
std::vector<ArchitectureRow> RowsOfFaked(const DeviceBuild& build) {
  const absl::StatusOr<DeviceList> list = ParseFakeDevices("8.9,9.0,10.0,12.0,12.1,13.0");
  std::vector<ArchitectureRow> rows;
  if (!list.ok()) return rows;
  for (const DeviceInfo& device : list->devices) {
    rows.push_back(ArchitectureRowOf(device.capability, build));
  }
  return rows;
}

TEST(ArchitectureTable, EveryFakedDeviceHasItsExactRow) {
  const std::vector<ArchitectureRow> rows = RowsOfFaked(kFullBuild);
  ASSERT_EQ(rows.size(), 6u);
  struct Wanted {
    const char* capability;
    bool known;
    const char* target;
    bool built;
    const char* attention;
    bool runs;
  };
  const Wanted wanted[] = {
      {"8.9", true, "89", false, "path A16 per_thread", false},
      {"9.0", true, "90a", true, "path B per_thread", true},
      {"10.0", true, "100a", false, "none", false},
      {"12.0", true, "120a", true, "path A16 per_warp", true},
      {"12.1", true, "121a", true, "path A16 per_warp", true},
      {"13.0", false, "", false, "none", false},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(NameOf(rows[i].capability), wanted[i].capability);
    EXPECT_EQ(rows[i].known, wanted[i].known) << wanted[i].capability;
    EXPECT_EQ(rows[i].target, wanted[i].target) << wanted[i].capability;
    EXPECT_EQ(rows[i].built, wanted[i].built) << wanted[i].capability;
    EXPECT_STREQ(NameOf(rows[i].attention), wanted[i].attention) << wanted[i].capability;
    EXPECT_EQ(rows[i].runs_exact_attention, wanted[i].runs) << wanted[i].capability;
    EXPECT_EQ(rows[i].missing.empty(), wanted[i].runs) << wanted[i].capability;
  }
}

TEST(ArchitectureTable, NamesWhatIsMissing) {
  const std::vector<ArchitectureRow> rows = RowsOfFaked(kFullBuild);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_THAT(rows[0].missing, ElementsAre("device code for sm_89 (this build has 90a, 120a, 121a)",
                                           "a kernel for attention path A16 per_thread"));
  EXPECT_THAT(rows[1].missing, IsEmpty());
  EXPECT_THAT(rows[2].missing,
              ElementsAre("device code for sm_100a (this build has 90a, 120a, 121a)",
                          "an exact attention path for 10.0 (the public library dispatches none)"));
  EXPECT_THAT(rows[3].missing, IsEmpty());
  EXPECT_THAT(rows[4].missing, IsEmpty());
  EXPECT_THAT(rows[5].missing, ElementsAre("an entry for compute capability 13.0 (the table knows "
                                           "8.9, 9.0, 10.0, 12.0, 12.1)"));
}

TEST(ArchitectureTable, ABuildWithDeviceCodeButNoAttentionSaysSo) {
  const std::vector<ArchitectureRow> rows = RowsOfFaked(kCudaBuild);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_TRUE(rows[1].built);
  EXPECT_FALSE(rows[1].runs_exact_attention);
  EXPECT_THAT(rows[1].missing, ElementsAre("a kernel for attention path B per_thread"));
  EXPECT_THAT(rows[4].missing, ElementsAre("a kernel for attention path A16 per_warp"));
}

TEST(ArchitectureTable, TheCpuBuildHasNothingForAnyDevice) {
  for (const ArchitectureRow& row : ArchitectureTable(kCpuBuild)) {
    EXPECT_FALSE(row.built);
    EXPECT_FALSE(row.runs_exact_attention);
    ASSERT_FALSE(row.missing.empty());
    EXPECT_EQ(row.missing[0],
              "device code for sm_" + row.target + " (this build has no device code)");
  }
}

TEST(ArchitectureTable, NeighboursOfKnownCapabilitiesAreUnknown) {
  for (const ComputeCapability& capability :
       {ComputeCapability{8, 0}, ComputeCapability{8, 6}, ComputeCapability{10, 3},
        ComputeCapability{12, 2}, ComputeCapability{0, 0}}) {
    EXPECT_FALSE(ArchitectureRowOf(capability, kFullBuild).known) << NameOf(capability);
  }
}

TEST(ArchitectureTable, ListsTheKnownCapabilitiesInOrder) {
  std::vector<std::string> names;
  for (const ArchitectureRow& row : ArchitectureTable(kCpuBuild)) {
    names.push_back(NameOf(row.capability));
  }
  EXPECT_THAT(names, ElementsAre("8.9", "9.0", "10.0", "12.0", "12.1"));
}

TEST(ArchitectureTable, ThisBuildStatesTheTargetsItWasCompiledFor) {
#ifdef H3RT_TEST_WITH_CUDA
  EXPECT_THAT(ThisDeviceBuild().targets, ElementsAre("90a", "120a", "121a"));
#else
  EXPECT_THAT(ThisDeviceBuild().targets, IsEmpty());
#endif
  EXPECT_THAT(ThisDeviceBuild().attention, IsEmpty());
}

}  // namespace
}  // namespace h3rt
