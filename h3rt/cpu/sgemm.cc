#include "h3rt/cpu/sgemm.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <string>

namespace h3rt {
namespace {

// With AVX-512 oneDNN chooses by the row distance whether it packs an operand, and the two ways
// round differently, so equal rows gave unequal bytes. Up to AVX2 they do not. Set before main,
// since it has no effect once anything has been computed; it holds for every use of oneDNN in the
// process.
[[maybe_unused]] const dnnl_status_t kHighestIsa = dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);

void ScaleOnly(const SgemmParams& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      float& c = p.c[i * p.ldc + j];
      c = p.beta == 0.0f ? 0.0f : p.beta * c;
    }
  }
}

}  // namespace

int64_t SgemmPackingBytes(int64_t m, int64_t n, int64_t k) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  // Shallow products are packed less shallow than they are.
  const int64_t depth = std::clamp<int64_t>(k, 64, 192) * 2;
  const int64_t lines = std::min<int64_t>(n, 10240) + std::min<int64_t>(m, 384) + 64;
  return depth * lines * static_cast<int64_t>(sizeof(float)) + (int64_t{64} << 10);
}

SingleThreadScope::SingleThreadScope() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

SingleThreadScope::~SingleThreadScope() {
  if (before_ != 1) omp_set_num_threads(before_);
}

absl::Status Sgemm(const SgemmParams& p) {
  if (p.m <= 0 || p.n <= 0) return absl::OkStatus();
  if (p.k <= 0) {
    ScaleOnly(p);
    return absl::OkStatus();
  }
  // A single row or column may come with any stride; oneDNN wants at least the row length.
  const int64_t lda = std::max(p.lda, p.trans_a ? p.m : p.k);
  const int64_t ldb = std::max(p.ldb, p.trans_b ? p.k : p.n);
  const int64_t ldc = std::max(p.ldc, p.n);
  const int64_t rows_a = p.trans_a ? p.k : p.m;
  const int64_t rows_b = p.trans_b ? p.n : p.k;
  if ((lda != p.lda && rows_a > 1) || (ldb != p.ldb && rows_b > 1) || (ldc != p.ldc && p.m > 1)) {
    return Internal({.what = "sgemm: row distance", .wanted = "at least the row length"});
  }
  const SingleThreadScope one_thread;
  const dnnl_status_t status = dnnl_sgemm(p.trans_a ? 'T' : 'N', p.trans_b ? 'T' : 'N', p.m, p.n,
                                          p.k, p.alpha, p.a, lda, p.b, ldb, p.beta, p.c, ldc);
  if (status == dnnl_out_of_memory) return ResourceExhausted({.what = "oneDNN sgemm scratch"});
  if (status != dnnl_success) {
    return Internal({.what = "oneDNN sgemm", .got = "status " + std::to_string(status)});
  }
  return absl::OkStatus();
}

}  // namespace h3rt
