#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/activation/activation.h"
#include "h3rt/kernels/activation/activation_check.h"
#include "h3rt/kernels/activation/cpu/activation_cpu.h"
#include "h3rt/kernels/activation/ref/activation_ref.h"

namespace h3rt {
namespace {

template <typename Params>
std::string TakesAll(const Params& /*params*/) {
  return {};
}

constexpr auto kSwiGlu = std::to_array<Candidate<SwiGluParams>>({
    {"cpu", TakesAll<SwiGluParams>, SwiGluCpu},
    {"ref", TakesAll<SwiGluParams>, SwiGluRef},
});
constexpr auto kActivate = std::to_array<Candidate<ActivateParams>>({
    {"cpu", TakesAll<ActivateParams>, ActivateCpu},
    {"ref", TakesAll<ActivateParams>, ActivateRef},
});
constexpr auto kSnake = std::to_array<Candidate<SnakeParams>>({
    {"cpu", TakesAll<SnakeParams>, SnakeCpu},
    {"ref", TakesAll<SnakeParams>, SnakeRef},
});
constexpr auto kAntiAliasedSnake = std::to_array<Candidate<AntiAliasedSnakeParams>>({
    {"cpu", TakesAll<AntiAliasedSnakeParams>, AntiAliasedSnakeCpu},
    {"ref", TakesAll<AntiAliasedSnakeParams>, AntiAliasedSnakeRef},
});

}  // namespace

absl::Status SwiGlu(const SwiGluParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckSwiGlu(params));
  return RunCandidate<SwiGluParams>("activation", kSwiGlu, params, context);
}

absl::Status Activate(Pointwise function, const ConstTensorView& x, const TensorView& y,
                      const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckActivate(x, y));
  const ActivateParams params = {.function = function, .x = x, .y = y};
  return RunCandidate<ActivateParams>("activation", kActivate, params, context);
}

absl::Status Snake(const SnakeParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckSnake(params));
  return RunCandidate<SnakeParams>("activation", kSnake, params, context);
}

absl::Status AntiAliasedSnake(const AntiAliasedSnakeParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckAntiAliasedSnake(params));
  return RunCandidate<AntiAliasedSnakeParams>("activation", kAntiAliasedSnake, params, context);
}

}  // namespace h3rt
