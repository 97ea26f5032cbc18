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
// With the other sign: bits, for neg.f32 too flushes or not as -ftz says.
__device__ __forceinline__ float Negated(float a) {
  return __uint_as_float(__float_as_uint(a) ^ 0x80000000u);
}

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

// Two float32 as a pair of float16, `low` in the lower half.
__device__ __forceinline__ uint32_t PackF16(float low, float high) {
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
// Maxima of pairs; subnormals stay. The operand that is a number, where the other is NaN.
__device__ __forceinline__ uint32_t MaxBf16x2(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ __forceinline__ uint32_t MaxF16x2(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// To an integer, half to even or towards zero; NaN gives 0.
__device__ __forceinline__ int32_t RoundToInt(float a) {
  int32_t r;
  asm("cvt.rni.ftz.s32.f32 %0, %1;" : "=r"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ int32_t TruncateToInt(float a) {
  int32_t r;
  asm("cvt.rzi.ftz.s32.f32 %0, %1;" : "=r"(r) : "f"(a));
  return r;
}
// Four integers as int8, saturating to -128..127; b0 in the lowest byte.
__device__ __forceinline__ uint32_t PackS8(int32_t b0, int32_t b1, int32_t b2, int32_t b3) {
  uint32_t high;
  uint32_t r;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(b3), "r"(b2), "r"(0));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(b1), "r"(b0), "r"(high));
  return r;
}

// Exact; a subnormal stays.
__device__ __forceinline__ double ToDouble(float a) {
  double r;
  asm("cvt.f64.f32 %0, %1;" : "=d"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ double FmaDouble(double a, double b, double c) {
  double r;
  asm("fma.rn.f64 %0, %1, %2, %3;" : "=d"(r) : "d"(a), "d"(b), "d"(c));
  return r;
}
// Towards zero, with the last bit set where that is not exact ("to odd"): a rounding to at most 22
// bits after it gives what one rounding of `a` gives.
__device__ __forceinline__ float RoundToOdd(double a) {
  float r;
  asm("{\n\t"
      ".reg .pred inexact;\n\t"
      ".reg .f32 toward;\n\t"
      ".reg .f64 back;\n\t"
      ".reg .b32 bits, odd;\n\t"
      "cvt.rz.f32.f64 toward, %1;\n\t"
      "cvt.f64.f32 back, toward;\n\t"
      "setp.ne.f64 inexact, back, %1;\n\t"
      "mov.b32 bits, toward;\n\t"
      "or.b32 odd, bits, 1;\n\t"
      "selp.b32 bits, odd, bits, inexact;\n\t"
      "mov.b32 %0, bits;\n\t"
      "}"
      : "=f"(r)
      : "d"(a));
  return r;
}

}  // namespace h3rt::device
