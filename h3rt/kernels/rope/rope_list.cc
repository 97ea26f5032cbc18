#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/rope/cpu/rope_cpu.h"
#include "h3rt/kernels/rope/ref/rope_ref.h"
#include "h3rt/kernels/rope/rope.h"
#include "h3rt/kernels/rope/rope_check.h"

namespace h3rt {
namespace {

constexpr auto kCandidates = std::to_array<Candidate<RopeParams>>({
    {"cpu", [](const RopeParams&) { return std::string(); }, RopeCpu},
    {"ref", [](const RopeParams&) { return std::string(); }, RopeRef},
});

}  // namespace

absl::Status Rope(const RopeParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckRope(params));
  return RunCandidate<RopeParams>("rope", kCandidates, params, context);
}

}  // namespace h3rt
