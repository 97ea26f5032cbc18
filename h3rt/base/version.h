// The version that files and reports carry.
#pragma once

namespace h3rt {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace h3rt
