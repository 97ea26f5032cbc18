#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "h3rt/harness/gpu_device.h"

namespace h3rt::lab {
namespace {

constexpr int kThreads = 256;

unsigned BlocksFor(int64_t items) {
  return static_cast<unsigned>(std::clamp<int64_t>((items + kThreads - 1) / kThreads, 1, 1 << 16));
}

__device__ int64_t FirstItem() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ int64_t Stride() { return static_cast<int64_t>(gridDim.x) * kThreads; }

}  // namespace

__global__ void __launch_bounds__(kThreads)
    lab_generate_kernel(InputStream input, std::byte* to, int64_t elements) {
  for (int64_t i = FirstItem(); i < elements; i += Stride()) {
    switch (input.type) {
      case InputType::kBf16:
        reinterpret_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16_rn(FloatInput(input, i));
        break;
      case InputType::kF16:
        reinterpret_cast<__half*>(to)[i] = __float2half_rn(FloatInput(input, i));
        break;
      case InputType::kF32:
        reinterpret_cast<float*>(to)[i] = FloatInput(input, i);
        break;
      case InputType::kI32:
        reinterpret_cast<int32_t*>(to)[i] = IntInput(input, i);
        break;
      case InputType::kU8:
        reinterpret_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(IntInput(input, i));
        break;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    lab_digest_kernel(const std::byte* from, int64_t bytes, int element_bytes, uint64_t poison,
                      unsigned long long* result) {
  const int64_t words = (bytes + 7) / 8;
  const uint64_t mask = element_bytes == 8 ? ~0ull : (1ull << (8 * element_bytes)) - 1;
  uint64_t sum = 0;
  uint64_t poisoned = 0;
  for (int64_t i = FirstItem(); i < words; i += Stride()) {
    const int here = static_cast<int>(bytes - 8 * i < 8 ? bytes - 8 * i : 8);
    uint64_t word = 0;
    if (here == 8) {
      word = reinterpret_cast<const uint64_t*>(from)[i];
    } else {
      for (int k = 0; k < here; ++k) {
        word |= static_cast<uint64_t>(from[8 * i + k]) << (8 * k);
      }
    }
    sum += DigestTerm(word, static_cast<uint64_t>(i));
    for (int k = 0; k + element_bytes <= here; k += element_bytes) {
      poisoned += ((word >> (8 * k) ^ poison) & mask) == 0 ? 1 : 0;
    }
  }
  // Integer additions commute: the result is the same whatever order they come in.
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    poisoned += __shfl_xor_sync(0xffffffffu, poisoned, offset);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(result, static_cast<unsigned long long>(sum));
    atomicAdd(result + 1, static_cast<unsigned long long>(poisoned));
  }
}

__global__ void __launch_bounds__(kThreads)
    lab_copy_kernel(const uint4* __restrict__ from, uint4* __restrict__ to, int64_t n) {
  constexpr int kEach = 4;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kEach) + threadIdx.x;
  uint4 held[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if (first + k * kThreads < n) held[k] = __ldcs(from + first + k * kThreads);
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if (first + k * kThreads < n) to[first + k * kThreads] = held[k];
  }
}

__global__ void lab_spin_kernel(uint64_t nanoseconds) {
  uint64_t begin;
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

int LaunchGenerate(const InputStream& input, std::byte* to, int64_t elements, CUstream_st* stream) {
  if (elements <= 0) return cudaSuccess;
  lab_generate_kernel<<<BlocksFor(elements), kThreads, 0, stream>>>(input, to, elements);
  return cudaGetLastError();
}

int LaunchDigest(const std::byte* from, int64_t bytes, int element_bytes, uint8_t poison,
                 uint64_t* result, CUstream_st* stream) {
  if (bytes <= 0) return cudaSuccess;
  lab_digest_kernel<<<BlocksFor((bytes + 7) / 8), kThreads, 0, stream>>>(
      from, bytes, element_bytes, 0x0101010101010101ull * poison,
      reinterpret_cast<unsigned long long*>(result));
  return cudaGetLastError();
}

int LaunchCopy(const std::byte* from, std::byte* to, int64_t bytes, CUstream_st* stream) {
  const int64_t n = bytes / 16;
  const int64_t blocks = (n + kThreads * 4 - 1) / (kThreads * 4);
  if (blocks < 1 || blocks > 2147483647) return cudaErrorInvalidValue;
  lab_copy_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(from), reinterpret_cast<uint4*>(to), n);
  return cudaGetLastError();
}

int CopyOnDevice(const std::byte* from, std::byte* to, int64_t bytes, CUstream_st* stream) {
  return cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream);
}

int FillOnDevice(std::byte* to, uint8_t byte, int64_t bytes, CUstream_st* stream) {
  return cudaMemsetAsync(to, byte, static_cast<size_t>(bytes), stream);
}

int LaunchSpin(int64_t nanoseconds, CUstream_st* stream) {
  lab_spin_kernel<<<1, 1, 0, stream>>>(static_cast<uint64_t>(nanoseconds));
  return cudaGetLastError();
}

int WaitForDevice() { return cudaDeviceSynchronize(); }

int AskDeviceFacts(DeviceFacts* facts) {
  int device = 0;
  cudaDeviceProp properties;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) error = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (error == cudaSuccess) {
    error = cudaDeviceGetPCIBusId(facts->pci_bus_id, sizeof facts->pci_bus_id, device);
  }
  if (error == cudaSuccess) error = cudaDriverGetVersion(&facts->driver_version);
  if (error == cudaSuccess) error = cudaRuntimeGetVersion(&facts->runtime_version);
  if (error != cudaSuccess) return error;
  static_assert(sizeof facts->name == sizeof properties.name);
  std::memcpy(facts->name, properties.name, sizeof facts->name);
  std::memcpy(facts->uuid, properties.uuid.bytes, sizeof facts->uuid);
  facts->major = properties.major;
  facts->minor = properties.minor;
  facts->processors = properties.multiProcessorCount;
  facts->l2_bytes = properties.l2CacheSize;
  facts->ecc = properties.ECCEnabled;
  facts->free_bytes = static_cast<int64_t>(free_bytes);
  facts->total_bytes = static_cast<int64_t>(total_bytes);
  return cudaSuccess;
}

namespace {

// What a graph holds as a kernel's function is the host's symbol or the driver's handle, by
// version.
cudaError_t NameOf(void* function, const char** name) {
  const cudaError_t error = cudaFuncGetName(name, function);
  if (error == cudaSuccess && *name != nullptr) return cudaSuccess;
  (void)cudaGetLastError();
  using GetName = int (*)(const char**, void*);
  for (const char* symbol : {"cuFuncGetName", "cuKernelGetName"}) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion(symbol, &entry, 12030, cudaEnableDefault, &found) ==
            cudaSuccess &&
        entry != nullptr && reinterpret_cast<GetName>(entry)(name, function) == 0 &&
        *name != nullptr) {
      return cudaSuccess;
    }
    (void)cudaGetLastError();
  }
  return error == cudaSuccess ? cudaErrorInvalidDeviceFunction : error;
}

cudaError_t NamesInGraph(cudaGraph_t graph, FoundKernel found, void* context) {
  size_t count = 0;
  cudaError_t error = cudaGraphGetNodes(graph, nullptr, &count);
  std::vector<cudaGraphNode_t> nodes(count);
  if (error == cudaSuccess) error = cudaGraphGetNodes(graph, nodes.data(), &count);
  for (size_t i = 0; i < count && error == cudaSuccess; ++i) {
    cudaGraphNodeType type;
    error = cudaGraphNodeGetType(nodes[i], &type);
    if (error != cudaSuccess || type != cudaGraphNodeTypeKernel) continue;
    cudaKernelNodeParams parameters = {};
    const char* name = nullptr;
    error = cudaGraphKernelNodeGetParams(nodes[i], &parameters);
    if (error == cudaSuccess) error = NameOf(parameters.func, &name);
    if (error == cudaSuccess) found(context, name);
  }
  return error;
}

}  // namespace

int NamesOfKernels(Enqueue enqueue, FoundKernel found, void* context, CUstream_st* stream) {
  cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  if (error != cudaSuccess) return error;
  const int launched = enqueue(context, stream);
  cudaGraph_t graph = nullptr;
  error = cudaStreamEndCapture(stream, &graph);
  if (launched != 0) error = static_cast<cudaError_t>(launched);
  if (error == cudaSuccess) error = NamesInGraph(graph, found, context);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  return error;
}

}  // namespace h3rt::lab
