// Two bfloat16 in a 32-bit word: the even element in the lower half.
#pragma once

#include <cstdint>

namespace h3rt::device {

__device__ inline float Bf16Low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float Bf16High(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// Round to nearest, ties to even, with subnormals; a NaN becomes 0x7fff.
__device__ inline uint32_t PackBf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

}  // namespace h3rt::device
