// Small helpers over weights that both networks of the video VAE use.
#pragma once

#include <string>

#include "h3rt/base/status.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::video_vae {

// `prefix`.weight and `prefix`.bias.
struct Affine {
  ConstTensorView weight;
  ConstTensorView bias;
};

// A bias has as many elements as the weight has rows.
inline absl::StatusOr<Affine> GetAffine(const WeightStore& weights, const std::string& prefix,
                                        const Shape& weight) {
  Affine affine;
  H3RT_ASSIGN_OR_RETURN(affine.weight, weights.Get(prefix + ".weight", weight));
  H3RT_ASSIGN_OR_RETURN(affine.bias, weights.Get(prefix + ".bias", Shape({weight[0]})));
  return affine;
}

}  // namespace h3rt::video_vae
