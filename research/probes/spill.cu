// Holds 96 values a thread where 1,024 threads leave 64 registers each: it must spill.

__global__ __launch_bounds__(1024) void spill_probe(float* data) {
  constexpr int kValues = 96;
  float a[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) a[i] = data[threadIdx.x + i * 1024];
  __syncthreads();
#pragma unroll
  for (int round = 0; round < 4; ++round) {
#pragma unroll
    for (int i = 0; i < kValues; ++i) a[i] = a[i] * a[(i + 7) % kValues] + a[(i + 31) % kValues];
  }
#pragma unroll
  for (int i = 0; i < kValues; ++i) data[threadIdx.x + i * 1024] = a[i];
}
