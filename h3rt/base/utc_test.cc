#include "h3rt/base/utc.h"

#include <gtest/gtest.h>

namespace h3rt {
namespace {

TEST(Utc, HasOneForm) {
  EXPECT_EQ(ParseUtc("1970-01-01T00:00:00.000000001Z"), 1);
  EXPECT_EQ(ParseUtc("2024-02-29T23:59:59.999999999Z"), 1709251199999999999);
  const std::string now = UtcNow();
  EXPECT_TRUE(ParseUtc(now).has_value()) << now;
  EXPECT_GT(*ParseUtc(now), 1'700'000'000'000'000'000);
  for (const char* bad : {"", "2023-02-29T00:00:00.000000000Z", "2024-13-01T00:00:00.000000000Z",
                          "2024-01-01T24:00:00.000000000Z", "2024-01-01T00:60:00.000000000Z",
                          "2024-01-01T00:00:60.000000000Z", "2024-01-01 00:00:00.000000000Z",
                          "2024-01-01T00:00:00.00000000Z", "2024-01-01T00:00:00.000000000",
                          "9999-01-01T00:00:00.000000000Z", "1969-12-31T23:59:59.999999999Z"}) {
    EXPECT_FALSE(ParseUtc(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace h3rt
