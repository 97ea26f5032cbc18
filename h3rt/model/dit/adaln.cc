// Time embedding and AdaLN of all timesteps of a run.
#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "h3rt/kernels/activation/activation.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/model/dit/embed.h"
#include "h3rt/model/dit/impl.h"
#include "h3rt/model/dit/layer.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

// A grid in float32 may leave [0, 1] by a rounding; anything else is the wrong unit (0..1000).
constexpr float kTimestepSlack = 1e-3f;

absl::Status CheckTimesteps(std::span<const float> timesteps) {
  if (timesteps.empty()) {
    return InvalidArgument(
        {.what = "timesteps", .got = "none", .wanted = "at least one", .where = "adaln"});
  }
  for (const float t : timesteps) {
    if (t >= -kTimestepSlack && t <= 1.0f + kTimestepSlack) continue;
    return InvalidArgument({.what = "timestep is out of range",
                            .got = fmt::format("{}", t),
                            .wanted = "0 to 1",
                            .where = "adaln"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int32_t> AdaLnTable::Find(float timestep) const {
  for (size_t i = 0; i < timesteps_.size(); ++i) {
    if (timesteps_[i] == timestep) return static_cast<int32_t>(i);
  }
  return Internal({.what = "timestep is not in the AdaLN table",
                   .got = fmt::format("{}", timestep),
                   .wanted = fmt::format("one of {} tabulated", timesteps_.size()),
                   .where = "adaln"});
}

ConstTensorView AdaLnTable::block(int64_t i) const {
  const Tensor& values = blocks_[static_cast<size_t>(i)];
  return values.view().Reshape({3 * values.shape()[0], values.shape()[1] / 3});
}

ConstTensorView AdaLnTable::final_norm() const { return final_.view(); }

uint64_t AdaLnTable::bytes() const {
  auto total = static_cast<uint64_t>(final_.bytes());
  for (const Tensor& block : blocks_) total += static_cast<uint64_t>(block.bytes());
  return total;
}

uint64_t Dit::AdaLnBytes(const DitConfig& c, int64_t timesteps, int threads) {
  const int64_t m = timesteps;
  int64_t floats = m * c.hidden * (18 * c.layers + 2);
  int64_t task = 0;
  if (threads > 0) {
    const bool pruned = c.adaln_rank > 0;
    const int64_t width = pruned ? c.adaln_rank : c.time_embed;
    floats += pruned ? m * width : m * (c.freq_dim + c.time_embed_hidden + width);
    task = LinearScratchBytes(m, 18 * c.hidden, width);
    if (!pruned) {
      task = std::max({task, LinearScratchBytes(m, c.time_embed_hidden, c.freq_dim),
                       LinearScratchBytes(m, c.time_embed, c.time_embed_hidden)});
    }
  }
  return static_cast<uint64_t>(floats) * sizeof(float) + static_cast<uint64_t>(threads * task);
}

absl::StatusOr<AdaLnTable> Dit::MakeAdaLn(std::span<const float> timesteps, Precision precision,
                                          const ExecContext& context, const DitTap& tap) const {
  const DitConfig& c = impl_->config;
  const dit::Weights& w = impl_->weights;
  const bool pruned = c.adaln_rank > 0;
  H3RT_RETURN_IF_ERROR(CheckTimesteps(timesteps));
  const auto m = static_cast<int64_t>(timesteps.size());
  const bool round = precision == Precision::kBf16;

  Tensor input;  // [m, time_embed or rank], what the AdaLN layers read
  if (pruned) {
    H3RT_ASSIGN_OR_RETURN(input, Tensor::Create(DType::kF32, {m, c.adaln_rank}));
    dit::LookUpCurve(timesteps, w.adaln_curve, input.view());
  } else {
    H3RT_ASSIGN_OR_RETURN(Tensor features, Tensor::Create(DType::kF32, {m, c.freq_dim}));
    dit::FillTimestepFeatures(timesteps, features.view());
    H3RT_ASSIGN_OR_RETURN(Tensor hidden, Tensor::Create(DType::kF32, {m, c.time_embed_hidden}));
    H3RT_RETURN_IF_ERROR(Linear({.x = features.view(),
                                 .weight = w.time_1.weight,
                                 .bias = w.time_1.bias,
                                 .y = hidden.view()},
                                context));
    H3RT_RETURN_IF_ERROR(Activate(Pointwise::kSilu, hidden.view(), hidden.view(), context));
    H3RT_ASSIGN_OR_RETURN(input, Tensor::Create(DType::kF32, {m, c.time_embed}));
    H3RT_RETURN_IF_ERROR(Linear(
        {.x = hidden.view(), .weight = w.time_2.weight, .bias = w.time_2.bias, .y = input.view()},
        context));
    if (tap) tap("temb", input.view());
    // SiLU in float32 first, the cast to bfloat16 second: the other order shifts the modulation of
    // every block the same way.
    H3RT_RETURN_IF_ERROR(Activate(Pointwise::kSilu, input.view(), input.view(), context));
    if (round) RoundToBf16InPlace(input.as<float>(), input.elements());
  }

  AdaLnTable table;
  table.timesteps_.assign(timesteps.begin(), timesteps.end());
  table.precision_ = precision;
  table.model_ = impl_->identity;
  const auto project = [&](const dit::Affine& affine, int64_t width,
                           const std::string& where) -> absl::StatusOr<Tensor> {
    H3RT_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF32, {m, width}));
    H3RT_RETURN_IF_ERROR(Linear({.x = input.view(),
                                 .weight = affine.weight,
                                 .bias = affine.bias,
                                 .y = out.view(),
                                 .round_bf16 = round,
                                 .round_weight_bf16 = round && !pruned},
                                context));
    H3RT_RETURN_IF_ERROR(dit::CheckFinite(std::as_const(out).view(), where, context));
    return out;
  };
  for (size_t i = 0; i < w.block_adaln.size(); ++i) {
    H3RT_ASSIGN_OR_RETURN(Tensor block, project(w.block_adaln[i], 18 * c.hidden,
                                                "adaln of block_" + std::to_string(i)));
    table.blocks_.push_back(std::move(block));
  }
  H3RT_ASSIGN_OR_RETURN(table.final_, project(w.final_adaln, 2 * c.hidden, "adaln of norm_out"));
  return table;
}

}  // namespace h3rt
