// Reading and writing safetensors files, and folders of shards with an index.
//
// The format: 8 bytes little-endian header length N, N bytes of JSON (an object name -> {dtype,
// shape, data_offsets}, optional "__metadata__" of strings, padded with spaces), then the data,
// which the tensors cover without gap or overlap. Reading is strict: every rule is checked before
// anything is returned, from the header alone, so that opening a file never touches its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/base/status.h"
#include "h3rt/io/mapped_file.h"
#include "h3rt/tensor/dtype.h"
#include "h3rt/tensor/shape.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// Longer headers are refused before they are parsed, as in the public implementation.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  // Empty for the dtypes that the format knows and h3rt does not compute with (U16, F8_E8M0, ...).
  std::optional<DType> dtype;
  std::string dtype_name;
  Shape shape;
  uint64_t begin = 0;  // bytes from the start of the data
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry, std::less<>> entries;
  std::map<std::string, std::string, std::less<>> metadata;
  uint64_t data_begin = 0;  // bytes from the start of the file
};

// Parses and checks the header of a file of `file_size` bytes whose first bytes are `head` (at
// least the header, or the whole file when it is shorter). kDataLoss names `where` (the file), the
// key, what is there and what was expected.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> head,
                                                         uint64_t file_size,
                                                         const std::string& where);

// One mapped file. Copies share the mapping.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::map<std::string, SafetensorsEntry, std::less<>>& entries() const {
    return header_->entries;
  }
  const std::map<std::string, std::string, std::less<>>& metadata() const {
    return header_->metadata;
  }
  bool Has(std::string_view name) const { return entries().find(name) != entries().end(); }
  // A view into the mapping. kNotFound for an unknown name, kUnimplemented for a dtype that h3rt
  // has no type for. The data may lie at any byte, see IsAligned.
  absl::StatusOr<ConstTensorView> Get(std::string_view name) const;
  // Length field and JSON, as they are in the file.
  std::span<const std::byte> header_bytes() const {
    return file_->bytes().first(static_cast<size_t>(header_->data_begin));
  }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const SafetensorsHeader> header_;
};

// True when every element lies at a multiple of its size, which C++ wants for reads through typed
// pointers and the format does not promise.
bool IsAligned(const ConstTensorView& view);

// The tensors of a checkpoint: one file, or the shards that an index lists.
class SafetensorsSet {
 public:
  struct Item {
    const SafetensorsEntry* entry = nullptr;
    size_t file = 0;  // index into files()
  };

  // `path` is a .safetensors file, a folder with exactly one, or a folder with
  // model.safetensors.index.json or diffusion_pytorch_model.safetensors.index.json. The index and
  // its shards have to agree key by key: kDataLoss names a key that is listed and not there, or
  // there and not listed, or a shard name that leaves the folder; kNotFound a missing shard.
  static absl::StatusOr<SafetensorsSet> Open(const std::string& path);

  // True when an index file listed the shards.
  bool sharded() const { return sharded_; }
  const std::vector<SafetensorsFile>& files() const { return files_; }
  const std::map<std::string, Item, std::less<>>& items() const { return items_; }
  bool Has(std::string_view name) const { return items_.find(name) != items_.end(); }
  const SafetensorsEntry* Find(std::string_view name) const;
  absl::StatusOr<ConstTensorView> Get(std::string_view name) const;
  const std::string& PathOf(std::string_view name) const;  // file of a tensor that exists
  // The path given to Open.
  const std::string& path() const { return path_; }

 private:
  absl::Status AddFile(const std::string& path);
  absl::Status ReadIndex(const std::string& folder, const std::string& index_path);

  std::string path_;
  bool sharded_ = false;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Item, std::less<>> items_;
};

struct SafetensorsSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

// Writes a file of any size without holding it: the header first, then the data of the tensors in
// the order of specs(). The file appears under its name only after Finish.
class SafetensorsWriter {
 public:
  using Metadata = std::map<std::string, std::string, std::less<>>;
  // Sorts the tensors by element size, largest first, then by name, so that each is aligned.
  // kInvalidArgument for a duplicate or empty name, "__metadata__", or a header over the limit.
  // `hash`, where given, takes in every byte of the file as it is written; it has to outlive the
  // writer's use.
  static absl::StatusOr<SafetensorsWriter> Create(const std::string& path,
                                                  std::vector<SafetensorsSpec> specs,
                                                  const Metadata& metadata = {},
                                                  Sha256* hash = nullptr);
  // The order in which the data has to come.
  const std::vector<SafetensorsSpec>& specs() const { return specs_; }
  // The next bytes of the data, in pieces of any size. Running past the end is kInvalidArgument.
  absl::Status Append(std::span<const std::byte> bytes);
  // Refuses (kInvalidArgument) while data is missing, then flushes and renames.
  absl::Status Finish();

 private:
  explicit SafetensorsWriter(PendingFile file) : file_(std::move(file)) {}

  PendingFile file_;
  std::string path_;
  std::vector<SafetensorsSpec> specs_;
  Sha256* hash_ = nullptr;
  uint64_t expected_ = 0;
  uint64_t written_ = 0;
};

// Writes tensors that are in memory, views of any strides.
absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, ConstTensorView, std::less<>>& tensors,
                              const SafetensorsWriter::Metadata& metadata = {});

}  // namespace h3rt
