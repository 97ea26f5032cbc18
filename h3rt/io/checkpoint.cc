#include "h3rt/io/checkpoint.h"

#include <utility>
#include <vector>

#include "h3rt/base/check.h"
#include "h3rt/io/binder.h"
#include "h3rt/io/infer_config.h"
#include "h3rt/io/tensor_list.h"

namespace h3rt {
namespace {

absl::Status CheckOptions(const LoadOptions& options) {
  if (options.dequantized == DType::kF32 || options.dequantized == DType::kBF16) {
    return absl::OkStatus();
  }
  return InvalidArgument({.what = "dtype of dequantised weights",
                          .got = std::string(NameOf(options.dequantized)),
                          .wanted = "F32 or BF16"});
}

absl::StatusOr<WeightStore> Load(const SafetensorsSet& set, const std::string& prefix,
                                 const std::vector<SourceTensor>& list,
                                 const LoadOptions& options) {
  H3RT_ASSIGN_OR_RETURN(Binder binder, Binder::Create(set, prefix));
  H3RT_RETURN_IF_ERROR(binder.Check(list).ToStatus(set.path()));
  return binder.Materialize(options.dequantized);
}

}  // namespace

const char* NameOf(CheckpointLayout layout) {
  switch (layout) {
    case CheckpointLayout::kDiffusers:
      return "diffusers";
    case CheckpointLayout::kOriginalContiguous:
      return "original, contiguous qkv";
    case CheckpointLayout::kOriginalInterleaved:
      return "original, head-interleaved qkv";
  }
  H3RT_CHECK(false);
}

absl::StatusOr<TransformerCheckpoint> OpenTransformer(const std::string& path,
                                                      const LoadOptions& options) {
  H3RT_RETURN_IF_ERROR(CheckOptions(options));
  H3RT_ASSIGN_OR_RETURN(OpenedCheckpoint<DitConfig> opened, IdentifyTransformer(path, options));
  TransformerCheckpoint out;
  H3RT_ASSIGN_OR_RETURN(
      out.weights,
      Load(opened.set, opened.prefix, TransformerTensors(opened.config, opened.layout), options));
  out.config = opened.config;
  out.layout = opened.layout;
  return out;
}

absl::StatusOr<VideoVaeCheckpoint> OpenVideoVae(const std::string& path,
                                                const LoadOptions& options) {
  H3RT_RETURN_IF_ERROR(CheckOptions(options));
  H3RT_ASSIGN_OR_RETURN(OpenedCheckpoint<VideoVaeConfig> opened, IdentifyVideoVae(path, options));
  VideoVaeCheckpoint out;
  H3RT_ASSIGN_OR_RETURN(out.weights, Load(opened.set, opened.prefix,
                                          VideoVaeTensors(opened.config, opened.layout), options));
  out.config = std::move(opened.config);
  out.layout = opened.layout;
  return out;
}

absl::StatusOr<AudioVaeCheckpoint> OpenAudioVae(const std::string& path,
                                                const LoadOptions& options) {
  H3RT_RETURN_IF_ERROR(CheckOptions(options));
  H3RT_ASSIGN_OR_RETURN(OpenedCheckpoint<AudioVaeConfig> opened, IdentifyAudioVae(path, options));
  const HasKey has_key = [&opened](std::string_view key) { return opened.set.Has(key); };
  AudioVaeCheckpoint out;
  H3RT_ASSIGN_OR_RETURN(out.weights, Load(opened.set, opened.prefix,
                                          AudioVaeTensors(opened.config, has_key), options));
  out.config = std::move(opened.config);
  return out;
}

}  // namespace h3rt
