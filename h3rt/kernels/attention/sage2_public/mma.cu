#include <cuda_runtime.h>

#include "h3rt/kernels/attention/sage2_public/launch.h"
#include "h3rt/kernels/attention/sage2_public/mma_kernel.cuh"

namespace h3rt {
namespace {

template <ExactPath kPath, int kDim, bool kCapture>
int Launch(const Sage2Arguments& args, int64_t grid, CUstream_st* stream) {
  constexpr int kShared = MmaTiles<kDim>::kBytes;
  static_assert(kShared <= 48 << 10, "more needs the attribute of the kernel");
  sage2_public_mma_kernel<kPath, kDim, kCapture>
      <<<static_cast<unsigned>(grid), exact::kThreads, kShared, stream>>>(args);
  return cudaGetLastError();
}

template <ExactPath kPath>
int Choose(const Sage2Arguments& args, int dim, bool capture, int64_t grid, CUstream_st* stream) {
  if (dim == 128) {
    return capture ? Launch<kPath, 128, true>(args, grid, stream)
                   : Launch<kPath, 128, false>(args, grid, stream);
  }
  return capture ? Launch<kPath, 64, true>(args, grid, stream)
                 : Launch<kPath, 64, false>(args, grid, stream);
}

}  // namespace

int LaunchSage2PublicMma(const ExactProblem& problem, const ExactPrepared& prepared,
                         const ExactCheckpoints* capture, CUstream_st* stream) {
  if (problem.path == ExactPath::kB) return cudaErrorInvalidDeviceFunction;
  if (!Sage2Takes(problem)) return cudaErrorInvalidValue;
  const Sage2Arguments args = ArgumentsOf(problem, prepared, capture);
  const int64_t grid = args.tiles * problem.batch * problem.q_heads;
  // Epochs are counted in 32 bits.
  if (grid > INT32_MAX || args.epochs > INT32_MAX) return cudaErrorInvalidValue;
  const int dim = problem.padded_dim();
  const bool captures = capture != nullptr;
  switch (problem.path) {
    case ExactPath::kA16:
      return Choose<ExactPath::kA16>(args, dim, captures, grid, stream);
    case ExactPath::kA32:
      return Choose<ExactPath::kA32>(args, dim, captures, grid, stream);
    default:
      return Choose<ExactPath::kA1>(args, dim, captures, grid, stream);
  }
}

}  // namespace h3rt
