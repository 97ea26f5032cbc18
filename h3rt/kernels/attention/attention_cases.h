// The shapes that the tests of Attention run.
#pragma once

#include <array>
#include <cstdint>

namespace h3rt {

struct AttentionCase {
  const char* name;
  int64_t sq;
  int64_t sk;
  int64_t hq;
  int64_t hk;
  int64_t d;
  bool causal;
};

// Lengths at and around the block sizes, and primes.
inline constexpr auto kAttentionLengths =
    std::to_array<int64_t>({1, 2, 14, 63, 64, 65, 127, 128, 129, 191, 193, 1000, 4097});

inline constexpr auto kAttentionCases = std::to_array<AttentionCase>({
    {"one", 1, 1, 1, 1, 1, false},
    {"nano", 125, 125, 2, 2, 64, false},
    {"queries_fewer", 5, 700, 2, 2, 64, false},
    {"queries_more", 300, 30, 2, 2, 40, false},
    {"grouped_8", 70, 130, 8, 1, 32, false},
    {"grouped_7_of_2", 70, 600, 14, 2, 16, false},
    {"no_keys", 9, 0, 2, 2, 8, false},
    {"causal", 200, 200, 2, 2, 64, true},
    {"causal_long", 700, 700, 1, 1, 32, true},
    {"causal_more_keys", 100, 900, 2, 1, 32, true},
    {"causal_fewer_keys", 300, 100, 2, 2, 32, true},
    {"d72", 90, 90, 2, 2, 72, false},
    {"d128", 257, 513, 2, 2, 128, false},
    {"d160", 33, 65, 1, 1, 160, false},
    {"d256", 40, 520, 2, 2, 256, true},
});

}  // namespace h3rt
