// The sizes that the tests of Modulate and GatedResidual run.
#pragma once

#include <array>
#include <cstdint>

namespace h3rt {

struct ModulateCase {
  const char* name;
  int64_t s;
  int64_t c;
  int64_t rows;
  int64_t gap;  // extra elements after each row of every tensor
};

inline constexpr auto kModulateCases = std::to_array<ModulateCase>({
    {"one", 1, 1, 1, 0},
    {"odd", 17, 13, 3, 5},
    {"released_width", 9, 5376, 6, 0},
    {"chunks_of_six", 125, 64, 6, 5 * 64},
    {"many_tasks", 700, 100, 4, 0},
});

}  // namespace h3rt
