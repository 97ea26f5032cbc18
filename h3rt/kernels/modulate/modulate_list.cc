#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/modulate/cpu/modulate_cpu.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/kernels/modulate/modulate_check.h"
#include "h3rt/kernels/modulate/ref/modulate_ref.h"

namespace h3rt {
namespace {

constexpr auto kModulate = std::to_array<Candidate<ModulateParams>>({
    {"cpu", [](const ModulateParams&) { return std::string(); }, ModulateCpu},
    {"ref", [](const ModulateParams&) { return std::string(); }, ModulateRef},
});
constexpr auto kGatedResidual = std::to_array<Candidate<GatedResidualParams>>({
    {"cpu", [](const GatedResidualParams&) { return std::string(); }, GatedResidualCpu},
    {"ref", [](const GatedResidualParams&) { return std::string(); }, GatedResidualRef},
});

}  // namespace

absl::Status Modulate(const ModulateParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckModulate(params));
  return RunCandidate<ModulateParams>("modulate", kModulate, params, context);
}

absl::Status GatedResidual(const GatedResidualParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckGatedResidual(params));
  return RunCandidate<GatedResidualParams>("modulate", kGatedResidual, params, context);
}

}  // namespace h3rt
