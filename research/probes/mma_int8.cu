// The INT8 matrix instruction that every target here has, once.
#include <cstdint>

__global__ void mma_int8_probe(int* out, const uint32_t* in) {
  int d[4] = {0, 0, 0, 0};
  const uint32_t* a = in + 6 * threadIdx.x;
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
