// The warpgroup matrix instruction of Hopper, once.
#include <cstdint>

__global__ void wgmma_probe(float* out, uint64_t a, uint64_t b) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, "
      "0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "l"(a), "l"(b));
  out[threadIdx.x] = d0 + d1 + d2 + d3;
}
