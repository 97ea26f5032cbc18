// The sizes that the tests of the activations run.
#pragma once

#include <array>
#include <cstdint>

namespace h3rt {

struct SnakeCase {
  const char* name;
  int64_t c;
  int64_t n;
};

// Around the block of 512 and the task of 16,384 samples, and shorter than the filters reach.
inline constexpr auto kSnakeCases = std::to_array<SnakeCase>({
    {"one", 1, 1},
    {"two", 2, 2},
    {"three", 1, 3},
    {"four", 3, 4},
    {"shorter_than_filter", 4, 7},
    {"block_less_one", 2, 511},
    {"block", 2, 512},
    {"block_and_one", 2, 513},
    {"block_and_three", 2, 515},
    {"task", 1, 16384},
    {"task_and_two", 2, 16386},
    {"many", 8, 5000},
});

struct RowsCase {
  const char* name;
  int64_t m;
  int64_t f;
  int64_t gap;
};

inline constexpr auto kSwiGluCases = std::to_array<RowsCase>({
    {"one", 1, 1, 0},
    {"row", 1, 100, 0},
    {"strided", 13, 67, 9},
    {"many", 300, 257, 0},
});

}  // namespace h3rt
