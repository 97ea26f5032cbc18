#include <cuda_runtime.h>

#include "h3rt/kernels/attention/sage2_public/launch.h"
#include "h3rt/kernels/attention/sage2_public/prepare_shape.h"

namespace h3rt {
namespace {

bool WritesNothing(const ExactProblem& p) { return p.batch == 0 || p.q_heads == 0 || p.q_len == 0; }

// Memory that a kernel on the current device cannot reach, or reaches across devices, is refused
// before anything is launched: a fault would take the context with it.
int CheckReachable(const ExactProblem& p, const void* workspace) {
  int device = 0;
  int pageable = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device);
  }
  if (error != cudaSuccess) return error;
  const bool keys = p.k_len > 0 && p.k_heads > 0;
  const void* const pointers[] = {p.q.data,
                                  keys ? p.k.data : nullptr,
                                  keys ? p.v.data : nullptr,
                                  p.o.data,
                                  p.lse,
                                  p.lse_raw,
                                  p.given_k_mean,
                                  workspace};
  for (const void* pointer : pointers) {
    if (pointer == nullptr) continue;
    cudaPointerAttributes found = {};
    error = cudaPointerGetAttributes(&found, pointer);
    if (error != cudaSuccess) return error;
    const bool own = found.type == cudaMemoryTypeDevice && found.device == device;
    const bool shared = found.type == cudaMemoryTypeManaged || found.type == cudaMemoryTypeHost ||
                        (found.type == cudaMemoryTypeUnregistered && pageable != 0);
    if (!own && !shared) return cudaErrorInvalidDevicePointer;
  }
  return cudaSuccess;
}

}  // namespace

int LaunchSage2PublicPrepared(const ExactProblem& problem, const ExactPrepared& prepared,
                              const ExactCheckpoints* capture, CUstream_st* stream) {
  if (!exact::ExactTakes(problem)) return cudaErrorInvalidValue;
  if (WritesNothing(problem)) return cudaSuccess;
  if (problem.k_len == 0) return LaunchExactEmpty(problem, stream);
  const int error = problem.path == ExactPath::kB
                        ? LaunchSage2PublicWgmma(problem, prepared, capture, stream)
                        : LaunchSage2PublicMma(problem, prepared, capture, stream);
  return error == cudaSuccess ? LaunchExactLse(problem, prepared, stream) : error;
}

int LaunchSage2Public(const ExactProblem& problem, void* workspace, CUstream_st* stream) {
  if (!exact::ExactTakes(problem) || workspace == nullptr) return cudaErrorInvalidValue;
  if (WritesNothing(problem)) return cudaSuccess;
  int error = CheckReachable(problem, workspace);
  if (error != cudaSuccess) return error;
  const ExactPrepared prepared = PreparedIn(problem, workspace);
  error = LaunchExactPrepare(problem, prepared, stream);
  return error == cudaSuccess ? LaunchSage2PublicPrepared(problem, prepared, nullptr, stream)
                              : error;
}

}  // namespace h3rt
