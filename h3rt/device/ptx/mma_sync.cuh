// Warp products of 16 rows by 8 columns over 32 bytes of depth, and what feeds them. Lane (g = lane
// / 4, t = lane % 4): a[0] row g, bytes 4t; a[1] row g + 8; a[2], a[3] the same at byte 16 + 4t;
// b[0] column g, bytes 4t; b[1] at byte 16 + 4t; c[k] row g + 8 (k / 2), column 2t + k % 2.
#pragma once

#include <cstdint>

namespace h3rt::device {

// c += a b, INT8.
__device__ __forceinline__ void MmaS8(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                      uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// c += a b, e4m3, float32 sums.
__device__ __forceinline__ void MmaE4m3(float& c0, float& c1, float& c2, float& c3,
                                        const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// c += a b, e4m3, float16 sums: c0 holds row g (column 2t in the lower half), c1 row g + 8.
// Volatile: products stay in the order in which they are written, so that a caller can keep several
// in flight.
__device__ __forceinline__ void MmaE4m3Half(uint32_t& c0, uint32_t& c1, const uint32_t* a,
                                            uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
      "{%0, %1};\n"
      : "+r"(c0), "+r"(c1)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 16-byte matrices; lane i gives the address of row i % 8 of matrix i / 8 and gets bytes
// 4 (i % 4) of row i / 4 of each.
__device__ __forceinline__ void LoadMatrices(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// 16 bytes from global to shared memory, past the first-level cache.
__device__ __forceinline__ void CopyAsync(uint32_t shared, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared), "l"(from) : "memory");
}
__device__ __forceinline__ void CopyCommit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Until at most `kGroups` of this thread's groups are in flight.
template <int kGroups>
__device__ __forceinline__ void CopyWait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kGroups) : "memory");
}

}  // namespace h3rt::device
