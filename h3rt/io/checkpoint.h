// Opening the networks of a MiniMax-H3 checkpoint in any of the layouts that circulate.
#pragma once

#include <optional>
#include <string>

#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/tensor/dtype.h"

namespace h3rt {

enum class CheckpointLayout {
  kDiffusers,            // to_q, to_k, to_v apart; FFN value half first
  kOriginalContiguous,   // single file, with or without "model.diffusion_model."; qkv in thirds
  kOriginalInterleaved,  // MiniMax shards: qkv rows head by head
};
const char* NameOf(CheckpointLayout layout);

struct LoadOptions {
  // Overrides what the keys say. Nothing in an original file tells whether qkv is interleaved: by
  // default shards with an index are (MiniMax's own), single files and quantised ones are not (all
  // that circulate), and the decoder of the video VAE always is.
  std::optional<CheckpointLayout> layout = {};
  DType dequantized = DType::kF32;  // F32 or BF16 (rounded once): what quantised linears become
};

struct TransformerCheckpoint {
  DitConfig config;  // from config.json, or from the shapes when there is none
  CheckpointLayout layout = CheckpointLayout::kDiffusers;
  WeightStore weights;
};
struct VideoVaeCheckpoint {
  VideoVaeConfig config;
  CheckpointLayout layout = CheckpointLayout::kDiffusers;
  WeightStore weights;
};
struct AudioVaeCheckpoint {
  AudioVaeConfig config;
  WeightStore weights;
};

// `path` is a .safetensors file, a folder with one, or a folder with an index and its shards. Every
// key must be known and every expected key present with the right shape and a readable dtype;
// otherwise the error names file, key, what is there and what was expected, and nothing is loaded.
//
// The configuration comes from config.json beside the weights when its _class_name is that of the
// network, else from the shapes (spec h3 section 2.6). What shapes do not say is the released
// model's: strides, norm groups and heads of the VAEs, eps and theta; a VAE of another geometry is
// refused then.
//
// Weights are views of the mapped files. Copies are made of quantised linears (fp8 scaled, nvfp4,
// int8_tensorwise with or without convrot: dequantised), of weight-norm pairs (folded), and of
// tensors that the file does not align.
//
// LoadOptions::layout is about this one file: for a VAE it has to be the layout of the VAE's file,
// which its own keys tell. A caller that opens all three networks passes its override of the
// transformer's layout to OpenTransformer alone.
//
// Errors: kNotFound (file or shard), kDataLoss (corrupt, missing, unknown, odd), kInvalidArgument
// (config.json or options), kUnimplemented (a quantisation format or dtype that is not read, by
// name).
absl::StatusOr<TransformerCheckpoint> OpenTransformer(const std::string& path,
                                                      const LoadOptions& options = {});
absl::StatusOr<VideoVaeCheckpoint> OpenVideoVae(const std::string& path,
                                                const LoadOptions& options = {});
absl::StatusOr<AudioVaeCheckpoint> OpenAudioVae(const std::string& path,
                                                const LoadOptions& options = {});

}  // namespace h3rt
