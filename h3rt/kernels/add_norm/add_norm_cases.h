// The sizes that the tests and the experiment of this op run.
#pragma once

#include <array>
#include <cstdint>

namespace h3rt {

struct AddNormCase {
  const char* name;
  int64_t rows;
  int64_t hidden;
};

// Around a group (8), a warp of groups (256), three groups a thread, the released width, the
// widest.
inline constexpr auto kAddNormCases = std::to_array<AddNormCase>({
    {"one_element", 1, 1},
    {"below_a_group", 3, 7},
    {"one_group", 1, 8},
    {"above_a_group", 2, 9},
    {"toy", 3, 64},
    {"one_warp", 5, 256},
    {"above_one_warp", 5, 264},
    {"three_groups_a_thread", 4, 768},
    {"above_three_groups", 4, 776},
    {"ragged_width", 7, 1001},
    {"released_width", 9, 5376},
    {"wider_by_one_group", 3, 5384},
    {"widest", 2, 16384},
    {"just_below_widest", 2, 16383},
    {"empty", 0, 64},
});

}  // namespace h3rt
