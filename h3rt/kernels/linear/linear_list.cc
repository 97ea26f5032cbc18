#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/kernels/linear/linear_check.h"
#include "h3rt/kernels/linear/onednn/linear_onednn.h"
#include "h3rt/kernels/linear/ref/linear_ref.h"

namespace h3rt {
namespace {

// oneDNN wants rows of x that do not overlap.
std::string OnednnWhyNot(const LinearParams& params) {
  if (params.x.dim(0) > 1 && params.x.stride(0) < params.x.dim(1)) return "rows of x overlap";
  return {};
}

constexpr auto kCandidates = std::to_array<Candidate<LinearParams>>({
    {"onednn", OnednnWhyNot, LinearOnednn},
    {"ref", [](const LinearParams&) { return std::string(); }, LinearRef},
});

}  // namespace

absl::Status Linear(const LinearParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckLinear(params));
  return RunCandidate<LinearParams>("linear", kCandidates, params, context);
}

}  // namespace h3rt
