#include "h3rt/cuda/device_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "h3rt/base/exit_code.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Sets a variable for one test and removes it after.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;
  ~ScopedEnv() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(DeviceInfo, FakedDevicesReplaceTheDriver) {
  const ScopedEnv env("H3RT_FAKE_DEVICES", "8.9,9.0, 10.0 ,12.0,12.1,13.0");
  const absl::StatusOr<DeviceList> list = ListDevices();
  ASSERT_TRUE(list.ok()) << MessageOf(list.status());
  ASSERT_THAT(list->devices, SizeIs(6));
  const ComputeCapability wanted[] = {{8, 9}, {9, 0}, {10, 0}, {12, 0}, {12, 1}, {13, 0}};
  for (int i = 0; i < 6; ++i) {
    const DeviceInfo& device = list->devices[static_cast<size_t>(i)];
    EXPECT_EQ(device.index, i);
    EXPECT_EQ(device.capability, wanted[i]);
    EXPECT_EQ(device.name, "faked " + NameOf(wanted[i]));
    EXPECT_TRUE(device.faked);
    EXPECT_EQ(device.integrated, i == 4);
    EXPECT_EQ(device.memory_bytes, 0u);
  }
  EXPECT_EQ(list->reason, "");
}

TEST(DeviceInfo, MalformedFakedDevicesAreATypedError) {
  for (const char* text : {"x",        "9",    "9.",    ".0",   "9.0,", ",9.0", "9.0,,12.1",
                           "9.0;12.1", "9.00", "9.0.1", "-9.0", "+9.0", "9 .0", "9.0 12.1",
                           "1234.0",   "9.x",  "nine",  " ",    "9,0",  "9.0\n"}) {
    const ScopedEnv env("H3RT_FAKE_DEVICES", text);
    const absl::StatusOr<DeviceList> list = ListDevices();
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_EQ(list.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(ExitCodeOf(list.status()), ExitCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(list.status()), HasSubstr("H3RT_FAKE_DEVICES")) << text;
    EXPECT_THAT(MessageOf(list.status()), HasSubstr("<major>.<minor>")) << text;
  }
}

TEST(DeviceInfo, NoDriverIsAnEmptyListWithItsReason) {
  const absl::StatusOr<DeviceList> list = ListDriverDevices("libh3rt_no_such_driver.so.1");
  ASSERT_TRUE(list.ok()) << MessageOf(list.status());
  EXPECT_THAT(list->devices, IsEmpty());
  EXPECT_THAT(list->reason, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(list->reason, HasSubstr("libh3rt_no_such_driver.so.1"));
  EXPECT_EQ(list->driver_version, "");
}

TEST(DeviceInfo, ALibraryThatIsNoDriverIsAnEmptyListWithItsReason) {
  const absl::StatusOr<DeviceList> list = ListDriverDevices("libc.so.6");
  ASSERT_TRUE(list.ok()) << MessageOf(list.status());
  EXPECT_THAT(list->devices, IsEmpty());
  EXPECT_THAT(list->reason, HasSubstr("cuInit"));
}

TEST(DeviceInfo, EnumeratesWhatTheDriverAnswers) {
  const absl::StatusOr<DeviceList> list = ListDriverDevices(H3RT_FAKE_DRIVER);
  ASSERT_TRUE(list.ok()) << MessageOf(list.status());
  ASSERT_THAT(list->devices, SizeIs(2));
  EXPECT_EQ(list->driver_version, "13.0");
  EXPECT_EQ(list->reason, "");
  EXPECT_EQ(list->devices[0].name, "Test H200");
  EXPECT_EQ(list->devices[0].capability, (ComputeCapability{9, 0}));
  EXPECT_EQ(list->devices[0].memory_bytes, 150754820096u);
  EXPECT_FALSE(list->devices[0].integrated);
  EXPECT_FALSE(list->devices[0].faked);
  EXPECT_EQ(list->devices[1].index, 1);
  EXPECT_EQ(list->devices[1].name, "Test GB10");
  EXPECT_EQ(list->devices[1].capability, (ComputeCapability{12, 1}));
  EXPECT_EQ(list->devices[1].memory_bytes, 128000000000u);
  EXPECT_TRUE(list->devices[1].integrated);
}

TEST(DeviceInfo, ADriverWithoutADeviceSaysSo) {
  for (const char* mode : {"no device", "empty"}) {
    const ScopedEnv env("H3RT_TEST_DRIVER", mode);
    const absl::StatusOr<DeviceList> list = ListDriverDevices(H3RT_FAKE_DRIVER);
    ASSERT_TRUE(list.ok()) << MessageOf(list.status());
    EXPECT_THAT(list->devices, IsEmpty());
    EXPECT_EQ(list->reason, "the NVIDIA driver finds no device") << mode;
  }
}

TEST(DeviceInfo, ADriverThatDoesNotStartIsNamed) {
  const ScopedEnv env("H3RT_TEST_DRIVER", "mismatch");
  const absl::StatusOr<DeviceList> list = ListDriverDevices(H3RT_FAKE_DRIVER);
  ASSERT_TRUE(list.ok()) << MessageOf(list.status());
  EXPECT_THAT(list->devices, IsEmpty());
  EXPECT_THAT(list->reason, HasSubstr("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"));
}

TEST(DeviceInfo, ADeviceThatIsLostIsATypedError) {
  const ScopedEnv env("H3RT_TEST_DRIVER", "lost");
  const absl::StatusOr<DeviceList> list = ListDriverDevices(H3RT_FAKE_DRIVER);
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(list.status()), HasSubstr("CUDA_ERROR_UNKNOWN"));
  EXPECT_THAT(MessageOf(list.status()), HasSubstr("device 1"));
}

TEST(ParseFakeDevices, NoneIsTheEmptyListWithAReason) {
  const auto list = ParseFakeDevices("none");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->devices.empty());
  EXPECT_NE(list->reason.find("H3RT_FAKE_DEVICES"), std::string::npos);
}

}  // namespace
}  // namespace h3rt
