#include "h3rt/model/dit/weights.h"

#include <utility>

namespace h3rt::dit {
namespace {

// Keeps the first error, so that the list of weights reads as a list.
class Finder {
 public:
  explicit Finder(const WeightStore& store) : store_(store) {}

  ConstTensorView Get(const std::string& name, const Shape& shape) {
    absl::StatusOr<ConstTensorView> view = store_.Get(name, shape);
    if (view.ok()) return *view;
    if (status_.ok()) status_ = view.status();
    return {};
  }

  Affine GetAffine(const std::string& name, int64_t out, int64_t in) {
    return {.weight = Get(name + ".weight", {out, in}), .bias = Get(name + ".bias", {out})};
  }

  LayerWeights GetLayer(const std::string& prefix, const DitConfig& c) {
    LayerWeights w;
    w.norm1 = Get(prefix + "norm1.weight", {c.hidden});
    w.norm2 = Get(prefix + "norm2.weight", {c.hidden});
    w.to_q = Get(prefix + "attn.to_q.weight", {c.inner(), c.hidden});
    w.to_k = Get(prefix + "attn.to_k.weight", {c.inner(), c.hidden});
    w.to_v = Get(prefix + "attn.to_v.weight", {c.inner(), c.hidden});
    w.norm_q = Get(prefix + "attn.norm_q.weight", {c.head_dim});
    w.norm_k = Get(prefix + "attn.norm_k.weight", {c.head_dim});
    w.to_out = Get(prefix + "attn.to_out.0.weight", {c.hidden, c.inner()});
    w.ff_gate = Get(prefix + "ff.gate.weight", {c.ffn, c.hidden});
    w.ff_value = Get(prefix + "ff.value.weight", {c.ffn, c.hidden});
    w.ff_out = Get(prefix + "ff.net.2.weight", {c.hidden, c.ffn});
    return w;
  }

  const absl::Status& status() const { return status_; }

 private:
  const WeightStore& store_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Weights> FindWeights(const DitConfig& c, const WeightStore& store) {
  Finder find(store);
  Weights w;
  w.proj_in = find.GetAffine("proj_in", c.hidden, c.video_row());
  w.audio_proj_in = find.GetAffine("audio_proj_in", c.hidden, c.audio_in_channels);
  w.context_embedder = find.GetAffine("context_embedder", c.hidden, c.text_dim);
  if (c.adaln_rank > 0) {
    w.adaln_curve = find.Get("adaln_t_table", {kCurvePoints, c.adaln_rank});
  } else {
    w.time_1 = find.GetAffine("time_embedder.linear_1", c.time_embed_hidden, c.freq_dim);
    w.time_2 = find.GetAffine("time_embedder.linear_2", c.time_embed, c.time_embed_hidden);
  }
  for (int64_t i = 0; i < c.refiner_layers; ++i) {
    w.refiner.push_back(
        find.GetLayer("token_refiner.refiner_blocks." + std::to_string(i) + ".", c));
  }
  w.refiner_norm = find.Get("token_refiner.final_norm.weight", {c.hidden});
  const int64_t adaln_width = c.adaln_rank > 0 ? c.adaln_rank : c.time_embed;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string prefix = "transformer_blocks." + std::to_string(i) + ".";
    w.blocks.push_back(find.GetLayer(prefix, c));
    w.block_adaln.push_back(
        find.GetAffine(prefix + "adaln_proj.linear", 18 * c.hidden, adaln_width));
  }
  w.final_norm = find.Get("norm_out.norm.weight", {c.hidden});
  w.final_adaln = find.GetAffine("norm_out.linear", 2 * c.hidden, adaln_width);
  w.proj_out = find.GetAffine("proj_out", c.video_row(), c.hidden);
  w.audio_proj_out = find.GetAffine("audio_proj_out", c.audio_in_channels, c.hidden);
  H3RT_RETURN_IF_ERROR(find.status());
  if (!w.adaln_curve.is_null() &&
      (w.adaln_curve.dtype() != DType::kF32 || !w.adaln_curve.contiguous())) {
    return DataLoss({.what = "weight adaln_t_table",
                     .got = std::string(NameOf(w.adaln_curve.dtype())),
                     .wanted = "contiguous F32",
                     .where = "checkpoint"});
  }
  return w;
}

}  // namespace h3rt::dit
