// A CUDA stream and events on it, closed at the end of their scope.
#pragma once

#include <memory>

#include "h3rt/base/status.h"

// The runtime's own types, named here so that its headers stay out of ours.
struct CUstream_st;
struct CUevent_st;

namespace h3rt {

// Belongs to the device that was current when it was made. Does not wait for the default stream.
class Stream {
 public:
  static absl::StatusOr<Stream> Create();
  CUstream_st* get() const { return handle_.get(); }
  // Waits until all work given to the stream is done; errors of that work come out here.
  absl::Status Synchronize() const;

 private:
  struct Close {
    void operator()(CUstream_st* handle) const;
  };
  std::unique_ptr<CUstream_st, Close> handle_;
};

// A point in a stream, with its time.
class Event {
 public:
  static absl::StatusOr<Event> Create();
  CUevent_st* get() const { return handle_.get(); }
  absl::Status Record(const Stream& stream);
  absl::Status Synchronize() const;

 private:
  struct Close {
    void operator()(CUevent_st* handle) const;
  };
  std::unique_ptr<CUevent_st, Close> handle_;
};

// Device time between two recorded events that have both passed, in milliseconds (resolution about
// half a microsecond).
absl::StatusOr<double> ElapsedMs(const Event& start, const Event& end);

}  // namespace h3rt
