// Numbers with units as text.
#pragma once

#include <cstdint>
#include <string>

namespace h3rt {

// 66280430080 -> "61.73 GiB"; values under 1 KiB print as bytes.
std::string FormatBytes(uint64_t bytes);

// 75.3 -> "1 min 15 s", 0.0123 -> "12 ms", 3.21 -> "3.2 s".
std::string FormatSeconds(double seconds);

}  // namespace h3rt
