#include "h3rt/cuda/stream.h"

#include <cuda_runtime_api.h>

#include "h3rt/cuda/runtime_status.h"

namespace h3rt {

absl::StatusOr<Stream> Stream::Create() {
  cudaStream_t handle = nullptr;
  H3RT_RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "making a stream"));
  Stream stream;
  stream.handle_.reset(handle);
  return stream;
}

void Stream::Close::operator()(CUstream_st* handle) const { (void)cudaStreamDestroy(handle); }

absl::Status Stream::Synchronize() const {
  return CudaStatus(cudaStreamSynchronize(get()), "waiting for a stream");
}

absl::StatusOr<Event> Event::Create() {
  cudaEvent_t handle = nullptr;
  H3RT_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&handle), "making an event"));
  Event event;
  event.handle_.reset(handle);
  return event;
}

void Event::Close::operator()(CUevent_st* handle) const { (void)cudaEventDestroy(handle); }

absl::Status Event::Record(const Stream& stream) {
  return CudaStatus(cudaEventRecord(get(), stream.get()), "recording an event");
}

absl::Status Event::Synchronize() const {
  return CudaStatus(cudaEventSynchronize(get()), "waiting for an event");
}

absl::StatusOr<double> ElapsedMs(const Event& start, const Event& end) {
  float elapsed_ms = 0;
  H3RT_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&elapsed_ms, start.get(), end.get()),
                                  "reading the time between two events"));
  return static_cast<double>(elapsed_ms);
}

}  // namespace h3rt
