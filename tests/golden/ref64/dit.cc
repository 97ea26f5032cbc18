#include "tests/golden/ref64/dit.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "h3rt/base/check.h"
#include "tests/golden/ref64/ops.h"

namespace h3rt::ref64 {
namespace {

// Angles of the rotary embedding, [rows, 3 n]: position axis by axis times the n frequencies.
Array RopeAngles(const DitConfig& config, const Array& positions) {
  const int64_t rows = positions.dim(0);
  const int64_t n = config.rope_freq_dim;
  Array angles({rows, 3 * n});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t axis = 0; axis < 3; ++axis) {
      const double position = positions.p()[r * 3 + axis];
      for (int64_t j = 0; j < n; ++j) {
        const double exponent = -static_cast<double>(j) / static_cast<double>(n);
        angles.p()[r * 3 * n + axis * n + j] = position * std::pow(config.rope_theta, exponent);
      }
    }
  }
  return angles;
}

// Rotates the first 6 n channels of every head of x [rows, heads * d] in place.
void Rotate(const DitConfig& config, const Array& angles, const DitFaults& faults, Array& x) {
  const int64_t rows = x.dim(0);
  const int64_t pairs = angles.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t head = 0; head < config.num_heads; ++head) {
      double* q = x.p() + (r * config.num_heads + head) * config.head_dim;
      for (int64_t j = 0; j < pairs; ++j) {
        const int64_t first = faults.adjacent_rope_pairs ? 2 * j : j;
        const int64_t second = faults.adjacent_rope_pairs ? 2 * j + 1 : j + pairs;
        const double c = std::cos(angles.p()[r * pairs + j]);
        const double s = std::sin(angles.p()[r * pairs + j]);
        const double a = q[first];
        const double b = q[second];
        q[first] = a * c - b * s;
        q[second] = b * c + a * s;
      }
    }
  }
}

// RMSNorm of every head of x [rows, heads * d] by itself.
Array NormHeads(const DitConfig& config, const Array& x, const Array& w) {
  const int64_t rows = x.dim(0);
  const Array split = Reshaped(x, {rows * config.num_heads, config.head_dim});
  return Reshaped(RmsNorm(split, &w, config.qk_norm_eps), {rows, config.inner()});
}

// The attention branch of a block; `angles` is null for the refiner, which has no RoPE.
Array AttentionBranch(const DitConfig& config, const Weights& weights, const std::string& prefix,
                      const Array& n, const Array* angles, const DitFaults& faults) {
  Array q = Linear(n, weights, prefix + "attn.to_q");
  Array k = Linear(n, weights, prefix + (faults.swapped_qkv ? "attn.to_v" : "attn.to_k"));
  const Array v = Linear(n, weights, prefix + (faults.swapped_qkv ? "attn.to_k" : "attn.to_v"));
  q = NormHeads(config, q, weights.Get(prefix + "attn.norm_q.weight"));
  k = NormHeads(config, k, weights.Get(prefix + "attn.norm_k.weight"));
  if (angles != nullptr) {
    Rotate(config, *angles, faults, q);
    Rotate(config, *angles, faults, k);
  }
  const Array o = Attention(q, k, v, config.num_heads, /*causal=*/false);
  return Linear(o, weights, prefix + "attn.to_out.0");
}

Array FfnBranch(const Weights& weights, const std::string& prefix, const Array& n,
                const DitFaults& faults) {
  Array gate = Linear(n, weights, prefix + "ff.gate");
  Array value = Linear(n, weights, prefix + "ff.value");
  if (faults.swapped_ffn_halves) std::swap(gate, value);
  for (int64_t i = 0; i < gate.elements(); ++i) gate.p()[i] = Silu(gate.p()[i]) * value.p()[i];
  return Linear(gate, weights, prefix + "ff.net.2");
}

Array RefineText(const DitConfig& config, const Weights& weights, const Array& text,
                 const DitFaults& faults) {
  Array x = Linear(text, weights, "context_embedder");
  for (int64_t r = 0; r < config.refiner_layers; ++r) {
    const std::string prefix = "token_refiner.refiner_blocks." + std::to_string(r) + ".";
    Array n = RmsNorm(x, &weights.Get(prefix + "norm1.weight"), config.norm_eps);
    x = Add(x, AttentionBranch(config, weights, prefix, n, nullptr, faults));
    n = RmsNorm(x, &weights.Get(prefix + "norm2.weight"), config.norm_eps);
    x = Add(x, FfnBranch(weights, prefix, n, faults));
  }
  return RmsNorm(x, &weights.Get("token_refiner.final_norm.weight"), config.norm_eps);
}

// [m, time_embed]: L2(silu(L1([cos(tau f) | sin(tau f)]))).
Array TimeEmbedding(const DitConfig& config, const Weights& weights,
                    const std::vector<double>& timesteps) {
  const auto m = static_cast<int64_t>(timesteps.size());
  const int64_t half = config.freq_dim / 2;
  Array embedding({m, config.freq_dim});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < half; ++j) {
      const double f =
          std::exp(-std::log(1e4) * static_cast<double>(j) / static_cast<double>(half));
      const double angle = timesteps[static_cast<size_t>(i)] * f;
      embedding.p()[i * config.freq_dim + j] = std::cos(angle);
      embedding.p()[i * config.freq_dim + half + j] = std::sin(angle);
    }
  }
  Array hidden = Linear(embedding, weights, "time_embedder.linear_1");
  for (int64_t i = 0; i < hidden.elements(); ++i) hidden.p()[i] = Silu(hidden.p()[i]);
  return Linear(hidden, weights, "time_embedder.linear_2");
}

// What the AdaLN linears read: silu(temb), or the interpolated curve of the pruned variant.
Array AdaLnInput(const Weights& weights, const std::vector<double>& timesteps, const Array& temb) {
  if (!weights.Has("adaln_t_table")) {
    Array s = temb;
    for (int64_t i = 0; i < s.elements(); ++i) s.p()[i] = Silu(s.p()[i]);
    return s;
  }
  const Array& table = weights.Get("adaln_t_table");
  const int64_t last = table.dim(0) - 1;
  const int64_t rank = table.dim(1);
  const auto m = static_cast<int64_t>(timesteps.size());
  Array s({m, rank});
  for (int64_t i = 0; i < m; ++i) {
    const double p =
        std::clamp(timesteps[static_cast<size_t>(i)], 0.0, 1.0) * static_cast<double>(last);
    const int64_t at = std::min(static_cast<int64_t>(std::floor(p)), last - 1);
    for (int64_t j = 0; j < rank; ++j) {
      const double low = table.p()[at * rank + j];
      const double high = table.p()[(at + 1) * rank + j];
      s.p()[i * rank + j] = low + (high - low) * (p - static_cast<double>(at));
    }
  }
  return s;
}

// n * (1 + scale) + shift, where both are found at chunk * hidden of row table_row(r) of `table`.
template <typename RowOf>
Array Modulate(const Array& n, const Array& table, int64_t shift_chunk, int64_t scale_chunk,
               const RowOf& table_row) {
  const int64_t hidden = n.dim(1);
  Array y = n;
  for (int64_t r = 0; r < n.dim(0); ++r) {
    const double* row = table.p() + table_row(r);
    const double* shift = row + shift_chunk * hidden;
    const double* scale = row + scale_chunk * hidden;
    double* out = y.p() + r * hidden;
    for (int64_t c = 0; c < hidden; ++c) out[c] = out[c] * (1.0 + scale[c]) + shift[c];
  }
  return y;
}

template <typename RowOf>
void AddGated(const Array& branch, const Array& table, int64_t gate_chunk, const RowOf& table_row,
              Array& x) {
  const int64_t hidden = x.dim(1);
  for (int64_t r = 0; r < x.dim(0); ++r) {
    const double* gate = table.p() + table_row(r) + gate_chunk * hidden;
    for (int64_t c = 0; c < hidden; ++c) {
      x.p()[r * hidden + c] += gate[c] * branch.p()[r * hidden + c];
    }
  }
}

void Scatter(const Array& rows, const std::vector<int64_t>& indices, Array& x) {
  const int64_t width = x.dim(1);
  for (size_t i = 0; i < indices.size(); ++i) {
    const double* from = rows.p() + static_cast<int64_t>(i) * width;
    std::copy(from, from + width, x.p() + indices[i] * width);
  }
}

Array Gather(const Array& x, const std::vector<int64_t>& indices) {
  const int64_t width = x.dim(1);
  Array y({static_cast<int64_t>(indices.size()), width});
  for (size_t i = 0; i < indices.size(); ++i) {
    const double* from = x.p() + indices[i] * width;
    std::copy(from, from + width, y.p() + static_cast<int64_t>(i) * width);
  }
  return y;
}

}  // namespace

DitOutput DitForward(const DitConfig& config, const Weights& weights, const DitInput& input,
                     const DitFaults& faults) {
  DitOutput out;
  const int64_t hidden = config.hidden;
  Array x({input.positions.dim(0), hidden});
  out.token_refiner = RefineText(config, weights, input.text, faults);
  Scatter(out.token_refiner, input.text_indices, x);
  Scatter(Linear(input.audio, weights, "audio_proj_in"), input.audio_indices, x);
  Scatter(Linear(input.video, weights, "proj_in"), input.video_indices, x);

  const Array angles = RopeAngles(config, input.positions);
  if (!weights.Has("adaln_t_table")) out.temb = TimeEmbedding(config, weights, input.timesteps);
  const Array adaln = AdaLnInput(weights, input.timesteps, out.temb);
  const auto timestep = [&](int64_t r) { return input.row_timestep[static_cast<size_t>(r)]; };
  const auto block_row = [&](int64_t r) {
    return (3 * timestep(r) + input.tags[static_cast<size_t>(r)]) * 6 * hidden;
  };
  const auto final_row = [&](int64_t r) { return timestep(r) * 2 * hidden; };

  for (int64_t b = 0; b < config.layers; ++b) {
    const std::string prefix = "transformer_blocks." + std::to_string(b) + ".";
    const Array table = Linear(adaln, weights, prefix + "adaln_proj.linear");
    Array n = RmsNorm(x, &weights.Get(prefix + "norm1.weight"), config.norm_eps);
    n = Modulate(n, table, 0, 1, block_row);
    const Array attention = AttentionBranch(config, weights, prefix, n, &angles, faults);
    AddGated(attention, table, 2, block_row, x);
    n = RmsNorm(x, &weights.Get(prefix + "norm2.weight"), config.norm_eps);
    n = Modulate(n, table, 3, 4, block_row);
    const Array ff = FfnBranch(weights, prefix, n, faults);
    AddGated(ff, table, 5, block_row, x);
    out.block_attn.push_back(attention);
    out.block_ff.push_back(ff);
    out.block.push_back(x);
  }

  const Array table = Linear(adaln, weights, "norm_out.linear");
  const Array n = RmsNorm(x, &weights.Get("norm_out.norm.weight"), config.final_norm_eps);
  out.norm_out = Modulate(n, table, 0, 1, final_row);
  out.video = Linear(Gather(out.norm_out, input.video_indices), weights, "proj_out");
  out.audio = Linear(Gather(out.norm_out, input.audio_indices), weights, "audio_proj_out");
  return out;
}

}  // namespace h3rt::ref64
