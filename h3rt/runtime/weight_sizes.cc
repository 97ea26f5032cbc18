#include "h3rt/runtime/weight_sizes.h"

#include <string_view>

#include "h3rt/io/safetensors.h"

namespace h3rt {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

uint64_t FileBytes(const SafetensorsEntry& entry) { return entry.end - entry.begin; }

// The dtypes that only quantised linears have.
bool IsQuantized(const SafetensorsEntry& entry) {
  return entry.dtype_name == "U8" || entry.dtype_name == "I8" || entry.dtype_name == "F8_E4M3" ||
         entry.dtype_name == "F8_E5M2";
}

// Two four-bit codes share a byte.
int64_t ElementsOf(const SafetensorsEntry& entry) {
  return entry.shape.elements() * (entry.dtype_name == "U8" ? 2 : 1);
}

absl::Status MeasureDit(const std::string& path, DType dequantized, ModelWeightSizes& sizes) {
  H3RT_ASSIGN_OR_RETURN(const SafetensorsSet set, SafetensorsSet::Open(path));
  for (const auto& [name, item] : set.items()) {
    WeightBytes& part = Contains(name, "adaln") || Contains(name, "norm_out.linear")
                            ? sizes.dit_adaln
                            : sizes.dit_rest;
    if (!EndsWith(name, ".weight") || !IsQuantized(*item.entry)) {
      part.mapped += FileBytes(*item.entry);
    } else {
      part.owned += static_cast<uint64_t>(ElementsOf(*item.entry) * SizeOf(dequantized));
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureVideoVae(const std::string& path, ModelWeightSizes& sizes) {
  H3RT_ASSIGN_OR_RETURN(const SafetensorsSet set, SafetensorsSet::Open(path));
  for (const auto& [name, item] : set.items()) {
    const bool encoder = Contains(name, "encoder.") || name.rfind("quant_conv", 0) == 0;
    (encoder ? sizes.vae_encoder : sizes.vae_decoder).mapped += FileBytes(*item.entry);
  }
  return absl::OkStatus();
}

absl::Status MeasureAudioVae(const std::string& path, ModelWeightSizes& sizes) {
  H3RT_ASSIGN_OR_RETURN(const SafetensorsSet set, SafetensorsSet::Open(path));
  for (const auto& [name, item] : set.items()) {
    if (EndsWith(name, ".weight_v")) {
      sizes.audio_decoder.owned += FileBytes(*item.entry);  // encoder pairs are folded as well
    } else if (name.rfind("dec", 0) == 0) {
      sizes.audio_decoder.mapped += FileBytes(*item.entry);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelWeightSizes> MeasureWeights(const std::string& transformer,
                                                const std::string& video_vae,
                                                const std::string& audio_vae, DType dequantized) {
  ModelWeightSizes sizes;
  H3RT_RETURN_IF_ERROR(MeasureDit(transformer, dequantized, sizes));
  H3RT_RETURN_IF_ERROR(MeasureVideoVae(video_vae, sizes));
  H3RT_RETURN_IF_ERROR(MeasureAudioVae(audio_vae, sizes));
  return sizes;
}

}  // namespace h3rt
