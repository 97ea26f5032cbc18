#include "h3rt/cuda/runtime_status.h"

#include <cuda_runtime_api.h>

#include <string>

namespace h3rt {

absl::Status CudaStatus(int error, std::string_view action) {
  const auto code = static_cast<cudaError_t>(error);
  if (code == cudaSuccess) return absl::OkStatus();
  // The runtime also keeps the error as its last one; left there, the next launch would report it.
  (void)cudaGetLastError();
  const ErrorText text = {
      .what = "CUDA failed while " + std::string(action),
      .got = std::string(cudaGetErrorName(code)) + ", " + cudaGetErrorString(code)};
  switch (code) {
    case cudaErrorMemoryAllocation:
      return ResourceExhausted(text);
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorStubLibrary:
      return FailedPrecondition(text);
    default:
      return Internal(text);
  }
}

}  // namespace h3rt
