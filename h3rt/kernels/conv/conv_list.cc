#include <array>

#include "h3rt/base/candidates.h"
#include "h3rt/kernels/conv/conv.h"
#include "h3rt/kernels/conv/conv_check.h"
#include "h3rt/kernels/conv/onednn/conv_onednn.h"
#include "h3rt/kernels/conv/ref/conv_ref.h"

namespace h3rt {
namespace {

constexpr auto kConv3d = std::to_array<Candidate<Conv3dParams>>({
    {"onednn", [](const Conv3dParams&) { return std::string(); }, Conv3dOnednn},
    {"ref", [](const Conv3dParams&) { return std::string(); }, Conv3dRef},
});

constexpr auto kConvTranspose1d = std::to_array<Candidate<ConvTranspose1dParams>>({
    {"onednn", [](const ConvTranspose1dParams&) { return std::string(); }, ConvTranspose1dOnednn},
    {"ref", [](const ConvTranspose1dParams&) { return std::string(); }, ConvTranspose1dRef},
});

}  // namespace

absl::Status Conv3d(const Conv3dParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckConv3d(params));
  return RunCandidate<Conv3dParams>("conv", kConv3d, params, context);
}

absl::Status ConvTranspose1d(const ConvTranspose1dParams& params, const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(CheckConvTranspose1d(params));
  return RunCandidate<ConvTranspose1dParams>("conv", kConvTranspose1d, params, context);
}

}  // namespace h3rt
