#include <cuda_runtime.h>

#include "h3rt/kernels/attention/sage2_public/launch.h"
#include "h3rt/kernels/attention/sage2_public/prepare_shape.h"

namespace h3rt {
namespace {

bool WritesNothing(const ExactProblem& p) { return p.batch == 0 || p.q_heads == 0 || p.q_len == 0; }

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
  const ExactPrepared prepared = PreparedIn(problem, workspace);
  const int error = LaunchExactPrepare(problem, prepared, stream);
  return error == cudaSuccess ? LaunchSage2PublicPrepared(problem, prepared, nullptr, stream)
                              : error;
}

}  // namespace h3rt
