// Shards and their index; the single file is in safetensors.cc.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "h3rt/base/check.h"
#include "h3rt/base/json.h"
#include "h3rt/io/safetensors.h"

namespace h3rt {
namespace {

constexpr const char* kIndexNames[] = {"model.safetensors.index.json",
                                       "diffusion_pytorch_model.safetensors.index.json"};

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool Exists(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0;
}

// The .safetensors files of a folder, sorted by name.
absl::StatusOr<std::vector<std::string>> ListSafetensors(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  std::filesystem::directory_iterator it(folder, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".safetensors") out.push_back(it->path().string());
  }
  if (error) return ErrnoStatus(error.value(), "list", folder);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

absl::StatusOr<SafetensorsSet> SafetensorsSet::Open(const std::string& path) {
  SafetensorsSet set;
  set.path_ = path;
  if (!IsFolder(path)) {
    H3RT_RETURN_IF_ERROR(set.AddFile(path));
    return set;
  }
  for (const char* name : kIndexNames) {
    const std::string index = path + "/" + name;
    if (Exists(index)) {
      H3RT_RETURN_IF_ERROR(set.ReadIndex(path, index));
      return set;
    }
  }
  H3RT_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListSafetensors(path));
  if (files.empty()) {
    return NotFound({.what = "no weights",
                     .got = "a folder without .safetensors files",
                     .wanted = "one file, or shards with an index",
                     .where = path});
  }
  if (files.size() > 1) {
    return DataLoss({.what = "several .safetensors files and no index",
                     .got = std::to_string(files.size()) + " files",
                     .wanted = "one file, or " + std::string(kIndexNames[0]),
                     .where = path});
  }
  H3RT_RETURN_IF_ERROR(set.AddFile(files[0]));
  return set;
}

absl::Status SafetensorsSet::AddFile(const std::string& path) {
  H3RT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  for (const auto& [name, entry] : file.entries()) {
    const auto [it, fresh] = items_.emplace(name, Item{&entry, files_.size()});
    if (!fresh) {
      return DataLoss({.what = "key \"" + name + "\" is in two shards",
                       .got = path,
                       .wanted = "only " + files_[it->second.file].path(),
                       .where = path_});
    }
  }
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status SafetensorsSet::ReadIndex(const std::string& folder, const std::string& index_path) {
  H3RT_ASSIGN_OR_RETURN(const Json index, ReadJsonFile(index_path));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object() ||
      index["weight_map"].empty()) {
    return DataLoss({.what = "shard index",
                     .got = JsonSnippet(index),
                     .wanted = "an object with a filled weight_map",
                     .where = index_path});
  }
  std::map<std::string, std::string> listed;
  std::map<std::string, std::string> first_key;  // shard -> a key, for messages
  for (const auto& item : index["weight_map"].items()) {
    const std::string shard = item.value().is_string() ? item.value().get<std::string>() : "";
    // A shard lies beside its index; a path would reach files that are not part of the model.
    if (shard.empty() || shard.find('/') != std::string::npos || shard.front() == '.') {
      return DataLoss({.what = "shard name of key \"" + item.key() + "\"",
                       .got = JsonSnippet(item.value()),
                       .wanted = "the name of a file in the same folder",
                       .where = index_path});
    }
    listed[item.key()] = shard;
    first_key.emplace(shard, item.key());
  }
  for (const auto& [shard, key] : first_key) {
    const std::string path = folder + "/" + shard;
    if (!Exists(path)) {
      return NotFound({.what = "missing shard " + shard + " with key \"" + key + "\"",
                       .got = "no such file",
                       .wanted = path,
                       .where = index_path});
    }
    H3RT_RETURN_IF_ERROR(AddFile(path));
  }
  for (const auto& [key, shard] : listed) {
    const auto it = items_.find(key);
    const std::string wanted = folder + "/" + shard;
    if (it == items_.end() || files_[it->second.file].path() != wanted) {
      return DataLoss(
          {.what = "key \"" + key + "\" of the index",
           .got = it == items_.end() ? "in no shard" : "in " + files_[it->second.file].path(),
           .wanted = "in " + wanted,
           .where = index_path});
    }
  }
  for (const auto& [key, item] : items_) {
    if (listed.find(key) == listed.end()) {
      return DataLoss({.what = "key \"" + key + "\"",
                       .got = "in " + files_[item.file].path(),
                       .wanted = "no key that the index does not list",
                       .where = index_path});
    }
  }
  sharded_ = true;
  return absl::OkStatus();
}

const SafetensorsEntry* SafetensorsSet::Find(std::string_view name) const {
  const auto it = items_.find(name);
  return it == items_.end() ? nullptr : it->second.entry;
}

absl::StatusOr<ConstTensorView> SafetensorsSet::Get(std::string_view name) const {
  const auto it = items_.find(name);
  if (it == items_.end()) {
    return NotFound({.what = "no tensor \"" + std::string(name) + "\"", .where = path_});
  }
  return files_[it->second.file].Get(name);
}

const std::string& SafetensorsSet::PathOf(std::string_view name) const {
  const auto it = items_.find(name);
  H3RT_CHECK(it != items_.end());
  return files_[it->second.file].path();
}

}  // namespace h3rt
