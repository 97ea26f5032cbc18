// The MiniMax-H3 transformer in float64, without a rounding point. Source: spec h3 section 2, C8.
#pragma once

#include <cstdint>
#include <vector>

#include "h3rt/io/model_config.h"
#include "tests/golden/ref64/array.h"
#include "tests/golden/ref64/weights.h"

namespace h3rt::ref64 {

// Faults that a test plants on purpose, to show that a comparison would see them.
struct DitFaults {
  bool adjacent_rope_pairs = false;  // rotates (2j, 2j + 1) instead of (j, j + 3n)
  bool swapped_ffn_halves = false;   // silu(value) * gate
  bool swapped_qkv = false;          // k and v exchanged
};

struct DitInput {
  Array video;      // [n_v, video_row]
  Array audio;      // [n_a, audio_in_channels]
  Array text;       // [n, text_dim]
  Array positions;  // [rows, 3]
  std::vector<double> timesteps;
  std::vector<int64_t> row_timestep;  // [rows]
  std::vector<int64_t> tags;          // [rows]
  std::vector<int64_t> text_indices;
  std::vector<int64_t> audio_indices;
  std::vector<int64_t> video_indices;
};

struct DitOutput {
  Array token_refiner;            // [n, hidden]
  Array temb;                     // [m, time_embed]; empty in the pruned variant
  std::vector<Array> block_attn;  // branch outputs before gate and residual, [rows, hidden]
  std::vector<Array> block_ff;
  std::vector<Array> block;  // residual stream after the block
  Array norm_out;            // [rows, hidden], modulated
  Array video;               // [n_v, video_row], every row of the index list
  Array audio;               // [n_a, audio_in_channels]
};

// One evaluation. The public model takes positions and RoPE frequencies in float32; here they stay
// float64, which moves the outputs of a 124-frame request by 1e-8 (relative L2), so that nothing is
// rounded anywhere.
DitOutput DitForward(const DitConfig& config, const Weights& weights, const DitInput& input,
                     const DitFaults& faults = {});

}  // namespace h3rt::ref64
