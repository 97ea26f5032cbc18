// The sigma grid in float32, operation by operation as the public scheduler rounds it.
#include "h3rt/model/schedule/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "fmt/format.h"
#include "h3rt/base/check.h"

namespace h3rt {
namespace {

constexpr int64_t kMaxForwards = 10000;
constexpr float kStartTolerance = 1e-3f;

// torch.linspace(1, 0, n): the first half from the start with one rounding (a fused multiply-add),
// the second half from the end (C1).
float GridPoint(int64_t i, int64_t n, float step) {
  if (i < n / 2) return std::fma(step, static_cast<float>(i), 1.0f);
  return 0.0f - step * static_cast<float>(n - 1 - i);
}

absl::Status BadShift(double shift) {
  return InvalidArgument({.what = "sigma shift gives no grid from 1 to 0",
                          .got = fmt::format("{}", shift),
                          .wanted = "a positive number, for instance 12 (video) or 3 (audio)",
                          .where = "shift"});
}

}  // namespace

absl::StatusOr<Schedule> MakeSchedule(int64_t forwards, double shift) {
  if (forwards < 1 || forwards > kMaxForwards) {
    return InvalidArgument({.what = "number of forwards is out of range",
                            .got = fmt::format("{}", forwards),
                            .wanted = fmt::format("1 to {}", kMaxForwards),
                            .where = "forwards"});
  }
  const auto s = static_cast<float>(shift);
  if (!(std::isfinite(s) && s > 0.0f)) return BadShift(shift);
  const auto s_minus_1 = static_cast<float>(shift - 1.0);

  const int64_t n = forwards + 1;
  const float step = (0.0f - 1.0f) / static_cast<float>(n - 1);
  Schedule schedule;
  schedule.sigmas.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const float b = GridPoint(i, n, step);
    const float sigma = (s * b) / (1.0f + s_minus_1 * b);
    if (!std::isfinite(sigma)) return BadShift(shift);
    if (schedule.sigmas.empty() || schedule.sigmas.back() != sigma) {
      schedule.sigmas.push_back(sigma);
    }
  }
  // Extreme shifts collapse the grid or lose 1 - s to rounding; what is left must still go from 1
  // to 0. Neighbours close to 1 may differ in the wrong direction by a rounding, as they do in the
  // public scheduler.
  const bool usable = schedule.sigmas.size() >= 2 && schedule.sigmas.back() == 0.0f &&
                      std::abs(schedule.sigmas.front() - 1.0f) <= kStartTolerance &&
                      std::count(schedule.sigmas.begin(), schedule.sigmas.end(), 0.0f) == 1;
  if (!usable) return BadShift(shift);
  schedule.timesteps.reserve(schedule.sigmas.size() - 1);
  for (size_t i = 0; i + 1 < schedule.sigmas.size(); ++i) {
    schedule.timesteps.push_back(1.0f - schedule.sigmas[i]);
  }
  return schedule;
}

void EulerStep(const Schedule& schedule, int64_t step, std::span<const float> velocity,
               std::span<float> x) {
  H3RT_CHECK(step >= 0 && step < schedule.forwards() && velocity.size() == x.size());
  const auto i = static_cast<size_t>(step);
  // x0 uses the noise level recovered from the timestep, the ratio that of the grid.
  const float noise = 1.0f - schedule.timesteps[i];
  const float ratio = schedule.sigmas[i + 1] / schedule.sigmas[i];
  const float rest = 1.0f - ratio;
  for (size_t k = 0; k < x.size(); ++k) {
    const float x0 = x[k] + noise * velocity[k];
    x[k] = ratio * x[k] + rest * x0;
  }
}

void MixConditionNoise(std::span<const float> noise, std::span<float> z) {
  H3RT_CHECK(noise.size() == z.size());
  constexpr float kKeep = 0.999f;
  constexpr float kNoise = 1.0f - 0.999f;  // 0.00099998713, not 0.001 (C7)
  for (size_t k = 0; k < z.size(); ++k) z[k] = kKeep * z[k] + kNoise * noise[k];
}

}  // namespace h3rt
