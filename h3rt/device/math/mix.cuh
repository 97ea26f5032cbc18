// An integer hash that host and device compute alike, for patterns that a test can predict.
#pragma once

#include <cstdint>

namespace h3rt::device {

// Mixes the 64 bits of (index, seed) into 32. Two rounds of multiply and shift (the finaliser that
// Steele, Lea and Flood give for SplitMix64), so that neighbours differ in about half their bits.
__host__ __device__ inline uint32_t Mix(uint64_t index, uint32_t seed) {
  uint64_t z = index + (static_cast<uint64_t>(seed) << 32) + 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(z ^ (z >> 31));
}

}  // namespace h3rt::device
