// Single-precision matrix product on the calling thread (oneDNN).
#pragma once

#include <cstdint>

#include "h3rt/base/status.h"

namespace h3rt {

// C = alpha op(A) op(B) + beta C, all row-major; lda, ldb, ldc are distances between rows of A, B
// and C as stored. op(A) is [m, k] and op(B) is [k, n]; trans_x says that X is stored transposed.
// With beta 0 C is not read. k = 0 gives beta C.
struct SgemmParams {
  bool trans_a = false;
  bool trans_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  float alpha = 1.0f;
  const float* a = nullptr;
  int64_t lda = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  float beta = 0.0f;
  float* c = nullptr;
  int64_t ldc = 0;
};

// Runs on one thread whatever the OpenMP settings are, so bytes depend on the arguments (and the
// processor) only. kInternal when oneDNN refuses.
[[nodiscard]] absl::Status Sgemm(const SgemmParams& params);

// Most bytes that one Sgemm of these extents allocates while it runs. oneDNN packs panels of both
// operands: up to 384 deep, all columns of C (in parts of about 10,000) and up to 384 of its rows;
// the extents follow its blocking for AVX2 and AVX-512, with the depth of the latter, so the real
// need is about half of this on AVX2. Includes 64 KiB for its smaller allocations.
int64_t SgemmPackingBytes(int64_t m, int64_t n, int64_t k);

// While it lives, OpenMP regions opened by this thread have one thread: oneDNN asks OpenMP.
class SingleThreadScope {
 public:
  SingleThreadScope();
  ~SingleThreadScope();
  SingleThreadScope(const SingleThreadScope&) = delete;
  SingleThreadScope& operator=(const SingleThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace h3rt
