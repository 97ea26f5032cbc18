#include "h3rt/io/inspect.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "h3rt/base/hash.h"
#include "h3rt/io/binder.h"
#include "h3rt/io/infer_config.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/io/tensor_list.h"

namespace h3rt {
namespace {

bool Exists(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

void CountStorage(const SafetensorsSet& set, ComponentReport& report) {
  report.files = static_cast<int64_t>(set.files().size());
  report.tensors = static_cast<int64_t>(set.items().size());
  for (const auto& [key, item] : set.items()) {
    DTypeCount& count = report.dtypes[item.entry->dtype_name];
    const uint64_t bytes = item.entry->end - item.entry->begin;
    ++count.tensors;
    count.elements += item.entry->shape.elements();
    count.bytes += bytes;
    report.bytes += bytes;
  }
  Sha256 hash;
  for (const SafetensorsFile& file : set.files()) hash.Update(file.header_bytes());
  report.header_sha256 = hash.Finish();
}

// Checks the keys against the list of the layout and counts what is there.
absl::Status CheckKeys(const SafetensorsSet& set, const std::string& prefix,
                       const std::vector<SourceTensor>& list, ComponentReport& report) {
  H3RT_ASSIGN_OR_RETURN(Binder binder, Binder::Create(set, prefix));
  BindReport found = binder.Check(list);
  report.missing = std::move(found.missing);
  report.unknown = std::move(found.unknown);
  report.quant_formats = std::move(found.quant_formats);
  for (const absl::Status& status : found.wrong) report.wrong.push_back(MessageOf(status));
  for (const SourceTensor& tensor : list) {
    if (tensor.split == Split::kDrop || !set.Has(prefix + tensor.key)) continue;
    report.parameters += tensor.shape.elements();
    if (tensor.split == Split::kWeightNorm) report.parameters += tensor.shape[0];
  }
  return absl::OkStatus();
}

template <typename Config>
bool Identified(const absl::StatusOr<OpenedCheckpoint<Config>>& opened, ComponentReport& report) {
  if (!opened.ok()) {
    report.wrong.push_back(MessageOf(opened.status()));
    return false;
  }
  report.layout = NameOf(opened->layout);
  report.config = opened->config.ToJson();
  return true;
}

using Layout = std::optional<CheckpointLayout>;

absl::Status CheckNetwork(const SafetensorsSet& set, NetworkKind kind, const std::string& path,
                          const Layout& layout, ComponentReport& report) {
  if (kind == NetworkKind::kTransformer) {
    const auto opened = IdentifyTransformer(path, {.layout = layout});
    if (!Identified(opened, report)) return absl::OkStatus();
    report.variant = opened->config.adaln_rank > 0 ? "pruned" : "full";
    return CheckKeys(opened->set, opened->prefix,
                     TransformerTensors(opened->config, opened->layout), report);
  }
  if (kind == NetworkKind::kVideoVae) {
    const auto opened = IdentifyVideoVae(path, {});
    if (!Identified(opened, report)) return absl::OkStatus();
    return CheckKeys(opened->set, opened->prefix, VideoVaeTensors(opened->config, opened->layout),
                     report);
  }
  if (kind == NetworkKind::kAudioVae) {
    const auto opened = IdentifyAudioVae(path, {});
    if (!Identified(opened, report)) return absl::OkStatus();
    // The names are the same in both layouts.
    report.layout = "common";
    report.variant = set.Has("decoder.conv_pre.weight") ? "folded" : "weight norm";
    const HasKey has_key = [&set](std::string_view key) { return set.Has(key); };
    return CheckKeys(opened->set, opened->prefix, AudioVaeTensors(opened->config, has_key), report);
  }
  for (const auto& [key, item] : set.items()) report.unknown.push_back(key);
  return absl::OkStatus();
}

absl::StatusOr<ComponentReport> InspectComponent(std::string name, const std::string& path,
                                                 const Layout& layout) {
  ComponentReport report;
  report.name = std::move(name);
  report.path = path;
  H3RT_ASSIGN_OR_RETURN(const SafetensorsSet set, SafetensorsSet::Open(path));
  // A configuration that does not parse is a corrupt file, one that does not fit is a finding.
  const std::string config = path + "/config.json";
  if (IsFolder(path) && Exists(config)) H3RT_RETURN_IF_ERROR(ReadJsonFile(config).status());
  CountStorage(set, report);
  const NetworkKind kind = KindOf(set);
  report.network = NameOf(kind);
  H3RT_RETURN_IF_ERROR(CheckNetwork(set, kind, path, layout, report));
  return report;
}

bool LooksLikeWeights(const std::string& folder) {
  return Exists(folder + "/model.safetensors.index.json") ||
         Exists(folder + "/diffusion_pytorch_model.safetensors.index.json") ||
         Exists(folder + "/diffusion_pytorch_model.safetensors") ||
         Exists(folder + "/model.safetensors");
}

absl::Status InspectModel(const ModelFolder& model, const Layout& layout, InspectReport& report) {
  report.form = std::string(NameOf(model.form)) + " model";
  report.missing_parts = model.missing;
  report.video_shift = model.scheduler.shift;
  report.audio_shift = model.audio_scheduler.shift;
  const std::pair<const char*, const std::string*> parts[] = {{"transformer", &model.transformer},
                                                              {"vae", &model.video_vae},
                                                              {"audio_vae", &model.audio_vae}};
  for (const auto& [name, path] : parts) {
    if (path->empty()) continue;
    H3RT_ASSIGN_OR_RETURN(ComponentReport component, InspectComponent(name, *path, layout));
    report.components.push_back(std::move(component));
  }
  if (!model.text_encoder_config.empty()) {
    H3RT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(model.text_encoder_config));
    const absl::StatusOr<ConditionerConfig> config =
        ConditionerConfig::FromJson(json, model.text_encoder_config);
    report.text_encoder = config.ok() ? config->class_name : MessageOf(config.status());
  }
  return absl::OkStatus();
}

}  // namespace

Json ComponentReport::ToJson() const {
  Json json_dtypes = Json::object();
  for (const auto& [dtype, count] : dtypes) {
    json_dtypes[dtype] = {
        {"tensors", count.tensors}, {"elements", count.elements}, {"bytes", count.bytes}};
  }
  Json formats = Json::object();
  for (const auto& [format, layers] : quant_formats) formats[format] = layers;
  return {{"name", name},
          {"path", path},
          {"network", network},
          {"layout", layout},
          {"variant", variant},
          {"files", files},
          {"tensors", tensors},
          {"bytes", bytes},
          {"parameters", parameters},
          {"dtypes", json_dtypes},
          {"quantised_layers", formats},
          {"missing", missing},
          {"unknown", unknown},
          {"wrong", wrong},
          {"header_sha256", header_sha256},
          {"config", config}};
}

bool InspectReport::ok() const {
  return missing_parts.empty() &&
         std::all_of(components.begin(), components.end(),
                     [](const ComponentReport& component) { return component.ok(); });
}

Json InspectReport::ToJson() const {
  Json list = Json::array();
  for (const ComponentReport& component : components) list.push_back(component.ToJson());
  Json json = {{"path", path},
               {"form", form},
               {"model_id", model_id},
               {"ok", ok()},
               {"missing_parts", missing_parts},
               {"text_encoder", text_encoder}};
  if (video_shift) json["video_shift"] = *video_shift;
  if (audio_shift) json["audio_shift"] = *audio_shift;
  json["components"] = std::move(list);
  return json;
}

absl::StatusOr<InspectReport> Inspect(const std::string& path, const ModelFolderOptions& options,
                                      std::optional<CheckpointLayout> layout) {
  if (!Exists(path)) return NotFound({.what = "no such file or folder", .where = path});
  InspectReport report;
  report.path = path;
  ModelFolderOptions lenient = options;
  lenient.allow_missing = true;
  if (!IsFolder(path) || LooksLikeWeights(path)) {
    report.form = IsFolder(path) ? "weights folder" : "file";
    H3RT_ASSIGN_OR_RETURN(ComponentReport component, InspectComponent("file", path, layout));
    report.components.push_back(std::move(component));
  } else {
    const absl::StatusOr<ModelFolder> model = ModelFolder::Open(path, lenient);
    if (model.ok()) {
      H3RT_RETURN_IF_ERROR(InspectModel(*model, layout, report));
    } else if (model.status().code() == absl::StatusCode::kNotFound) {
      // No parts: perhaps one file of weights under another name.
      absl::StatusOr<ComponentReport> component = InspectComponent("file", path, layout);
      if (!component.ok()) {
        return component.status().code() == absl::StatusCode::kNotFound ? model.status()
                                                                        : component.status();
      }
      report.form = "weights folder";
      report.components.push_back(*std::move(component));
    } else {
      return model.status();
    }
  }
  Sha256 hash;
  for (const ComponentReport& component : report.components) hash.Update(component.header_sha256);
  report.model_id = hash.Finish();
  return report;
}

}  // namespace h3rt
