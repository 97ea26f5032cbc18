// Finding the parts of a model in a folder.
#pragma once

#include <string>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"

namespace h3rt {

enum class ModelForm {
  kDiffusers,  // transformer/ vae/ audio_vae/ scheduler/ audio_scheduler/ text_encoder/
  kOriginal,   // FL2VA/{transformer, video_vae/source, audio_vae}, as MiniMax publishes it
};
const char* NameOf(ModelForm form);

struct ModelFolderOptions {
  // "transformer" or "transformer_ref": the weights of text and keyframes to video, or of
  // references to video. In the original form they are the folders FL2VA and Ref2VA. Nothing in
  // the weights tells the two apart.
  std::string transformer = "transformer";
  bool allow_missing = false;  // list missing parts instead of failing
};

struct ModelFolder {
  std::string root;
  ModelForm form = ModelForm::kDiffusers;
  // Paths that OpenTransformer, OpenVideoVae and OpenAudioVae take; empty when missing.
  std::string transformer;
  std::string video_vae;
  std::string audio_vae;
  SchedulerConfig scheduler;        // shift 12 where the original form states none
  SchedulerConfig audio_scheduler;  // shift 3
  // text_encoder/config.json, empty when there is none: embeddings then have to come from outside.
  std::string text_encoder_config;
  // model_index.json of the original form, which holds its shifts; empty when there is none.
  std::string index;
  std::vector<std::string> missing;  // relative names of parts that are not there

  // kNotFound when the folder does not exist, holds no part at all, or lacks a part (all named)
  // unless that is allowed; kInvalidArgument for options and scheduler configurations that are
  // refused; kDataLoss for JSON that does not parse.
  static absl::StatusOr<ModelFolder> Open(const std::string& folder,
                                          const ModelFolderOptions& options = {});
};

// Whether the files hold what the folder's SHA256SUMS says is another matter: see checksums.h.

// An identity of the model's content: SHA-256 over the sorted list of its files (part, name
// relative to the part, size, content). Where a part lies does not count, so that parts from
// elsewhere (the paths of `model` may be replaced) hash like those of the folder. A part that is
// one file counts with the config.json beside it. Files over 64 MiB count with their first 8 bytes
// and header when they are safetensors, and 64 blocks of 4 KiB spread over the rest: two models of
// one shape differ in every block, and a change of single weights in a file of that size is not
// what this detects.
absl::StatusOr<std::string> ModelHash(const ModelFolder& model);
// The same for one file or folder with weights.
absl::StatusOr<std::string> WeightsHash(const std::string& path);

}  // namespace h3rt
