// Tensors of the transformer: spec h3 sections 2.2 to 2.4.
#include <cmath>
#include <utility>

#include "h3rt/io/tensor_list.h"

namespace h3rt {
namespace {

class TransformerList {
 public:
  TransformerList(const DitConfig& config, CheckpointLayout layout)
      : c_(config), original_(layout != CheckpointLayout::kDiffusers), layout_(layout) {}

  std::vector<SourceTensor> Make() && {
    Island("video_patch_proj", "proj_in", c_.hidden, c_.video_row());
    Island("audio_patch_proj", "audio_proj_in", c_.hidden, c_.audio_in_channels);
    Linear("condition_proj", "context_embedder", c_.hidden, c_.text_dim, true);
    if (c_.adaln_rank == 0) {
      Island("time_embedder.proj_in", "time_embedder.linear_1", c_.time_embed_hidden, c_.freq_dim);
      Island("time_embedder.proj_out", "time_embedder.linear_2", c_.time_embed,
             c_.time_embed_hidden);
    } else {
      SourceTensor table = Base("adaln_t_table", "adaln_t_table", {kAdaLnGrid, c_.adaln_rank});
      table.role = Role::kTable;
      table.dtypes = DTypes::kF32;
      table.island = true;
      list_.push_back(std::move(table));
    }
    for (int64_t r = 0; r < c_.refiner_layers; ++r) {
      const std::string n = std::to_string(r);
      Block("token_refiner.blocks." + n + ".", "token_refiner.refiner_blocks." + n + ".");
    }
    Norm("token_refiner.final_norm.weight", "token_refiner.final_norm.weight", c_.hidden);
    for (int64_t i = 0; i < c_.layers; ++i) {
      const std::string original = "blocks." + std::to_string(i) + ".";
      const std::string diffusers = "transformer_blocks." + std::to_string(i) + ".";
      Block(original, diffusers);
      Linear(original + "adaln_proj.linear", diffusers + "adaln_proj.linear", 18 * c_.hidden,
             AdaLnWidth(), true);
    }
    Norm("final_layer.norm.weight", "norm_out.norm.weight", c_.hidden);
    Linear("final_layer.adaln_proj.linear", "norm_out.linear", 2 * c_.hidden, AdaLnWidth(), true);
    Island("final_layer.video_out", "proj_out", c_.video_row(), c_.hidden);
    Island("final_layer.audio_out", "audio_proj_out", c_.audio_in_channels, c_.hidden);
    if (original_) {
      SourceTensor frequencies = Base("rope.inv_freq", "", {c_.rope_freq_dim});
      frequencies.split = Split::kDrop;
      frequencies.role = Role::kFrequencies;
      frequencies.optional = true;
      for (int64_t j = 0; j < c_.rope_freq_dim; ++j) {
        const double exponent = static_cast<double>(j) / static_cast<double>(c_.rope_freq_dim);
        frequencies.wanted.push_back(std::pow(c_.rope_theta, -exponent));
      }
      list_.push_back(std::move(frequencies));
    }
    return std::move(list_);
  }

 private:
  int64_t AdaLnWidth() const { return c_.adaln_rank > 0 ? c_.adaln_rank : c_.time_embed; }

  SourceTensor Base(const std::string& original, const std::string& diffusers,
                    const Shape& shape) const {
    SourceTensor tensor;
    tensor.key = original_ ? original : diffusers;
    tensor.target = diffusers;
    tensor.shape = shape;
    return tensor;
  }

  void Norm(const std::string& original, const std::string& diffusers, int64_t n) {
    SourceTensor tensor = Base(original, diffusers, {n});
    tensor.role = Role::kNorm;
    list_.push_back(std::move(tensor));
  }

  void Matrix(const std::string& original, const std::string& diffusers, int64_t out, int64_t in) {
    SourceTensor tensor = Base(original + ".weight", diffusers + ".weight", {out, in});
    tensor.quantizable = true;
    list_.push_back(std::move(tensor));
  }

  void Linear(const std::string& original, const std::string& diffusers, int64_t out, int64_t in,
              bool quantizable) {
    Matrix(original, diffusers, out, in);
    list_.back().quantizable = quantizable;
    SourceTensor bias = Base(original + ".bias", diffusers + ".bias", {out});
    bias.role = Role::kBias;
    list_.push_back(std::move(bias));
  }

  // A layer that the released mixed precision keeps in F32.
  void Island(const std::string& original, const std::string& diffusers, int64_t out, int64_t in) {
    Linear(original, diffusers, out, in, false);
    list_[list_.size() - 2].island = true;
    list_.back().island = true;
  }

  void Block(const std::string& original, const std::string& diffusers) {
    Norm(original + "norm1.weight", diffusers + "norm1.weight", c_.hidden);
    Norm(original + "norm2.weight", diffusers + "norm2.weight", c_.hidden);
    if (original_) {
      Matrix(original + "attn.qkv_proj", "", 3 * c_.inner(), c_.hidden);
      SourceTensor& qkv = list_.back();
      qkv.target = diffusers + "attn.";
      qkv.heads = c_.num_heads;
      qkv.split =
          layout_ == CheckpointLayout::kOriginalInterleaved ? Split::kInterleaved : Split::kThirds;
    } else {
      for (const char* name : {"to_q", "to_k", "to_v"}) {
        Matrix("", diffusers + "attn." + name, c_.inner(), c_.hidden);
      }
    }
    Norm(original + "attn.q_norm.weight", diffusers + "attn.norm_q.weight", c_.head_dim);
    Norm(original + "attn.k_norm.weight", diffusers + "attn.norm_k.weight", c_.head_dim);
    Matrix(original + "attn.out_proj", diffusers + "attn.to_out.0", c_.hidden, c_.inner());
    Matrix(original + "mlp.fc1", diffusers + "ff.net.0.proj", 2 * c_.ffn, c_.hidden);
    list_.back().target = diffusers + "ff.";
    list_.back().split = original_ ? Split::kGateFirst : Split::kValueFirst;
    Matrix(original + "mlp.fc2", diffusers + "ff.net.2", c_.hidden, c_.ffn);
  }

  const DitConfig& c_;
  const bool original_;
  const CheckpointLayout layout_;
  std::vector<SourceTensor> list_;
};

}  // namespace

std::vector<SourceTensor> TransformerTensors(const DitConfig& config, CheckpointLayout layout) {
  return TransformerList(config, layout).Make();
}

}  // namespace h3rt
