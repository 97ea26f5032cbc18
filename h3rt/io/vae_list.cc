// Tensors of the two VAEs: spec h3 sections 6.2 to 6.4 and 7, general form C8.
#include <utility>

#include "h3rt/io/tensor_list.h"

namespace h3rt {
namespace {

class VideoVaeList {
 public:
  VideoVaeList(const VideoVaeConfig& config, CheckpointLayout layout)
      : c_(config), original_(layout != CheckpointLayout::kDiffusers), layout_(layout) {}

  std::vector<SourceTensor> Make() && {
    Encoder();
    const int64_t latent = c_.latent_channels;
    Layer("quant_conv", "quant_conv", {2 * latent, 2 * latent, 1, 1, 1});
    Layer("post_quant_conv", "post_quant_conv", {latent, latent, 1, 1, 1});
    Decoder();
    return std::move(list_);
  }

 private:
  void Add(const std::string& original, const std::string& diffusers, const Shape& shape,
           Role role) {
    SourceTensor tensor;
    tensor.key = original_ ? original : diffusers;
    tensor.target = diffusers;
    tensor.shape = shape;
    tensor.role = role;
    list_.push_back(std::move(tensor));
  }

  // Weight and bias of a convolution or a linear layer.
  void Layer(const std::string& original, const std::string& diffusers, const Shape& shape) {
    Add(original + ".weight", diffusers + ".weight", shape, Role::kMatrix);
    list_.back().quantizable = shape.rank() == 2;
    Add(original + ".bias", diffusers + ".bias", {shape[0]}, Role::kBias);
  }

  void Norm(const std::string& original, const std::string& diffusers, int64_t n) {
    Add(original + ".weight", diffusers + ".weight", {n}, Role::kNorm);
    Add(original + ".bias", diffusers + ".bias", {n}, Role::kBias);
  }

  void Encoder() {
    const std::string e = "encoder.";
    int64_t channels = c_.block_out_channels[0];
    Layer(e + "conv_in", e + "conv_in", {channels, c_.in_channels, 3, 3, 3});
    for (size_t level = 0; level < c_.block_out_channels.size(); ++level) {
      const int64_t out = c_.block_out_channels[level];
      const std::string original = e + "down." + std::to_string(level) + ".";
      const std::string diffusers = e + "down_blocks." + std::to_string(level) + ".";
      for (int64_t block = 0; block < c_.layers_per_block; ++block) {
        const std::string o = original + "block." + std::to_string(block) + ".";
        const std::string d = diffusers + "resnets." + std::to_string(block) + ".";
        Norm(o + "norm1", d + "norm1", channels);
        Layer(o + "conv1", d + "conv1", {out, channels, 3, 3, 3});
        Norm(o + "norm2", d + "norm2", out);
        Layer(o + "conv2", d + "conv2", {out, out, 3, 3, 3});
        if (channels != out) {
          Layer(o + "nin_shortcut", d + "conv_shortcut", {out, channels, 1, 1, 1});
        }
        channels = out;
      }
      if (c_.spatial_factors[level] * c_.temporal_factors[level] > 1) {
        Layer(original + "downsample.conv", diffusers + "downsamplers.0.conv", {out, out, 3, 3, 3});
      }
    }
    Norm(e + "norm_out", e + "norm_out", channels);
    Layer(e + "conv_out", e + "conv_out", {2 * c_.latent_channels, channels, 3, 3, 3});
  }

  void Decoder() {
    const std::string d = "decoder.";
    const int64_t width = c_.decoder_width();
    Layer(d + "x_embedder", d + "proj_in", {width, c_.latent_channels});
    Add(d + "register_tokens", d + "register_tokens", {1, c_.decoder_registers, width},
        Role::kToken);
    if (original_) {
      // Only ever zeros: the network appends one zero token instead.
      Add(d + "mask_token", "", {width}, Role::kZero);
      list_.back().split = Split::kDrop;
      list_.back().optional = true;
      list_.back().any_shape = true;
      list_.back().wanted = {0.0};
    }
    for (int64_t i = 0; i < c_.decoder_layers; ++i) {
      Block(d + "transformer_blocks." + std::to_string(i) + ".", width);
    }
    Norm(d + "norm_out", d + "norm_out", width);
    const int64_t space = c_.spatial_factor();
    Layer(d + "proj_out", d + "proj_out",
          {c_.out_channels * c_.temporal_factor() * space * space, width});
  }

  void Block(const std::string& p, int64_t width) {
    Add(p + "norm1.weight", p + "norm1.weight", {width}, Role::kNorm);
    Add(p + "norm2.weight", p + "norm2.weight", {width}, Role::kNorm);
    Add(p + "scale1", p + "scale1", {width}, Role::kScale);
    Add(p + "scale2", p + "scale2", {width}, Role::kScale);
    const size_t first = list_.size();
    if (original_) {
      Layer(p + "attn.to_qkv", "", {3 * width, width});
      for (size_t i = first; i < list_.size(); ++i) {
        list_[i].target = p + "attn.";
        list_[i].heads = c_.decoder_heads;
        // The release and the ComfyUI file both interleave; contiguous only when asked for.
        list_[i].split =
            layout_ == CheckpointLayout::kOriginalContiguous ? Split::kThirds : Split::kInterleaved;
      }
    } else {
      for (const char* name : {"attn.to_q", "attn.to_k", "attn.to_v"}) {
        Layer("", p + name, {width, width});
      }
    }
    Layer(p + "attn.to_out", p + "attn.to_out.0", {width, width});
    const int64_t inner = c_.decoder_ffn_mult * width;
    const size_t ff = list_.size();
    Layer(p + "ff.w1", p + "ff.net.0.proj", {2 * inner, width});
    for (size_t i = ff; i < list_.size(); ++i) {
      list_[i].target = p + "ff.";
      list_[i].split = original_ ? Split::kGateFirst : Split::kValueFirst;
    }
    Layer(p + "ff.w2", p + "ff.net.2", {width, inner});
  }

  const VideoVaeConfig& c_;
  const bool original_;
  const CheckpointLayout layout_;
  std::vector<SourceTensor> list_;
};

class AudioVaeList {
 public:
  AudioVaeList(const AudioVaeConfig& config, const HasKey& has_key) : c_(config), has_(has_key) {}

  std::vector<SourceTensor> Make() && {
    Encoder();
    PreBlock();
    Decoder();
    for (const char* name : {"latents_mean", "latents_std"}) {
      Add(name, {c_.latent_channels}, Role::kBias);  // read into the configuration
      list_.back().split = Split::kDrop;
      list_.back().optional = true;
    }
    return std::move(list_);
  }

 private:
  void Add(const std::string& key, const Shape& shape, Role role) {
    SourceTensor tensor;
    tensor.key = key;
    tensor.target = key;
    tensor.shape = shape;
    tensor.role = role;
    tensor.dtypes = DTypes::kF32;  // BF16 weights are 20 dB too quiet
    list_.push_back(std::move(tensor));
  }

  // Weight norm divides by the norm over all dimensions but the first, whatever the first means.
  void Conv(const std::string& name, const Shape& shape, int64_t bias) {
    if (has_(name + ".weight")) {
      Add(name + ".weight", shape, Role::kMatrix);
    } else {
      Add(name + ".weight_v", shape, Role::kMatrix);
      list_.back().split = Split::kWeightNorm;
      list_.back().target = name + ".weight";
    }
    if (bias > 0) Add(name + ".bias", {bias}, Role::kBias);
  }

  void Layer(const std::string& name, const Shape& shape) {
    Add(name + ".weight", shape, Role::kMatrix);
    Add(name + ".bias", {shape[0]}, Role::kBias);
  }

  void Norm(const std::string& name, int64_t n) {
    Add(name + ".weight", {n}, Role::kNorm);
    Add(name + ".bias", {n}, Role::kBias);
  }

  void Encoder() {
    const std::string e = "encoder.block.";
    int64_t channels = c_.encoder_dim;
    Conv(e + "0", {channels, 1, 7}, channels);
    const size_t levels = c_.encoder_rates.size();
    for (size_t level = 0; level < levels; ++level) {
      const std::string p = e + std::to_string(level + 1) + ".block.";
      for (int unit = 0; unit < 3; ++unit) {
        const std::string u = p + std::to_string(unit) + ".block.";
        Add(u + "0.alpha", {1, channels, 1}, Role::kAlpha);
        Conv(u + "1", {channels, channels, 7}, channels);
        Add(u + "2.alpha", {1, channels, 1}, Role::kAlpha);
        Conv(u + "3", {channels, channels, 1}, channels);
      }
      Add(p + "3.alpha", {1, channels, 1}, Role::kAlpha);
      Conv(p + "4", {2 * channels, channels, 2 * c_.encoder_rates[level]}, 2 * channels);
      channels *= 2;
    }
    Add(e + std::to_string(levels + 1) + ".alpha", {1, channels, 1}, Role::kAlpha);
    Conv(e + std::to_string(levels + 2), {c_.latent_dim, channels, 3}, c_.latent_dim);
  }

  void PreBlock() {
    const std::string p = "pre_block.";
    const int64_t width = c_.latent_dim;
    const int64_t latent = c_.latent_channels;
    Norm(p + "norm1", width);
    Norm(p + "norm2", latent);
    Norm(p + "norm3", width);
    Layer(p + "proj", {latent, width});
    Add(p + "attn.qkv.weight", {3 * width, width}, Role::kMatrix);
    Add(p + "attn.q_bias", {width}, Role::kBias);
    Add(p + "attn.v_bias", {width}, Role::kBias);
    Add(p + "attn.zero_k_bias", {width}, Role::kZero);
    Layer(p + "attn.proj", {latent, latent});
    Norm(p + "mlp.norm", latent);
    Layer(p + "mlp.w0", {2 * latent, latent});
    Layer(p + "mlp.w1", {2 * latent, latent});
    Layer(p + "mlp.w2", {latent, 2 * latent});
    Layer("mean_proj", {latent, latent, 1});
    Layer("logs_proj", {latent, latent, 1});
  }

  void Activation(const std::string& name, int64_t channels) {
    Add(name + ".act.alpha", {channels}, Role::kLogAlpha);
    Add(name + ".act.beta", {channels}, Role::kLogAlpha);
    Add(name + ".upsample.filter", {1, 1, 12}, Role::kFilter);
    Add(name + ".downsample.lowpass.filter", {1, 1, 12}, Role::kFilter);
  }

  void Decoder() {
    Layer("dec_in_proj", {c_.latent_dim, c_.latent_channels, 1});
    const std::string d = "decoder.";
    int64_t channels = c_.decoder_dim;
    Conv(d + "conv_pre", {channels, c_.latent_dim, 7}, channels);
    const size_t kernels = c_.resblock_kernels.size();
    for (size_t stage = 0; stage < c_.decoder_rates.size(); ++stage) {
      // Transposed: the input channels come first.
      Conv(d + "ups." + std::to_string(stage) + ".0",
           {channels, channels / 2, c_.decoder_kernels[stage]}, channels / 2);
      channels /= 2;
      for (size_t j = 0; j < kernels; ++j) {
        const std::string p = d + "resblocks." + std::to_string(stage * kernels + j) + ".";
        const size_t inner = c_.resblock_dilations[j].size();
        const Shape shape{channels, channels, c_.resblock_kernels[j]};
        for (size_t m = 0; m < inner; ++m) {
          Conv(p + "convs1." + std::to_string(m), shape, channels);
          Conv(p + "convs2." + std::to_string(m), shape, channels);
        }
        for (size_t q = 0; q < 2 * inner; ++q) {
          Activation(p + "activations." + std::to_string(q), channels);
        }
      }
    }
    Activation(d + "activation_post", channels);
    Conv(d + "conv_post", {1, channels, 7}, 0);
  }

  const AudioVaeConfig& c_;
  const HasKey& has_;
  std::vector<SourceTensor> list_;
};

}  // namespace

std::vector<SourceTensor> VideoVaeTensors(const VideoVaeConfig& config, CheckpointLayout layout) {
  return VideoVaeList(config, layout).Make();
}

std::vector<SourceTensor> AudioVaeTensors(const AudioVaeConfig& config, const HasKey& has_key) {
  return AudioVaeList(config, has_key).Make();
}

}  // namespace h3rt
