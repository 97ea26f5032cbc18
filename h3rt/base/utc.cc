#include "h3rt/base/utc.h"

#include <chrono>
#include <cstdio>

namespace h3rt {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

int64_t NowNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string UtcNow() {
  using std::chrono::floor;
  const int64_t ns = NowNs();
  const std::chrono::sys_days days{floor<std::chrono::days>(std::chrono::seconds(ns / kSecond))};
  const std::chrono::year_month_day date(days);
  const int64_t second = ns / kSecond - days.time_since_epoch().count() * int64_t{86400};
  char text[64];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02d.%09dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(second / 3600),
                static_cast<int>(second / 60 % 60), static_cast<int>(second % 60),
                static_cast<int>(ns % kSecond));
  return text;
}

std::optional<int64_t> ParseUtc(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd.dddddddddZ";
  if (text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [&](size_t at, size_t length) {
    int64_t value = 0;
    for (const char c : text.substr(at, length)) value = value * 10 + (c - '0');
    return value;
  };
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(number(0, 4))),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2))));
  const int64_t hour = number(11, 2);
  const int64_t minute = number(14, 2);
  const int64_t second = number(17, 2);
  // Nanoseconds in 64 bits reach from 1678 to 2261.
  const bool in_range = number(0, 4) >= 1970 && number(0, 4) <= 2261;
  if (!date.ok() || !in_range || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 * kSecond + second * kSecond + number(20, 9);
}

}  // namespace h3rt
