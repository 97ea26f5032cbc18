// Layout and configuration from the keys and shapes of a file: spec h3 section 2.6. Private to io.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/safetensors.h"

namespace h3rt {

// A checkpoint whose kind is known, before its tensors are checked.
template <typename Config>
struct OpenedCheckpoint {
  SafetensorsSet set;
  std::string prefix;  // in front of every key
  CheckpointLayout layout = CheckpointLayout::kDiffusers;
  Config config;
};

// Opens the files, finds the layout (or takes `options.layout`), and reads config.json or infers
// what it would say. Errors: those of SafetensorsSet and FromJson; kDataLoss when the keys are not
// those of the network or the shapes do not tell the configuration.
absl::StatusOr<OpenedCheckpoint<DitConfig>> IdentifyTransformer(const std::string& path,
                                                                const LoadOptions& options);
absl::StatusOr<OpenedCheckpoint<VideoVaeConfig>> IdentifyVideoVae(const std::string& path,
                                                                  const LoadOptions& options);
absl::StatusOr<OpenedCheckpoint<AudioVaeConfig>> IdentifyAudioVae(const std::string& path,
                                                                  const LoadOptions& options);

// Which network a file holds, from its keys.
enum class NetworkKind { kUnknown, kTransformer, kVideoVae, kAudioVae };
NetworkKind KindOf(const SafetensorsSet& set);
const char* NameOf(NetworkKind kind);

}  // namespace h3rt
