// Memory of the current device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "h3rt/base/status.h"
#include "h3rt/cuda/stream.h"

namespace h3rt {

// Move-only, not initialised. Freed at the end of the scope, which waits for the device's work.
class DeviceBuffer {
 public:
  // 0 bytes is an empty buffer; what does not fit is kResourceExhausted.
  static absl::StatusOr<DeviceBuffer> Create(uint64_t bytes);
  std::byte* data() const { return data_.get(); }
  uint64_t bytes() const { return bytes_; }

  // Each is ordered on `stream` and asynchronous: host memory must live until the stream has
  // passed it. A range outside the buffer is kInvalidArgument, before anything is copied.
  absl::Status CopyFromHost(std::span<const std::byte> from, uint64_t offset, const Stream& stream);
  absl::Status CopyToHost(std::span<std::byte> to, uint64_t offset, const Stream& stream) const;
  absl::Status Fill(uint8_t byte, const Stream& stream);

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  absl::Status CheckRange(uint64_t size, uint64_t offset) const;

  std::unique_ptr<std::byte[], Free> data_;
  uint64_t bytes_ = 0;
};

}  // namespace h3rt
