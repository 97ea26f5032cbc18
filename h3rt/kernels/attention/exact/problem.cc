#include "h3rt/kernels/attention/exact/problem.h"

#include <cmath>

namespace h3rt {
namespace {

constexpr int64_t kAlign = 256;

// Hands out the pieces of a workspace in order; from null it only counts.
class Cutter {
 public:
  explicit Cutter(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* Take(int64_t elements) {
    char* const at = base_ == nullptr ? nullptr : base_ + offset_;
    offset_ += exact::RoundUp(elements * static_cast<int64_t>(sizeof(T)), kAlign);
    return reinterpret_cast<T*>(at);
  }
  int64_t offset() const { return offset_; }

 private:
  char* base_;
  int64_t offset_ = 0;
};

ExactPrepared Cut(const ExactProblem& problem, Cutter& cutter) {
  const ExactPreparedSizes sizes = PreparedSizes(problem);
  ExactPrepared p;
  p.q8 = cutter.Take<int8_t>(sizes.q8);
  p.k8 = cutter.Take<int8_t>(sizes.k8);
  p.v8 = cutter.Take<uint8_t>(sizes.v8);
  p.q_scale = cutter.Take<float>(sizes.q_scale);
  p.k_scale = cutter.Take<float>(sizes.k_scale);
  p.v_scale = cutter.Take<float>(sizes.v_scale);
  p.k_mean = cutter.Take<uint16_t>(sizes.k_mean);
  p.partials = cutter.Take<float>(sizes.partials);
  p.not_finite = cutter.Take<uint64_t>(sizes.not_finite);
  return p;
}

}  // namespace

ExactPreparedSizes PreparedSizes(const ExactProblem& problem) {
  const exact::Geometry g = exact::GeometryOf(problem.path);
  const int64_t dim = problem.padded_dim();
  const int64_t q_tensors = problem.batch * problem.q_heads;
  const int64_t k_tensors = problem.batch * problem.k_heads;
  const int64_t q_rows = exact::RoundUp(problem.q_len, exact::kRowPad);
  const int64_t k_rows = exact::RoundUp(problem.k_len, exact::kRowPad);
  ExactPreparedSizes sizes;
  sizes.q8 = q_tensors * q_rows * dim;
  sizes.k8 = k_tensors * k_rows * dim;
  sizes.v8 = k_tensors * k_rows * dim;
  sizes.q_scale = q_tensors * exact::QScales(g, problem.granularity, problem.q_len);
  sizes.k_scale = k_tensors * exact::KScales(g, problem.granularity, problem.k_len);
  sizes.v_scale = k_tensors * dim;
  sizes.k_mean = k_tensors * dim;
  sizes.partials = k_tensors * exact::CeilDiv(problem.k_len, kMeanChunk) * 2 * dim;
  return sizes;
}

int64_t WorkspaceBytes(const ExactProblem& problem) {
  Cutter cutter(nullptr);
  Cut(problem, cutter);
  return cutter.offset();
}

ExactPrepared PreparedIn(const ExactProblem& problem, void* workspace) {
  Cutter cutter(workspace);
  return Cut(problem, cutter);
}

float DefaultSmScale(int64_t head_dim) {
  return static_cast<float>(std::pow(static_cast<double>(head_dim), -0.5));
}

}  // namespace h3rt
