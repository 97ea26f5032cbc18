// The sizes that the tests of Rope run.
#pragma once

#include <array>
#include <cstdint>

namespace h3rt {

struct RopeCase {
  const char* name;
  int64_t s;
  int64_t h;
  int64_t d;
  int64_t r;
  int64_t row;  // distance between rows of x; 0: contiguous
};

inline constexpr auto kRopeCases = std::to_array<RopeCase>({
    {"one", 1, 1, 2, 1, 0},
    {"no_angles", 3, 2, 8, 0, 0},
    {"whole_head", 9, 2, 16, 8, 0},
    {"released", 11, 3, 128, 48, 0},
    {"odd", 7, 3, 21, 7, 0},
    {"fused", 100, 4, 64, 24, 3 * 4 * 64},
});

}  // namespace h3rt
