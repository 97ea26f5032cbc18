// Times as text, in one form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace h3rt {

// Nanoseconds since 1970, by the system's clock.
int64_t NowNs();
// UTC, "2026-08-26T14:03:22.123456789Z".
std::string UtcNow();
// Nanoseconds since 1970 of a time in exactly that form.
std::optional<int64_t> ParseUtc(std::string_view text);

}  // namespace h3rt
