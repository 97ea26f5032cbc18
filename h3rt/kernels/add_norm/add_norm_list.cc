#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/add_norm/add_norm.h"
#include "h3rt/kernels/add_norm/add_norm_check.h"
#include "h3rt/kernels/add_norm/ref/add_norm_ref.h"

namespace h3rt {
namespace {

std::string TakesAll(const AddNormParams& /*params*/) { return {}; }

constexpr auto kAddNorm = std::to_array<Candidate<AddNormParams>>({
    {"strict", TakesAll, AddNormStrict},
    {"ref", TakesAll, AddNormRef},
});

}  // namespace

absl::Status AddNorm(const AddNormParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckAddNorm(params));
  return RunCandidate<AddNormParams>("add_norm", kAddNorm, params, context);
}

}  // namespace h3rt
