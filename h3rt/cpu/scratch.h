// Aligned memory of one task.
#pragma once

#include <cstdint>
#include <memory>

#include "h3rt/base/status.h"

namespace h3rt {

// Uninitialised floats on a 64-byte boundary.
class Scratch {
 public:
  // kResourceExhausted when the memory is not there.
  static absl::StatusOr<Scratch> Create(int64_t floats);
  float* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float[], Free> data_;
};

}  // namespace h3rt
