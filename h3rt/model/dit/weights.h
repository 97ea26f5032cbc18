// The transformer's weights, found by name once. Private to the dit folder.
#pragma once

#include <string>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/tensor/view.h"

namespace h3rt::dit {

struct Affine {
  ConstTensorView weight;
  ConstTensorView bias;
};

// What refiner blocks and main blocks have in common.
struct LayerWeights {
  ConstTensorView norm1, norm2;
  ConstTensorView to_q, to_k, to_v;
  ConstTensorView norm_q, norm_k;
  ConstTensorView to_out;
  ConstTensorView ff_gate, ff_value, ff_out;
};

struct Weights {
  Affine proj_in, audio_proj_in, context_embedder;
  Affine time_1, time_2;        // null for pruned models
  ConstTensorView adaln_curve;  // [1025, rank] F32; null for full models
  std::vector<LayerWeights> refiner;
  ConstTensorView refiner_norm;
  std::vector<LayerWeights> blocks;
  std::vector<Affine> block_adaln;
  ConstTensorView final_norm;
  Affine final_adaln;
  Affine proj_out, audio_proj_out;
};

// Grid points of the AdaLN curve.
inline constexpr int64_t kCurvePoints = 1025;

absl::StatusOr<Weights> FindWeights(const DitConfig& config, const WeightStore& store);

}  // namespace h3rt::dit
