#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>

#include "h3rt/base/env.h"
#include "h3rt/base/log.h"
#include "h3rt/base/units.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

TEST(Units, BytesCarryTheirUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.00 MiB") << "never 1024.00 KiB";
  EXPECT_EQ(FormatBytes(66280430080), "61.73 GiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "16384.00 PiB");
}

TEST(Units, SecondsCarryTheirUnit) {
  EXPECT_EQ(FormatSeconds(0), "0 ms");
  EXPECT_EQ(FormatSeconds(0.0123), "12 ms");
  EXPECT_EQ(FormatSeconds(0.9999), "1.0 s") << "never 1000 ms";
  EXPECT_EQ(FormatSeconds(3.21), "3.2 s");
  EXPECT_EQ(FormatSeconds(59.99), "1 min 0 s") << "never 60.0 s";
  EXPECT_EQ(FormatSeconds(75.3), "1 min 15 s");
  EXPECT_EQ(FormatSeconds(3599.7), "1 h 0 min") << "never 59 min 60 s";
  EXPECT_EQ(FormatSeconds(7260), "2 h 1 min");
  EXPECT_EQ(FormatSeconds(-1), "?");
  EXPECT_EQ(FormatSeconds(std::nan("")), "?");
  EXPECT_EQ(FormatSeconds(std::numeric_limits<double>::infinity()), "?");
}

TEST(Env, TheTableHasAtMostTenVariablesThatExplainThemselves) {
  std::set<std::string> names;
  std::set<EnvVar> vars;
  EXPECT_LE(EnvTable().size(), 10u);
  EXPECT_GE(EnvTable().size(), 1u);
  for (const EnvEntry& entry : EnvTable()) {
    EXPECT_EQ(std::string(entry.name).rfind("H3RT_", 0), 0u) << entry.name;
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(vars.insert(entry.var).second) << entry.name;
    EXPECT_GE(std::string(entry.help).size(), 10u) << entry.name;
  }
}

TEST(Env, UnsetAndEmptyAreNothing) {
  ASSERT_EQ(::unsetenv("H3RT_FAKE_DEVICES"), 0);
  EXPECT_EQ(GetEnv(EnvVar::kFakeDevices), std::nullopt);
  ASSERT_EQ(::setenv("H3RT_FAKE_DEVICES", "", 1), 0);
  EXPECT_EQ(GetEnv(EnvVar::kFakeDevices), std::nullopt);
  ASSERT_EQ(::setenv("H3RT_FAKE_DEVICES", "9.0,12.1", 1), 0);
  EXPECT_EQ(GetEnv(EnvVar::kFakeDevices), "9.0,12.1");
  ASSERT_EQ(::unsetenv("H3RT_FAKE_DEVICES"), 0);
}

TEST(Log, GoesToStandardErrorAndKeepsToTheLevel) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  SetLogLevel(LogLevel::kWarning);
  LogInfo("not shown");
  LogWarning("braces {} are text");
  SetLogLevel(LogLevel::kSilent);
  LogError("silent");
  SetLogLevel(LogLevel::kInfo);
  const std::string err = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "") << "that belongs to results";
  EXPECT_THAT(err, HasSubstr("braces {} are text"));
  EXPECT_THAT(err, ::testing::Not(HasSubstr("not shown")));
  EXPECT_THAT(err, ::testing::Not(HasSubstr("silent")));
}

}  // namespace
}  // namespace h3rt
