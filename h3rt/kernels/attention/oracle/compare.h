// Where two sets of checkpoints first differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "h3rt/kernels/attention/exact/checkpoints.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt {

struct CheckpointDifference {
  std::string observable;  // "qk", "x", "m", ...: the first that differs in the order below
  int64_t epoch = 0;       // of the first difference; -1 for observables of the end
  int64_t row = 0;         // its query row
  int64_t head = 0;        // batch * q_heads + head
  int64_t place = 0;       // key, lane or channel
  uint64_t got = 0;        // bits
  uint64_t wanted = 0;
  int64_t differing = 0;     // elements of that observable, over all epochs and rows
  std::string Text() const;  // "epoch 2, row 17, head 0: m: got 0x..., wanted 0x... (3 differ)"
};

struct CheckpointComparison {
  // The first difference in time: by epoch, then in the order qk, dq, s, x, m, a, p, d_lane, p8, u,
  // ro, then what stands at the end (d, r, out32, lse2), then by head, row, place. Empty: equal.
  std::vector<CheckpointDifference> first;  // none or one
  int64_t compared = 0;                     // elements, over observables present on both sides
};

// Byte for byte over all elements that both sides have; NaNs too. Epochs that a causal tile does
// not visit are left out.
CheckpointComparison CompareCheckpoints(const ExactProblem& problem, const ExactCheckpoints& got,
                                        const ExactCheckpoints& wanted);

// Elements of each observable, in the order of ExactCheckpoints' members, and host or device memory
// cut into them.
struct CheckpointSizes {
  int64_t qk = 0, dq = 0, s = 0, x = 0, p = 0, p8 = 0, m = 0, a = 0, d_lane = 0, u = 0, ro = 0;
  int64_t d = 0, r = 0, out32 = 0, lse2 = 0;
};
CheckpointSizes SizesOfCheckpoints(const ExactProblem& problem);
int64_t CheckpointBytes(const ExactProblem& problem);
ExactCheckpoints CheckpointsIn(const ExactProblem& problem, void* memory);

}  // namespace h3rt
