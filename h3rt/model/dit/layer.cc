#include "h3rt/model/dit/layer.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "fmt/format.h"
#include "h3rt/kernels/activation/activation.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/kernels/rope/rope.h"

namespace h3rt::dit {
namespace {

// y = x W^T, with the roundings of the layer.
absl::Status Project(const Layer& layer, const ConstTensorView& x, const ConstTensorView& weight,
                     const TensorView& y, const ExecContext& context) {
  return Linear({.x = x,
                 .weight = weight,
                 .bias = {},
                 .y = y,
                 .round_bf16 = layer.round,
                 .round_weight_bf16 = layer.round},
                context);
}

absl::Status NormAndModulate(const Layer& layer, const Workspace& w, const ConstTensorView& weight,
                             const ConstTensorView& shift, const ConstTensorView& scale,
                             const ExecContext& context) {
  H3RT_RETURN_IF_ERROR(RmsNorm({.x = w.x,
                                .weight = weight,
                                .y = w.n,
                                .eps = layer.config->norm_eps,
                                .round_bf16 = layer.round,
                                .round_weight_bf16 = layer.round},
                               context));
  if (shift.is_null()) return absl::OkStatus();
  return Modulate({.x = w.n,
                   .shift = shift,
                   .scale = scale,
                   .row = layer.modulation.row,
                   .y = w.n,
                   .round_bf16 = layer.round},
                  context);
}

// Query or key: projection, per-head norm, rotation.
absl::Status ProjectAndRotate(const Layer& layer, const ConstTensorView& n,
                              const ConstTensorView& weight, const ConstTensorView& norm,
                              const TensorView& out, const ExecContext& context) {
  const DitConfig& c = *layer.config;
  H3RT_RETURN_IF_ERROR(Project(layer, n, weight, out, context));
  const TensorView heads = out.Reshape({out.dim(0), c.num_heads, c.head_dim});
  H3RT_RETURN_IF_ERROR(RmsNorm({.x = heads,
                                .weight = norm,
                                .y = heads,
                                .eps = c.qk_norm_eps,
                                .round_bf16 = layer.round,
                                .round_weight_bf16 = layer.round},
                               context));
  if (layer.cos.is_null()) return absl::OkStatus();
  return Rope({.x = heads, .cos = layer.cos, .sin = layer.sin, .round_bf16 = layer.round}, context);
}

absl::Status AttentionBranch(const Layer& layer, const Workspace& w, const ExecContext& context) {
  const DitConfig& c = *layer.config;
  const LayerWeights& weights = *layer.weights;
  H3RT_RETURN_IF_ERROR(ProjectAndRotate(layer, w.n, weights.to_q, weights.norm_q, w.q, context));
  H3RT_RETURN_IF_ERROR(ProjectAndRotate(layer, w.n, weights.to_k, weights.norm_k, w.k, context));
  H3RT_RETURN_IF_ERROR(Project(layer, w.n, weights.to_v, w.v, context));
  const Shape heads = {w.q.dim(0), c.num_heads, c.head_dim};
  AttentionParams attention;
  attention.q = w.q.Reshape(heads);
  attention.k = w.k.Reshape(heads);
  attention.v = w.v.Reshape(heads);
  attention.o = w.o.Reshape(heads);
  attention.round_bf16 = layer.round;
  H3RT_RETURN_IF_ERROR(Attention(attention, context));
  return Project(layer, w.o, weights.to_out, w.n, context);
}

// Chunk by chunk in place: the chunk's input rows are dead once gate and value are computed.
absl::Status FfnBranch(const Layer& layer, const Workspace& w, const ExecContext& context) {
  const LayerWeights& weights = *layer.weights;
  const int64_t rows = w.n.dim(0);
  for (int64_t begin = 0; begin < rows; begin += kFfnRows) {
    const int64_t end = std::min(rows, begin + kFfnRows);
    const TensorView n = w.n.Slice(0, begin, end);
    const TensorView gate = w.gate.Slice(0, 0, end - begin);
    const TensorView value = w.value.Slice(0, 0, end - begin);
    H3RT_RETURN_IF_ERROR(Project(layer, n, weights.ff_gate, gate, context));
    H3RT_RETURN_IF_ERROR(Project(layer, n, weights.ff_value, value, context));
    H3RT_RETURN_IF_ERROR(
        SwiGlu({.gate = gate, .value = value, .y = gate, .round_bf16 = layer.round}, context));
    H3RT_RETURN_IF_ERROR(Project(layer, gate, weights.ff_out, n, context));
  }
  return absl::OkStatus();
}

absl::Status AddBranch(const Layer& layer, const Workspace& w, const ConstTensorView& gate,
                       const ExecContext& context) {
  return GatedResidual(
      {.x = w.x, .gate = gate, .row = layer.modulation.row, .y = w.n, .round_bf16 = layer.round},
      context);
}

bool IsNonFinite(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7fffffffu) >= 0x7f800000u;
}

}  // namespace

Workspace Workspace::First(int64_t rows) const {
  const auto count = static_cast<size_t>(rows);
  const auto first = [rows](const TensorView& view) {
    return view.Slice(0, 0, std::min(rows, view.dim(0)));
  };
  return {.x = first(x),
          .n = first(n),
          .q = first(q),
          .k = first(k),
          .v = first(v),
          .o = first(o),
          .gate = first(gate),
          .value = first(value),
          .block_row = block_row.first(count),
          .head_row = head_row.first(count)};
}

absl::Status RunLayer(const Layer& layer, const Workspace& w, const ExecContext& context,
                      const DitTap& tap) {
  const Modulation& m = layer.modulation;
  H3RT_RETURN_IF_ERROR(
      NormAndModulate(layer, w, layer.weights->norm1, m.shift_attn, m.scale_attn, context));
  H3RT_RETURN_IF_ERROR(AttentionBranch(layer, w, context));
  if (tap) tap(layer.name + ".attn", w.n);
  H3RT_RETURN_IF_ERROR(AddBranch(layer, w, m.gate_attn, context));
  H3RT_RETURN_IF_ERROR(
      NormAndModulate(layer, w, layer.weights->norm2, m.shift_ff, m.scale_ff, context));
  H3RT_RETURN_IF_ERROR(FfnBranch(layer, w, context));
  if (tap) tap(layer.name + ".ff", w.n);
  H3RT_RETURN_IF_ERROR(AddBranch(layer, w, m.gate_ff, context));
  if (tap) tap(layer.name, w.x);
  return CheckFinite(w.x, layer.name, context);
}

absl::StatusOr<int64_t> FindNonFinite(const ConstTensorView& x, const ExecContext& context) {
  constexpr int64_t kChunk = 1 << 16;
  const int64_t n = x.elements();
  const float* data = x.as<float>();
  std::atomic<int64_t> first{n};
  H3RT_RETURN_IF_ERROR(context.ParallelFor((n + kChunk - 1) / kChunk, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunk;
    const int64_t end = std::min(n, begin + kChunk);
    uint32_t found = 0;  // without a branch, so that the loop vectorises
    for (int64_t i = begin; i < end; ++i) found |= static_cast<uint32_t>(IsNonFinite(data[i]));
    if (found == 0) return absl::OkStatus();
    const int64_t at = std::find_if(data + begin, data + end, IsNonFinite) - data;
    int64_t known = first.load();
    while (at < known && !first.compare_exchange_weak(known, at)) {
    }
    return absl::OkStatus();
  }));
  return first.load() == n ? -1 : first.load();
}

absl::Status CheckFinite(const ConstTensorView& x, std::string_view where,
                         const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const int64_t at, FindNonFinite(x, context));
  if (at < 0) return absl::OkStatus();
  const int64_t width = x.dim(x.rank() - 1);
  // Inputs were checked before: a weight that is not finite, or values that overflow with it.
  return DataLoss(
      {.what = "the transformer makes a value that is not finite (from its weights or its inputs)",
       .got = fmt::format("{} in row {}, channel {}", x.as<float>()[at], at / width, at % width),
       .wanted = "finite values",
       .where = std::string(where)});
}

}  // namespace h3rt::dit
