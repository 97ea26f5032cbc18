// Exact attention on a device, for the golden command: one problem at a time, its buffers between
// guards. A build without device code, or a machine without a GPU, says so in MakeAttentionDevice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/status.h"
#include "h3rt/kernels/attention/exact/inputs.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt::lab {

// What two runs over outputs that were poisoned differently left, on the host, and what `launches`
// further ones agreed on. o is [batch, q_len, q_heads, head_dim] dense.
struct AttentionRun {
  std::vector<uint16_t> o, o_again;
  std::vector<float> lse, lse_again, lse_raw, lse_raw_again;
  std::vector<std::byte> workspace;  // PreparedIn(problem, workspace.data()) cuts it
  int64_t launches = 0;              // of the repetition
  int64_t distinct_digests = 0;      // over o, lse and lse_raw together
  int64_t guard_faults = 0;
  bool inputs_unchanged = false;
};

// Times of one part of the work in picoseconds, in the order A B B A of two arms that are the same.
struct AttentionTimes {
  std::string part;  // "preparation", "attention", "lse", "all-in"
  std::vector<int64_t> picoseconds;
};

// A problem's checkpoints as the capture kernels wrote them: CheckpointsIn(problem, memory.data()).
struct AttentionCapture {
  std::vector<std::byte> memory;
  AttentionRun run;  // of the capture kernel, once; no repetition
};

class AttentionDevice {
 public:
  virtual ~AttentionDevice() = default;
  // Uploads the inputs of a case, [batch, len, heads, head_dim] dense. Former ones are gone.
  virtual absl::Status Load(const ExactInputs& inputs) = 0;
  // `problem` holds shape and dense strides (GoldenProblem); pointers are put in here.
  // kResourceExhausted when it does not fit.
  virtual absl::StatusOr<AttentionRun> Run(ExactProblem problem, int64_t repeat,
                                           const CancelToken& cancel) = 0;
  // 2 * quads samples of each of two arms, every part; outputs are checked afterwards.
  virtual absl::StatusOr<std::vector<AttentionTimes>> Time(ExactProblem problem, int64_t quads,
                                                           const CancelToken& cancel) = 0;
  virtual absl::StatusOr<AttentionCapture> Capture(ExactProblem problem) = 0;
};
absl::StatusOr<std::unique_ptr<AttentionDevice>> MakeAttentionDevice();

}  // namespace h3rt::lab
