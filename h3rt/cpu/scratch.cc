#include "h3rt/cpu/scratch.h"

#include <cstdlib>
#include <limits>
#include <string>

#include "h3rt/base/units.h"

namespace h3rt {

void Scratch::Free::operator()(float* p) const { std::free(p); }

absl::StatusOr<Scratch> Scratch::Create(int64_t floats) {
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max() / 8;
  Scratch scratch;
  if (floats >= 0 && floats < kLimit) {
    const size_t bytes = (static_cast<size_t>(floats) * sizeof(float) + 127) / 64 * 64;
    scratch.data_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
  }
  if (scratch.data_ == nullptr) {
    return ResourceExhausted(
        {.what = "scratch memory", .got = std::to_string(floats) + " floats refused"});
  }
  return scratch;
}

}  // namespace h3rt
