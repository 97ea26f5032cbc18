// The flow-matching grid and its Euler step, bit for bit as the public scheduler computes them.
// Source: spec h3 section 4, C1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

// n grid points, the last sigma is 0; timesteps are 1 - sigma for all but the last.
struct Schedule {
  std::vector<float> sigmas;
  std::vector<float> timesteps;
  int64_t forwards() const { return static_cast<int64_t>(timesteps.size()); }
};

// `forwards` model evaluations (other tools count grid points, one more). kInvalidArgument for
// forwards outside [1, 10000] or a shift that is not finite and positive. Consecutive duplicates
// are dropped as in the public scheduler.
absl::StatusOr<Schedule> MakeSchedule(int64_t forwards, double shift);

// x_{i+1} = r x + (1 - r) x0 with x0 = x + (1 - t_i) v, r = sigma_{i+1} / sigma_i, all in float32,
// every operation rounded, no FMA. `velocity` points toward data. x is changed in place; step <
// forwards.
void EulerStep(const Schedule& schedule, int64_t step, std::span<const float> velocity,
               std::span<float> x);

// Mixing noise into condition latents: x = 0.999f z + (1.0f - 0.999f) eps (C7).
void MixConditionNoise(std::span<const float> noise, std::span<float> z);

}  // namespace h3rt
