// Kernels that are wrong on purpose, one fault each. A sanitizer that does not find its fault in
// the same setting proves nothing by finding none elsewhere.
#include "h3rt/harness/gpu_device.h"

namespace h3rt::lab {

constexpr int kPlantedThreads = 64;

// One thread stores behind the end.
__global__ void lab_planted_bounds_kernel(uint32_t* out, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i <= n) out[i] = static_cast<uint32_t>(i);
}

// Every thread reads its neighbour's word with no barrier after the write.
__global__ void lab_planted_race_kernel(uint32_t* out) {
  __shared__ uint32_t words[kPlantedThreads];
  const unsigned i = threadIdx.x;
  words[i] = i * 3;
  out[i] = words[(i + kPlantedThreads / 2) % kPlantedThreads];
}

// The input was never written.
__global__ void lab_planted_uninitialised_kernel(const uint32_t* in, uint32_t* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
}

// Some threads leave before the barrier that the others wait at, in a warp and in the block.
__global__ void lab_planted_barrier_kernel(uint32_t* out) {
  if (threadIdx.x % 2 == 1 || threadIdx.x >= 32) return;
  out[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] += out[(threadIdx.x + 2) % 32];
}

// One thread joins a warp barrier whose mask does not name it.
__global__ void lab_planted_mask_kernel(uint32_t* out) {
  const unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x < 16);
  if (threadIdx.x <= 16) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp(mask);
    out[threadIdx.x] += 1;
  }
}

namespace {

template <typename Launch>
int WithBuffers(const Launch& launch) {
  uint32_t* buffers = nullptr;
  cudaError_t error = cudaMalloc(&buffers, kPlantedThreads * sizeof(uint32_t));
  uint32_t* in = nullptr;
  if (error == cudaSuccess) error = cudaMalloc(&in, kPlantedThreads * sizeof(uint32_t));
  if (error == cudaSuccess) {
    launch(in, buffers);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  (void)cudaFree(in);
  (void)cudaFree(buffers);
  return error;
}

}  // namespace

int RunPlantedOutOfBounds() {
  return WithBuffers([](uint32_t*, uint32_t* out) {
    lab_planted_bounds_kernel<<<1, kPlantedThreads + 32>>>(out, kPlantedThreads);
  });
}
int RunPlantedSharedRace() {
  return WithBuffers(
      [](uint32_t*, uint32_t* out) { lab_planted_race_kernel<<<1, kPlantedThreads>>>(out); });
}
int RunPlantedUninitialisedRead() {
  return WithBuffers([](uint32_t* in, uint32_t* out) {
    lab_planted_uninitialised_kernel<<<1, kPlantedThreads>>>(in, out);
  });
}
int RunPlantedDivergentBarrier() {
  return WithBuffers([](uint32_t*, uint32_t* out) {
    lab_planted_barrier_kernel<<<1, kPlantedThreads>>>(out);
    lab_planted_mask_kernel<<<1, 32>>>(out);
  });
}

}  // namespace h3rt::lab
