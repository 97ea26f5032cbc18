// What the tests of the oracle share: calls with all that they point to.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/kernels/attention/exact/inputs.h"
#include "h3rt/kernels/attention/exact/type16.h"
#include "h3rt/kernels/attention/oracle/compare.h"
#include "h3rt/kernels/attention/oracle/oracle.h"
#include "h3rt/kernels/attention/oracle/strict_f32.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/e4m3.h"
#include "h3rt/num/f16.h"

namespace h3rt {

inline constexpr std::array<ExactPath, 4> kPaths = {ExactPath::kA16, ExactPath::kA32,
                                                    ExactPath::kA1, ExactPath::kB};
inline constexpr std::array<ExactGranularity, 2> kGranularities = {ExactGranularity::kPerWarp,
                                                                   ExactGranularity::kPerThread};

// A problem with all that it points to. Everything that is written is poisoned before.
class Call {
 public:
  Call(const ExactInputSpec& spec, ExactPath path, ExactGranularity granularity,
       bool causal = false)
      : Call(spec, MakeExactInputs(spec), path, granularity, causal) {}

  Call(const ExactInputSpec& spec, ExactInputs given, ExactPath path, ExactGranularity granularity,
       bool causal = false)
      : inputs(std::move(given)) {
    problem = DenseProblem(spec, path, granularity);
    problem.causal = causal;
    problem.q.data = inputs.q.data();
    problem.k.data = inputs.k.data();
    problem.v.data = inputs.v.data();
    o.assign(inputs.q.size(), 0xffffu);
    problem.o.data = o.data();
    const size_t rows = static_cast<size_t>(spec.batch * spec.q_heads * spec.q_len);
    lse.assign(rows, strict::FromBits(~0u));
    lse_raw.assign(rows, strict::FromBits(~0u));
    problem.lse = lse.data();
    problem.lse_raw = lse_raw.data();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void Prepare() {
    workspace.assign(static_cast<size_t>(WorkspaceBytes(problem)), 0xffu);
    prepared = PreparedIn(problem, workspace.data());
    ASSERT_TRUE(OraclePrepare(problem, {}, prepared).ok());
  }
  void Attend(const ExactCheckpoints* captured = nullptr) {
    memory.assign(static_cast<size_t>(CheckpointBytes(problem)), 0xffu);
    at = CheckpointsIn(problem, memory.data());
    const absl::Status status = OracleAttention(problem, prepared, {}, captured, at);
    ASSERT_TRUE(status.ok()) << MessageOf(status);
  }
  void Run() {
    Prepare();
    Attend();
  }

  int64_t epochs() const {
    return SizesOfCheckpoints(problem).m / (problem.batch * problem.q_heads * problem.q_len);
  }
  exact::Geometry geometry() const { return exact::GeometryOf(problem.path); }
  float OutputAt(int64_t i) const { return WidenExact(problem.type, o[static_cast<size_t>(i)]); }

  ExactInputs inputs;
  ExactProblem problem;
  std::vector<uint16_t> o;
  std::vector<float> lse;
  std::vector<float> lse_raw;
  std::vector<unsigned char> workspace;
  ExactPrepared prepared;
  std::vector<unsigned char> memory;
  ExactCheckpoints at;
};

inline ExactInputSpec Spec(int64_t q_len, int64_t k_len, int64_t head_dim = 128) {
  ExactInputSpec spec;
  spec.q_len = q_len;
  spec.k_len = k_len;
  spec.head_dim = head_dim;
  spec.seed = 77;
  return spec;
}

}  // namespace h3rt
