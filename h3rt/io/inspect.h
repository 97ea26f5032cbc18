// What a checkpoint file or a model folder holds, from headers alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "h3rt/base/json.h"
#include "h3rt/base/status.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/model_folder.h"

namespace h3rt {

struct DTypeCount {
  int64_t tensors = 0;
  int64_t elements = 0;  // as stored: two packed codes are one element of U8
  uint64_t bytes = 0;
};

// One network.
struct ComponentReport {
  std::string name;  // "transformer", "vae", "audio_vae", or "file" for a single path
  std::string path;
  std::string network;  // "transformer", "video VAE", "audio VAE", "unknown network"
  std::string layout;   // empty when unknown
  std::string variant;  // transformer: "full" or "pruned"; audio VAE: "weight norm" or "folded"
  int64_t files = 0;
  int64_t tensors = 0;
  uint64_t bytes = 0;      // of tensor data
  int64_t parameters = 0;  // of the expected tensors that are there, quantised ones unpacked
  std::map<std::string, DTypeCount> dtypes;
  std::map<std::string, int64_t> quant_formats;  // layers a format
  std::vector<std::string> missing;              // expected keys
  std::vector<std::string> unknown;              // keys that the layout does not know
  std::vector<std::string> wrong;                // messages: shapes, dtypes, formats, configuration
  std::string header_sha256;                     // over the headers of the files, in order
  Json config;                                   // in the diffusers form; null when unknown
  bool ok() const { return missing.empty() && unknown.empty() && wrong.empty(); }
  Json ToJson() const;
};

struct InspectReport {
  std::string path;
  std::string form;  // "file", "weights folder", "diffusers model", "original model"
  std::vector<ComponentReport> components;
  std::vector<std::string> missing_parts;  // of a model folder
  std::string text_encoder;                // class name of its configuration, empty when none
  std::optional<double> video_shift;       // of a model folder
  std::optional<double> audio_shift;
  std::string model_id;  // SHA-256 over the header hashes: same id, same keys, shapes and dtypes
  bool ok() const;
  Json ToJson() const;
};

// `path` is a model folder, a .safetensors file, or a folder with weights. Missing and unknown keys
// and whatever does not fit are listed and not an error; a file that is corrupt, and JSON that does
// not parse, is kDataLoss, a path that does not exist kNotFound. Only headers are read: a
// checkpoint of 66 GB takes milliseconds.
//
// `layout` is taken for transformers instead of what their keys say, as OpenTransformer takes
// LoadOptions::layout; the VAEs tell theirs. An override whose names are not those of the file
// shows as missing and unknown keys.
absl::StatusOr<InspectReport> Inspect(const std::string& path,
                                      const ModelFolderOptions& options = {},
                                      std::optional<CheckpointLayout> layout = {});

}  // namespace h3rt
