// What golden cases of attention are compared with: hashes of bytes in the public library's layout,
// and where bytes cannot be equal, values with a derived bound. Host memory only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/base/thread_pool.h"
#include "h3rt/kernels/attention/exact/golden_file.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt::lab {

// SHA-256 of the output and of each head, o[:, :, h, :] over all batches.
struct OutputHashes {
  std::string whole;
  std::vector<std::string> heads;
};
OutputHashes HashOutput(const ExactProblem& problem, std::span<const uint16_t> o, ThreadPool& pool);

// A prepared tensor by the index's key ("q_int8", "q_scale", "k_int8", "k_scale", "v_fp8",
// "v_scale", "k_mean"), in the public library's layout: codes [B, N, H, D] without padding, V
// [B, D, Hk, N padded to 64]. kInvalidArgument for another key.
absl::StatusOr<std::vector<std::byte>> PreparedBytes(const ExactProblem& problem,
                                                     const ExactPrepared& prepared,
                                                     std::string_view tensor);
// The keys of the index that speak of what this problem's preparation makes, with the tensor each
// names: {"sm89.per_warp.q_int8", "q_int8"}, ...
std::vector<std::pair<std::string, std::string>> PreparedKeys(const ExactProblem& problem);

// The corrected logarithms against others of the same raw ones. The correction is a dot product
// rounded to the type of q, so two ways of summing differ by one unit of that type, times the
// scale, and by the rounding of the final sum.
struct LseDifference {
  int64_t elements = 0;
  int64_t differing = 0;    // by bits
  int64_t beyond_unit = 0;  // by more than one unit of the correction
  double max_difference = 0;
};
// `wanted` empty: the host's own, from `lse_raw` and dot products in float64. problem.q in host
// memory; k_mean [batch, k_heads, padded dim].
LseDifference CompareLse(const ExactProblem& problem, const uint16_t* k_mean,
                         std::span<const float> lse_raw, std::span<const float> lse,
                         std::span<const float> wanted, ThreadPool& pool);

// Float64 attention of some rows of a case, made once for all paths.
class FloatReference {
 public:
  // Every row where that is cheap, else rows spread evenly over the queries. Pointers of `problem`
  // are host memory.
  static absl::StatusOr<FloatReference> Create(const ExactProblem& problem, ThreadPool& pool,
                                               const CancelToken& cancel);
  struct Error {
    double rel_l2 = 0;          // infinite when an output is not finite
    double standard_error = 0;  // of rel_l2 as an estimate over all rows; 0: all rows are in it
  };
  Error Of(std::span<const uint16_t> o) const;
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  bool whole() const { return rows() == problem_.q_len; }
  const double* o() const { return o_.get(); }

 private:
  ExactProblem problem_;
  std::vector<int64_t> rows_;
  std::unique_ptr<double[]> o_;  // [batch, q_len, q_heads, head_dim]; only `rows_` are set
};

}  // namespace h3rt::lab
