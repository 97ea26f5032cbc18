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
  std::optional<CheckpointLayout> layout;  // overrides what the keys say
  DType dequantized = DType::kF32;         // F32 or BF16: what quantised linears become
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
absl::StatusOr<TransformerCheckpoint> OpenTransformer(const std::string& path,
                                                      const LoadOptions& options = {});
absl::StatusOr<VideoVaeCheckpoint> OpenVideoVae(const std::string& path,
                                                const LoadOptions& options = {});
absl::StatusOr<AudioVaeCheckpoint> OpenAudioVae(const std::string& path,
                                                const LoadOptions& options = {});

}  // namespace h3rt
