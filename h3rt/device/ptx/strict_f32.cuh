// float32 operations whose rounding no compiler flag can change: round to nearest, subnormals
// flushed. The CUDA intrinsics do not serve: __fadd_rn flushes or not as -ftz says.
#pragma once

#include <cstdint>

namespace h3rt::device {

__device__ __forceinline__ float AddFtz(float a, float b) {
  float r;
  asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float SubFtz(float a, float b) {
  float r;
  asm("sub.rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float MulFtz(float a, float b) {
  float r;
  asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float FmaFtz(float a, float b, float c) {
  float r;
  asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
  return r;
}
// The operand that is a number, where the other is NaN.
__device__ __forceinline__ float MaxFtz(float a, float b) {
  float r;
  asm("max.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float MinFtz(float a, float b) {
  float r;
  asm("min.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float AbsFtz(float a) {
  float r;
  asm("abs.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
// The special-function unit's approximations.
__device__ __forceinline__ float Ex2Ftz(float a) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ float Lg2Ftz(float a) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ float RcpFtz(float a) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
// Exact for magnitudes up to 2^24.
__device__ __forceinline__ float IntToFloat(int32_t a) {
  float r;
  asm("cvt.rn.f32.s32 %0, %1;" : "=f"(r) : "r"(a));
  return r;
}

// e4m3 of two values, to nearest even, saturating to 448; `low` in the lower byte.
__device__ __forceinline__ uint32_t PackE4m3(float low, float high) {
  uint16_t r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ uint32_t PackE4m3(float b0, float b1, float b2, float b3) {
  return PackE4m3(b0, b1) | (PackE4m3(b2, b3) << 16);
}

__device__ __forceinline__ float FromBits(uint32_t bits) { return __uint_as_float(bits); }

// One float32 as the bits of a 16-bit float: to nearest even, overflow to infinity.
__device__ __forceinline__ uint16_t ToBf16(float a) {
  uint16_t r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ uint16_t ToF16(float a) {
  uint16_t r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ float FromF16(uint16_t bits) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
  return r;
}

}  // namespace h3rt::device
