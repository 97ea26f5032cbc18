// The shapes that the tests of Linear run.
#pragma once

#include <array>
#include <cstdint>

#include "h3rt/tensor/dtype.h"

namespace h3rt {

struct LinearCase {
  const char* name;
  int64_t m;
  int64_t groups;  // 0: a weight of rank 2
  int64_t n;       // all rows of the weight
  int64_t k;
  DType weight;
  bool bias;
  int64_t gap;  // extra elements between rows of x, y and the weight
};

inline constexpr auto kLinearCases = std::to_array<LinearCase>({
    {"one", 1, 0, 1, 1, DType::kF32, true, 0},
    {"row", 1, 0, 200, 77, DType::kBF16, true, 0},
    {"column", 65, 0, 1, 1030, DType::kF32, true, 3},
    {"no_depth", 5, 0, 7, 0, DType::kF32, true, 0},
    {"nano", 125, 0, 192, 64, DType::kBF16, true, 0},
    {"half", 33, 0, 130, 96, DType::kF16, true, 5},
    {"strided", 40, 0, 96, 128, DType::kF32, false, 21},
    {"interleaved", 50, 6, 96, 64, DType::kBF16, true, 16},
    {"interleaved_f32", 50, 6, 96, 64, DType::kF32, true, 16},
    {"two_depth_tiles", 70, 0, 300, 1500, DType::kBF16, true, 0},
    {"many_tiles", 1100, 0, 1300, 40, DType::kBF16, true, 0},
});

}  // namespace h3rt
