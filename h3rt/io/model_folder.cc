#include "h3rt/io/model_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "h3rt/base/check.h"
#include "h3rt/base/hash.h"
#include "h3rt/base/json.h"

namespace h3rt {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWholeFile = 64ull << 20;
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kBlocks = 64;
// Headers of large files are hashed whole up to this; released ones have about 100 KB.
constexpr uint64_t kMaxHashedHeader = 100'000'008;

bool Exists(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

class Finder {
 public:
  explicit Finder(ModelFolder& model) : model_(model) {}

  // The first of the names that exists, else empty and listed as missing.
  std::string Part(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const std::string path = model_.root + "/" + name;
      if (Exists(path)) return path;
    }
    model_.missing.push_back(names[0]);
    return "";
  }

  absl::Status Scheduler(const std::string& name, SchedulerConfig& config) {
    const std::string path = Part({name + "/scheduler_config.json"});
    if (path.empty()) return absl::OkStatus();
    H3RT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
    H3RT_ASSIGN_OR_RETURN(config, SchedulerConfig::FromJson(json, path));
    return absl::OkStatus();
  }

 private:
  ModelFolder& model_;
};

absl::Status FindDiffusers(const ModelFolderOptions& options, ModelFolder& model) {
  Finder finder(model);
  model.transformer = finder.Part({options.transformer});
  model.video_vae = finder.Part({"vae"});
  model.audio_vae = finder.Part({"audio_vae"});
  H3RT_RETURN_IF_ERROR(finder.Scheduler("scheduler", model.scheduler));
  return finder.Scheduler("audio_scheduler", model.audio_scheduler);
}

// The shifts are part of model_index.json, block _minimax_h3; the released ones where it is silent.
absl::Status ReadShifts(const std::string& path, ModelFolder& model) {
  if (!Exists(path)) return absl::OkStatus();
  model.index = path;
  H3RT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  if (!json.is_object() || !json.contains("_minimax_h3") || !json["_minimax_h3"].is_object() ||
      !json["_minimax_h3"].contains("sigma_shift_scales")) {
    return absl::OkStatus();
  }
  const Json& scales = json["_minimax_h3"]["sigma_shift_scales"];
  const std::string where = path + " sigma_shift_scales";
  H3RT_ASSIGN_OR_RETURN(model.scheduler.shift, JsonDouble(scales, "video", where));
  H3RT_ASSIGN_OR_RETURN(model.audio_scheduler.shift, JsonDouble(scales, "audio", where));
  absl::Status valid = model.scheduler.Validate();
  if (valid.ok()) valid = model.audio_scheduler.Validate();
  return WithContext(valid, where);
}

absl::Status FindOriginal(const ModelFolderOptions& options, ModelFolder& model) {
  // The folder above the partitions, or a partition itself.
  std::string partition;
  if (!IsFolder(model.root + "/video_vae")) {
    partition = options.transformer == "transformer_ref" ? "Ref2VA/" : "FL2VA/";
  }
  Finder finder(model);
  model.transformer = finder.Part({partition + "transformer"});
  model.video_vae = finder.Part({partition + "video_vae/source", partition + "video_vae"});
  model.audio_vae = finder.Part({partition + "audio_vae"});
  return ReadShifts(model.root + "/" + partition + "model_index.json", model);
}

// Adds the files of one part under "<part>/<path relative to the part>": where the part lies does
// not count, and the files of two parts never share a name. For a folder those below it; for a
// file that file and the config.json beside it, which opening it reads.
absl::Status Collect(const std::string& part, const std::string& path,
                     std::map<std::string, std::string>& files) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const fs::path file(path);
    files[part + "/" + file.filename().generic_string()] = path;
    const fs::path config = file.parent_path() / "config.json";
    if (fs::is_regular_file(config, error)) files[part + "/config.json"] = config.string();
    return absl::OkStatus();
  }
  const auto add = [&](const fs::path& file) {
    const std::string extension = file.extension().string();
    // Weights and configurations; not the README or a checksum list beside them.
    if (extension != ".safetensors" && extension != ".json") return;
    files[part + "/" + file.lexically_relative(path).generic_string()] = file.string();
  };
  fs::recursive_directory_iterator it(path, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error)) add(it->path());
  }
  return error ? ErrnoStatus(error.value(), "list", path) : absl::OkStatus();
}

class FileHasher {
 public:
  static absl::Status Add(const std::string& name, const std::string& path, Sha256& hash) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, "open", path);
    FileHasher hasher(fd, path);
    const absl::Status status = hasher.AddOpen(name, hash);
    ::close(fd);
    return status;
  }

 private:
  FileHasher(int fd, const std::string& path) : fd_(fd), path_(path) {}

  absl::Status AddOpen(const std::string& name, Sha256& hash) {
    struct stat info = {};
    if (::fstat(fd_, &info) != 0) return ErrnoStatus(errno, "read the size of", path_);
    const auto size = static_cast<uint64_t>(info.st_size);
    // A length in front of each part, so that no two lists of parts read alike.
    hash.Update(std::to_string(name.size()) + ":" + name + ":" + std::to_string(size) + "\n");
    if (size <= kWholeFile) return AddRange(0, size, hash);
    uint64_t header = 0;
    if (name.ends_with(".safetensors")) {
      H3RT_RETURN_IF_ERROR(ReadAt(0, 8));
      for (size_t i = 0; i < 8; ++i) header |= static_cast<uint64_t>(buffer_[i]) << (8 * i);
      header = std::min({header, kMaxHashedHeader - 8, size - 8}) + 8;
      H3RT_RETURN_IF_ERROR(AddRange(0, header, hash));
    }
    const uint64_t step = (size - header) / kBlocks;
    for (uint64_t i = 0; i < kBlocks; ++i) {
      const uint64_t begin = header + i * step;
      H3RT_RETURN_IF_ERROR(AddRange(begin, std::min(begin + kBlock, size), hash));
    }
    return absl::OkStatus();
  }

  absl::Status AddRange(uint64_t begin, uint64_t end, Sha256& hash) {
    while (begin < end) {
      const uint64_t count = std::min<uint64_t>(end - begin, 1 << 20);
      H3RT_RETURN_IF_ERROR(ReadAt(begin, count));
      hash.Update(std::span<const std::byte>(buffer_.data(), static_cast<size_t>(count)));
      begin += count;
    }
    return absl::OkStatus();
  }

  absl::Status ReadAt(uint64_t offset, uint64_t count) {
    buffer_.resize(static_cast<size_t>(count));
    size_t done = 0;
    while (done < buffer_.size()) {
      const ssize_t n = ::pread(fd_, buffer_.data() + done, buffer_.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, "read", path_);
      if (n == 0) return IoError({.what = "file became shorter while it was read", .where = path_});
      done += static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

  int fd_;
  const std::string& path_;
  std::vector<std::byte> buffer_;
};

absl::StatusOr<std::string> HashFiles(const std::map<std::string, std::string>& files,
                                      const std::string& where) {
  if (files.empty()) return NotFound({.what = "no model files", .where = where});
  Sha256 hash;
  for (const auto& [name, path] : files) {
    H3RT_RETURN_IF_ERROR(FileHasher::Add(name, path, hash));
  }
  return hash.Finish();
}

}  // namespace

const char* NameOf(ModelForm form) {
  return form == ModelForm::kDiffusers ? "diffusers" : "original";
}

absl::StatusOr<ModelFolder> ModelFolder::Open(const std::string& folder,
                                              const ModelFolderOptions& options) {
  if (options.transformer != "transformer" && options.transformer != "transformer_ref") {
    return InvalidArgument({.what = "which transformer",
                            .got = "\"" + options.transformer + "\"",
                            .wanted = "transformer or transformer_ref"});
  }
  if (!IsFolder(folder)) {
    return NotFound({.what = "model folder",
                     .got = Exists(folder) ? "a file" : "nothing",
                     .wanted = "a folder",
                     .where = folder});
  }
  ModelFolder model;
  model.root = folder;
  model.scheduler.shift = 12.0;
  model.audio_scheduler.shift = 3.0;
  const bool original = IsFolder(folder + "/FL2VA") || IsFolder(folder + "/Ref2VA") ||
                        IsFolder(folder + "/video_vae");
  model.form = original ? ModelForm::kOriginal : ModelForm::kDiffusers;
  H3RT_RETURN_IF_ERROR(original ? FindOriginal(options, model) : FindDiffusers(options, model));
  const std::string text = folder + "/text_encoder/config.json";
  if (Exists(text)) model.text_encoder_config = text;
  const bool none = model.transformer.empty() && model.video_vae.empty() && model.audio_vae.empty();
  if (none || (!model.missing.empty() && !options.allow_missing)) {
    std::string list;
    for (const std::string& name : model.missing) list += (list.empty() ? "" : ", ") + name;
    return NotFound({.what = none ? "no model in this folder" : "model parts are missing",
                     .got = "no " + list,
                     .wanted = original ? "MiniMax's original layout" : "the diffusers layout",
                     .where = folder});
  }
  return model;
}

absl::StatusOr<std::string> ModelHash(const ModelFolder& model) {
  std::map<std::string, std::string> files;
  const std::pair<const char*, const std::string*> parts[] = {{"transformer", &model.transformer},
                                                              {"vae", &model.video_vae},
                                                              {"audio_vae", &model.audio_vae}};
  for (const auto& [name, path] : parts) H3RT_RETURN_IF_ERROR(Collect(name, *path, files));
  for (const char* name : {"scheduler", "audio_scheduler"}) {
    const std::string path = model.root + "/" + name;
    if (IsFolder(path)) H3RT_RETURN_IF_ERROR(Collect(name, path, files));
  }
  if (!model.text_encoder_config.empty()) {
    files["text_encoder/config.json"] = model.text_encoder_config;
  }
  if (!model.index.empty()) files["model_index.json"] = model.index;
  return HashFiles(files, model.root);
}

absl::StatusOr<std::string> WeightsHash(const std::string& path) {
  if (!Exists(path)) return NotFound({.what = "no such file", .where = path});
  std::map<std::string, std::string> files;
  H3RT_RETURN_IF_ERROR(Collect("weights", path, files));
  return HashFiles(files, path);
}

}  // namespace h3rt
