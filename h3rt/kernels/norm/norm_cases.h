// The sizes that the tests of the normalisations run.
#pragma once

#include <array>
#include <cstdint>

namespace h3rt {

struct RowNormCase {
  const char* name;
  int64_t m;
  int64_t heads;  // 0: rank 2
  int64_t c;
  int64_t gap;  // extra elements after every row
  float mean;
};

inline constexpr auto kRowNormCases = std::to_array<RowNormCase>({
    {"one", 1, 0, 1, 0, 0.0f},
    {"odd", 7, 0, 13, 3, 0.5f},
    {"released_width", 20, 0, 5376, 0, 0.0f},
    {"heads", 9, 3, 64, 0, 0.0f},
    {"heads_of_fused_buffer", 9, 3, 40, 240, 0.0f},
    {"large_mean", 5, 0, 1000, 0, 300.0f},
});

struct GroupNormCase {
  const char* name;
  int64_t c;
  int64_t t;
  int64_t h;
  int64_t w;
  int64_t groups;
  float mean;
};

inline constexpr auto kGroupNormCases = std::to_array<GroupNormCase>({
    {"one", 1, 1, 1, 1, 1, 0.0f},
    {"groups_of_two", 8, 3, 5, 7, 4, 0.3f},
    {"group_a_channel", 6, 2, 4, 4, 6, 0.0f},
    {"one_group", 6, 2, 9, 11, 1, 0.0f},
    {"large_mean", 32, 2, 16, 16, 32, 500.0f},
});

}  // namespace h3rt
