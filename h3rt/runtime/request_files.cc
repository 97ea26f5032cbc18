#include "h3rt/runtime/request_files.h"

#include <algorithm>

#include "h3rt/io/safetensors.h"
#include "h3rt/media/image.h"
#include "h3rt/media/keyframe.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

// An F32 copy of an F32, BF16 or F16 tensor; leading extents of 1 beyond `rank` are dropped.
absl::StatusOr<Tensor> ReadAsFloat(const SafetensorsFile& file, const std::string& name, int rank) {
  H3RT_ASSIGN_OR_RETURN(ConstTensorView view, file.Get(name));
  while (view.rank() > rank && view.dim(0) == 1) view = view.Select(0, 0);
  if (view.rank() != rank) {
    return InvalidArgument({.what = "rank of " + name,
                            .got = view.shape().ToString(),
                            .wanted = std::to_string(rank) + " extents",
                            .where = file.path()});
  }
  H3RT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Copy(view));  // aligned, whatever the file is
  if (copy.dtype() == DType::kF32) return copy;
  H3RT_ASSIGN_OR_RETURN(Tensor wide, Tensor::Create(DType::kF32, copy.shape()));
  if (copy.dtype() == DType::kBF16) {
    WidenBf16(copy.as<uint16_t>(), wide.as<float>(), copy.elements());
  } else if (copy.dtype() == DType::kF16) {
    WidenF16(copy.as<uint16_t>(), wide.as<float>(), copy.elements());
  } else {
    return InvalidArgument({.what = "dtype of " + name,
                            .got = std::string(NameOf(copy.dtype())),
                            .wanted = "F32, BF16 or F16",
                            .where = file.path()});
  }
  return wide;
}

absl::Status RefuseOthers(const SafetensorsFile& file, const std::vector<std::string>& known) {
  for (const auto& [name, entry] : file.entries()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string wanted;
    for (const std::string& k : known) wanted += (wanted.empty() ? "" : ", ") + k;
    return InvalidArgument(
        {.what = "unknown tensor", .got = name, .wanted = wanted, .where = file.path()});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPromptEmbeds(const std::string& path, GenerateRequest& request) {
  H3RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  H3RT_RETURN_IF_ERROR(RefuseOthers(file, {"prompt_embeds", "token_tags"}));
  if (!file.Has("prompt_embeds")) {
    return InvalidArgument({.what = "no tensor \"prompt_embeds\"", .where = path});
  }
  H3RT_ASSIGN_OR_RETURN(request.prompt_embeds, ReadAsFloat(file, "prompt_embeds", 2));
  request.prompt_tags.clear();
  if (!file.Has("token_tags")) return absl::OkStatus();
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, file.Get("token_tags"));
  H3RT_ASSIGN_OR_RETURN(const Tensor tags, Tensor::Copy(view));
  if (tags.dtype() != DType::kI64 && tags.dtype() != DType::kI32) {
    return InvalidArgument({.what = "dtype of token_tags",
                            .got = std::string(NameOf(tags.dtype())),
                            .wanted = "I32 or I64",
                            .where = path});
  }
  for (int64_t i = 0; i < tags.elements(); ++i) {
    const int64_t tag = tags.dtype() == DType::kI64 ? tags.as<int64_t>()[i] : tags.as<int32_t>()[i];
    if (tag != 0 && tag != 1) {
      return InvalidArgument({.what = "token_tags[" + std::to_string(i) + "]",
                              .got = std::to_string(tag),
                              .wanted = "0 (vision block) or 1 (text)",
                              .where = path});
    }
    request.prompt_tags.push_back(static_cast<int32_t>(tag));
  }
  return absl::OkStatus();
}

absl::Status ReadLatents(const std::string& path, GenerateRequest& request) {
  H3RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  H3RT_RETURN_IF_ERROR(RefuseOthers(file, {"latents", "audio_latents"}));
  if (file.entries().empty()) {
    return InvalidArgument(
        {.what = "no tensors", .wanted = "latents, audio_latents", .where = path});
  }
  if (file.Has("latents")) {
    H3RT_ASSIGN_OR_RETURN(request.latents, ReadAsFloat(file, "latents", 4));
  }
  if (file.Has("audio_latents")) {
    H3RT_ASSIGN_OR_RETURN(request.audio_latents, ReadAsFloat(file, "audio_latents", 3));
  }
  return absl::OkStatus();
}

absl::Status WriteLatents(const std::string& path, const GenerateResult& result) {
  return WriteSafetensors(
      path, {{"latents", result.latents.view()}, {"audio_latents", result.audio_latents.view()}});
}

absl::Status ReadKeyframes(const std::string& first, const std::string& last,
                           GenerateRequest& request) {
  KeyframeFit fit = KeyframeFit::kStretch;
  if (!first.empty()) {
    H3RT_ASSIGN_OR_RETURN(const RgbImage image, ReadImage(first));
    H3RT_ASSIGN_OR_RETURN(request.first_frame,
                          KeyframeTensor(image, request.width, request.height, fit));
    fit = KeyframeFit::kCoverCrop;
  }
  if (!last.empty()) {
    H3RT_ASSIGN_OR_RETURN(const RgbImage image, ReadImage(last));
    H3RT_ASSIGN_OR_RETURN(request.last_frame,
                          KeyframeTensor(image, request.width, request.height, fit));
  }
  return absl::OkStatus();
}

}  // namespace h3rt
