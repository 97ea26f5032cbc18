// One-dimensional layers of the audio VAE, in terms of the ops. Source: spec h3 section 7.
#pragma once

#include <cstdint>
#include <string>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::audio_vae {

// `prefix`.weight and, where the layer has one, `prefix`.bias.
struct Conv1dWeights {
  ConstTensorView weight;  // [co, ci, 1, 1, k], or [ci, co, k] of a transposed convolution
  ConstTensorView bias;    // [co] or null
};

struct Conv1dShape {
  int64_t ci = 0;
  int64_t co = 0;
  int64_t k = 1;
};

// A contiguous weight; its bias is required unless `bias_optional`.
absl::StatusOr<Conv1dWeights> GetConv1d(const WeightStore& weights, const std::string& prefix,
                                        const Conv1dShape& shape, bool bias_optional = false);
absl::StatusOr<Conv1dWeights> GetConvTranspose1d(const WeightStore& weights,
                                                 const std::string& prefix,
                                                 const Conv1dShape& shape);

// A contiguous F32 vector; the file may hold it with extra dimensions of 1 (`held`).
absl::StatusOr<ConstTensorView> GetVector(const WeightStore& weights, const std::string& name,
                                          const Shape& held);

struct Conv1dSteps {
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;  // zeros on both sides
};

// x [ci, n] -> y [co, n'], both contiguous F32.
absl::Status Conv1d(const Conv1dWeights& conv, const Conv1dSteps& steps, const ConstTensorView& x,
                    const TensorView& y, const ExecContext& context);

// Floats that the convolution op holds for a thread, as the op itself says, while it makes n
// outputs a channel. A shape without `co` has as many outputs as inputs.
int64_t Conv1dPanel(const Conv1dShape& shape, int64_t n);
int64_t ConvTranspose1dPanel(const Conv1dShape& shape, int64_t rate);

}  // namespace h3rt::audio_vae
