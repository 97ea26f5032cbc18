// The tensor-memory matrix instruction of data-centre Blackwell on INT8, once.
#include <cstdint>

__global__ void umma_int8_probe(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %3, 0;\n"
      "tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p;\n"
      "}\n" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction)
      : "memory");
}
