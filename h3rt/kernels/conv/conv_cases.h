// The shapes that the tests of the convolutions run.
#pragma once

#include <array>
#include <cstdint>

#include "h3rt/tensor/dtype.h"

namespace h3rt {

struct ConvCase {
  const char* name;
  int64_t ci;
  int64_t co;
  std::array<int64_t, 3> in;
  std::array<int64_t, 3> kernel;
  std::array<int64_t, 3> stride;
  std::array<int64_t, 3> dilation;
  std::array<int64_t, 3> pad_begin;
  std::array<int64_t, 3> pad_end;
  DType weight;
  bool bias;
};

inline constexpr auto kConvCases = std::to_array<ConvCase>({
    {"one",
     1,
     1,
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {0, 0, 0},
     {0, 0, 0},
     DType::kF32,
     true},
    {"causal_3d",
     5,
     6,
     {4, 9, 7},
     {3, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {2, 0, 0},
     {0, 0, 0},
     DType::kF32,
     true},
    {"down_222",
     4,
     7,
     {5, 11, 10},
     {3, 3, 3},
     {2, 2, 2},
     {1, 1, 1},
     {2, 0, 0},
     {0, 1, 1},
     DType::kF16,
     true},
    {"down_122",
     3,
     5,
     {3, 8, 8},
     {3, 3, 3},
     {1, 2, 2},
     {1, 1, 1},
     {2, 0, 0},
     {0, 1, 1},
     DType::kBF16,
     true},
    {"shortcut",
     12,
     20,
     {3, 6, 6},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {0, 0, 0},
     {0, 0, 0},
     DType::kF16,
     true},
    {"padded_all_round",
     3,
     4,
     {2, 5, 5},
     {3, 5, 3},
     {1, 1, 1},
     {1, 1, 2},
     {1, 4, 3},
     {2, 1, 5},
     DType::kF32,
     false},
    {"audio_k7",
     8,
     9,
     {1, 1, 3000},
     {1, 1, 7},
     {1, 1, 1},
     {1, 1, 1},
     {0, 0, 3},
     {0, 0, 3},
     DType::kF32,
     true},
    {"audio_k7_dilated_9",
     6,
     6,
     {1, 1, 777},
     {1, 1, 7},
     {1, 1, 1},
     {1, 1, 9},
     {0, 0, 27},
     {0, 0, 27},
     DType::kF32,
     true},
    {"audio_k11_dilated_5",
     16,
     16,
     {1, 1, 9001},
     {1, 1, 11},
     {1, 1, 1},
     {1, 1, 5},
     {0, 0, 25},
     {0, 0, 25},
     DType::kF32,
     true},
    {"audio_stride_5",
     7,
     14,
     {1, 1, 503},
     {1, 1, 10},
     {1, 1, 5},
     {1, 1, 1},
     {0, 0, 3},
     {0, 0, 3},
     DType::kF32,
     true},
    {"one_channel_out",
     8,
     1,
     {1, 1, 5000},
     {1, 1, 7},
     {1, 1, 1},
     {1, 1, 1},
     {0, 0, 3},
     {0, 0, 3},
     DType::kF32,
     false},
    {"pad_over_input",
     2,
     3,
     {1, 1, 2},
     {1, 1, 7},
     {1, 1, 1},
     {1, 1, 1},
     {0, 0, 9},
     {0, 0, 9},
     DType::kF32,
     true},
    {"deep",
     150,
     40,
     {2, 6, 6},
     {3, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {2, 1, 1},
     {0, 1, 1},
     DType::kF16,
     true},
    {"wide",
     3,
     600,
     {1, 7, 7},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     DType::kBF16,
     true},
    {"no_input_channels",
     0,
     3,
     {1, 2, 2},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {0, 0, 0},
     {0, 0, 0},
     DType::kF32,
     true},
});

struct TransposeCase {
  const char* name;
  int64_t ci;
  int64_t co;
  int64_t n;
  int64_t kernel;
  int64_t stride;
  int64_t pad;
  DType weight;
  bool bias;
};

inline constexpr auto kTransposeCases = std::to_array<TransposeCase>({
    {"one", 1, 1, 1, 1, 1, 0, DType::kF32, true},
    {"rate_5", 12, 10, 207, 9, 5, 2, DType::kF32, true},
    {"rate_2", 16, 8, 2500, 4, 2, 1, DType::kF32, true},
    {"gaps", 3, 4, 50, 2, 5, 0, DType::kF32, true},  // outputs that no input reaches
    {"half", 6, 5, 33, 7, 3, 2, DType::kF16, false},
    {"overlapping", 5, 3, 40, 11, 1, 5, DType::kBF16, true},
});

}  // namespace h3rt
