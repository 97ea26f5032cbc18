#include "h3rt/model/audio_vae/layers.h"

#include <algorithm>

#include "h3rt/kernels/conv/conv.h"

namespace h3rt::audio_vae {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

absl::StatusOr<ConstTensorView> GetF32(const WeightStore& weights, const std::string& name,
                                       const Shape& shape) {
  H3RT_ASSIGN_OR_RETURN(ConstTensorView view, weights.Get(name, shape));
  // Lower precision is audible, so that a file of half precision is not taken for one of F32.
  if (view.dtype() == DType::kF32 && view.contiguous()) return view;
  return DataLoss(
      {.what = "weight of the audio VAE",
       .got = std::string(NameOf(view.dtype())) + (view.contiguous() ? "" : ", not contiguous"),
       .wanted = "F32, contiguous",
       .where = name});
}

}  // namespace

absl::StatusOr<Conv1dWeights> GetConv1d(const WeightStore& weights, const std::string& prefix,
                                        const Conv1dShape& shape, bool bias_optional) {
  Conv1dWeights conv;
  H3RT_ASSIGN_OR_RETURN(conv.weight,
                        GetF32(weights, prefix + ".weight", {shape.co, shape.ci, shape.k}));
  conv.weight = conv.weight.Reshape({shape.co, shape.ci, 1, 1, shape.k});
  if (bias_optional && !weights.Has(prefix + ".bias")) return conv;
  H3RT_ASSIGN_OR_RETURN(conv.bias, GetF32(weights, prefix + ".bias", Shape({shape.co})));
  return conv;
}

absl::StatusOr<Conv1dWeights> GetConvTranspose1d(const WeightStore& weights,
                                                 const std::string& prefix,
                                                 const Conv1dShape& shape) {
  Conv1dWeights conv;
  H3RT_ASSIGN_OR_RETURN(conv.weight,
                        GetF32(weights, prefix + ".weight", {shape.ci, shape.co, shape.k}));
  conv.weight = conv.weight.Reshape({shape.ci, shape.co, shape.k});
  H3RT_ASSIGN_OR_RETURN(conv.bias, GetF32(weights, prefix + ".bias", Shape({shape.co})));
  return conv;
}

absl::StatusOr<ConstTensorView> GetVector(const WeightStore& weights, const std::string& name,
                                          const Shape& held) {
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, GetF32(weights, name, held));
  return view.Reshape(Shape({held.elements()}));
}

absl::Status Conv1d(const Conv1dWeights& conv, const Conv1dSteps& steps, const ConstTensorView& x,
                    const TensorView& y, const ExecContext& context) {
  return Conv3d({.x = x.Reshape({x.dim(0), 1, 1, x.dim(1)}),
                 .weight = conv.weight,
                 .bias = conv.bias,
                 .y = y.Reshape({y.dim(0), 1, 1, y.dim(1)}),
                 .stride = {1, 1, steps.stride},
                 .dilation = {1, 1, steps.dilation},
                 .pad_begin = {0, 0, steps.pad},
                 .pad_end = {0, 0, steps.pad}},
                context);
}

int64_t Conv1dPanel(const Conv1dShape& shape, int64_t n) {
  const int64_t co = std::max(shape.ci, shape.co);  // no convolution here widens without saying so
  return ConvScratchBytes(co, shape.ci * shape.k, n, DType::kF32) / kFloat;
}

int64_t ConvTranspose1dPanel(const Conv1dShape& shape, int64_t rate) {
  return ConvTransposeScratchBytes(shape.ci, shape.co, shape.k, rate) / kFloat;
}

}  // namespace h3rt::audio_vae
