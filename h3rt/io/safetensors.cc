#include "h3rt/io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "h3rt/base/json.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {
namespace {

constexpr uint64_t kLengthField = 8;

std::string Quoted(std::string_view key) { return "\"" + std::string(key.substr(0, 200)) + "\""; }

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile out;
  H3RT_ASSIGN_OR_RETURN(out.file_, MappedFile::Open(path));
  H3RT_ASSIGN_OR_RETURN(SafetensorsHeader header,
                        ParseSafetensorsHeader(out.file_->bytes(), out.file_->size(), path));
  out.header_ = std::make_shared<const SafetensorsHeader>(std::move(header));
  return out;
}

absl::StatusOr<ConstTensorView> SafetensorsFile::Get(std::string_view name) const {
  const auto it = entries().find(name);
  if (it == entries().end()) {
    return NotFound({.what = "no tensor " + Quoted(name), .where = path()});
  }
  const SafetensorsEntry& entry = it->second;
  if (!entry.dtype) {
    return Unimplemented({.what = "tensor " + Quoted(name),
                          .got = "dtype " + entry.dtype_name,
                          .wanted = "a dtype that h3rt computes with",
                          .where = path()});
  }
  return ConstTensorView(file_->bytes().data() + header_->data_begin + entry.begin, *entry.dtype,
                         entry.shape);
}

bool IsAligned(const ConstTensorView& view) {
  return reinterpret_cast<uintptr_t>(view.data()) % static_cast<uintptr_t>(SizeOf(view.dtype())) ==
         0;
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                            std::vector<SafetensorsSpec> specs,
                                                            const Metadata& metadata,
                                                            Sha256* hash) {
  std::sort(specs.begin(), specs.end(), [](const SafetensorsSpec& a, const SafetensorsSpec& b) {
    const int64_t size_a = SizeOf(a.dtype);
    const int64_t size_b = SizeOf(b.dtype);
    return size_a != size_b ? size_a > size_b : a.name < b.name;
  });
  Json json = Json::object();
  if (!metadata.empty()) {
    Json& object = json["__metadata__"] = Json::object();
    for (const auto& [key, value] : metadata) object[key] = value;
  }
  std::map<std::string_view, bool> seen;
  uint64_t offset = 0;
  for (const SafetensorsSpec& spec : specs) {
    if (spec.name.empty() || spec.name == "__metadata__" || !seen.emplace(spec.name, true).second) {
      return InvalidArgument({.what = "tensor name to write",
                              .got = Quoted(spec.name),
                              .wanted = "a name of its own",
                              .where = path});
    }
    const uint64_t bytes =
        static_cast<uint64_t>(spec.shape.elements()) * static_cast<uint64_t>(SizeOf(spec.dtype));
    Json entry = Json::object();
    entry["dtype"] = std::string(NameOf(spec.dtype));
    entry["shape"] = Json::array();
    for (const int64_t d : spec.shape.dims()) entry["shape"].push_back(static_cast<uint64_t>(d));
    entry["data_offsets"] = {offset, offset + bytes};
    json.push_back({spec.name, std::move(entry)});
    offset += bytes;
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxSafetensorsHeader) {
    return InvalidArgument({.what = "safetensors header to write",
                            .got = std::to_string(text.size()) + " bytes",
                            .wanted = "at most " + std::to_string(kMaxSafetensorsHeader),
                            .where = path});
  }
  H3RT_ASSIGN_OR_RETURN(PendingFile file, PendingFile::Create(path));
  std::array<std::byte, kLengthField> length{};
  for (size_t i = 0; i < kLengthField; ++i) {
    length[i] = static_cast<std::byte>((text.size() >> (8 * i)) & 0xff);
  }
  H3RT_RETURN_IF_ERROR(file.Write(length));
  H3RT_RETURN_IF_ERROR(file.Write(text));
  if (hash != nullptr) hash->Update(length);
  if (hash != nullptr) hash->Update(text);
  SafetensorsWriter writer(std::move(file));
  writer.hash_ = hash;
  writer.path_ = path;
  writer.specs_ = std::move(specs);
  writer.expected_ = offset;
  return writer;
}

absl::Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  if (bytes.size() > expected_ - written_) {
    return InvalidArgument({.what = "tensor data to write",
                            .got = std::to_string(written_ + bytes.size()) + " bytes",
                            .wanted = std::to_string(expected_),
                            .where = path_});
  }
  H3RT_RETURN_IF_ERROR(file_.Write(bytes));
  if (hash_ != nullptr) hash_->Update(bytes);
  written_ += bytes.size();
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish() {
  if (written_ != expected_) {
    return InvalidArgument({.what = "tensor data to write",
                            .got = std::to_string(written_) + " bytes",
                            .wanted = std::to_string(expected_),
                            .where = path_});
  }
  return file_.Commit();
}

absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, ConstTensorView, std::less<>>& tensors,
                              const SafetensorsWriter::Metadata& metadata) {
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const auto& [name, view] : tensors) specs.push_back({name, view.dtype(), view.shape()});
  H3RT_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                        SafetensorsWriter::Create(path, std::move(specs), metadata));
  for (const SafetensorsSpec& spec : writer.specs()) {
    const ConstTensorView& view = tensors.find(spec.name)->second;
    if (view.contiguous()) {
      H3RT_RETURN_IF_ERROR(writer.Append({view.data(), static_cast<size_t>(view.bytes())}));
    } else {
      H3RT_ASSIGN_OR_RETURN(const Tensor copy, Tensor::Copy(view));
      H3RT_RETURN_IF_ERROR(
          writer.Append({copy.view().data(), static_cast<size_t>(copy.view().bytes())}));
    }
  }
  return writer.Finish();
}

}  // namespace h3rt
