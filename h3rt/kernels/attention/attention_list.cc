#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/kernels/attention/attention_check.h"
#include "h3rt/kernels/attention/cpu/attention_cpu.h"
#include "h3rt/kernels/attention/ref/attention_ref.h"

namespace h3rt {
namespace {

constexpr auto kCandidates = std::to_array<Candidate<AttentionParams>>({
    {"cpu", [](const AttentionParams&) { return std::string(); }, AttentionCpu},
    {"ref", [](const AttentionParams&) { return std::string(); }, AttentionRef},
});

}  // namespace

absl::Status Attention(const AttentionParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckAttention(params));
  return RunCandidate<AttentionParams>("attention", kCandidates, params, context);
}

}  // namespace h3rt
