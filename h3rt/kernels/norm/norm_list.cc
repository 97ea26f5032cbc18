#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/norm/cpu/norm_cpu.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/kernels/norm/norm_check.h"
#include "h3rt/kernels/norm/ref/norm_ref.h"

namespace h3rt {
namespace {

template <typename Params>
std::string TakesAll(const Params& /*params*/) {
  return {};
}

constexpr auto kRmsNorm = std::to_array<Candidate<RmsNormParams>>({
    {"cpu", TakesAll<RmsNormParams>, RmsNormCpu},
    {"ref", TakesAll<RmsNormParams>, RmsNormRef},
});
constexpr auto kLayerNorm = std::to_array<Candidate<LayerNormParams>>({
    {"cpu", TakesAll<LayerNormParams>, LayerNormCpu},
    {"ref", TakesAll<LayerNormParams>, LayerNormRef},
});
constexpr auto kGroupNorm = std::to_array<Candidate<GroupNormParams>>({
    {"cpu", TakesAll<GroupNormParams>, GroupNormCpu},
    {"ref", TakesAll<GroupNormParams>, GroupNormRef},
});

}  // namespace

absl::Status RmsNorm(const RmsNormParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckRmsNorm(params));
  return RunCandidate<RmsNormParams>("norm", kRmsNorm, params, context);
}

absl::Status LayerNorm(const LayerNormParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckLayerNorm(params));
  return RunCandidate<LayerNormParams>("norm", kLayerNorm, params, context);
}

absl::Status GroupNorm(const GroupNormParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckGroupNorm(params));
  return RunCandidate<GroupNormParams>("norm", kGroupNorm, params, context);
}

}  // namespace h3rt
