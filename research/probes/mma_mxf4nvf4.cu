// The block-scaled FP4 matrix instruction of consumer Blackwell, once.
#include <cstdint>

__global__ void mma_mxf4nvf4_probe(float* out, const uint32_t* in) {
  float d[4] = {0, 0, 0, 0};
  const uint32_t* a = in + 8 * threadIdx.x;
  asm volatile(
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
      ".f32.e2m1.e2m1.f32.ue4m3 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "
      "{%10}, {0, 0}, {%11}, {0, 0};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
