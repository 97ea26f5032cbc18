#include "h3rt/cuda/device_buffer.h"

#include <cuda_runtime_api.h>

#include <string>

#include "h3rt/base/units.h"
#include "h3rt/cuda/runtime_status.h"

namespace h3rt {

absl::StatusOr<DeviceBuffer> DeviceBuffer::Create(uint64_t bytes) {
  DeviceBuffer buffer;
  if (bytes == 0) return buffer;
  void* data = nullptr;
  H3RT_RETURN_IF_ERROR(
      CudaStatus(cudaMalloc(&data, bytes), "allocating " + FormatBytes(bytes) + " on the device"));
  buffer.data_.reset(static_cast<std::byte*>(data));
  buffer.bytes_ = bytes;
  return buffer;
}

void DeviceBuffer::Free::operator()(std::byte* data) const { (void)cudaFree(data); }

absl::Status DeviceBuffer::CheckRange(uint64_t size, uint64_t offset) const {
  // Written so that neither side can overflow.
  if (offset <= bytes_ && size <= bytes_ - offset) return absl::OkStatus();
  return InvalidArgument(
      {.what = "range of a device buffer",
       .got = std::to_string(size) + " bytes at offset " + std::to_string(offset),
       .wanted = "a range inside its " + std::to_string(bytes_) + " bytes"});
}

absl::Status DeviceBuffer::CopyFromHost(std::span<const std::byte> from, uint64_t offset,
                                        const Stream& stream) {
  H3RT_RETURN_IF_ERROR(CheckRange(from.size(), offset));
  if (from.empty()) return absl::OkStatus();
  return CudaStatus(cudaMemcpyAsync(data() + offset, from.data(), from.size(),
                                    cudaMemcpyHostToDevice, stream.get()),
                    "copying to the device");
}

absl::Status DeviceBuffer::CopyToHost(std::span<std::byte> to, uint64_t offset,
                                      const Stream& stream) const {
  H3RT_RETURN_IF_ERROR(CheckRange(to.size(), offset));
  if (to.empty()) return absl::OkStatus();
  return CudaStatus(
      cudaMemcpyAsync(to.data(), data() + offset, to.size(), cudaMemcpyDeviceToHost, stream.get()),
      "copying from the device");
}

absl::Status DeviceBuffer::Fill(uint8_t byte, const Stream& stream) {
  if (bytes_ == 0) return absl::OkStatus();
  return CudaStatus(cudaMemsetAsync(data(), byte, bytes_, stream.get()), "filling device memory");
}

}  // namespace h3rt
