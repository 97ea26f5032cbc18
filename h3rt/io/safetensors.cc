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

struct DTypeRow {
  std::string_view name;
  uint64_t bits;
};

// Everything that the format defines; h3rt's own dtypes are found through DTypeFromName.
constexpr std::array<DTypeRow, 21> kDTypes = {{
    {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},
    {"F16", 16},    {"BF16", 16},       {"I32", 32},        {"U32", 32},    {"F32", 32},
    {"C64", 64},    {"F64", 64},        {"I64", 64},        {"U64", 64},    {"F4", 4},
    {"F6_E2M3", 6},
}};

std::optional<uint64_t> BitsOf(std::string_view name) {
  if (name == "F6_E3M2") return 6;
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.bits;
  }
  return std::nullopt;
}

std::string Quoted(std::string_view key) {
  std::string out = "\"" + std::string(key.substr(0, 200)) + "\"";
  return out;
}

absl::Status Corrupt(std::string what, std::string got, std::string wanted,
                     const std::string& where) {
  return DataLoss({.what = std::move(what),
                   .got = std::move(got),
                   .wanted = std::move(wanted),
                   .where = where});
}

// One tensor of the header, errors naming its key.
class EntryParser {
 public:
  EntryParser(std::string_view key, uint64_t data_size, const std::string& where)
      : what_("safetensors key " + Quoted(key)), data_size_(data_size), where_(where) {}

  absl::StatusOr<SafetensorsEntry> Parse(const Json& json) const {
    if (!json.is_object()) return Bad("", JsonSnippet(json), "an object");
    for (const auto& item : json.items()) {
      if (item.key() != "dtype" && item.key() != "shape" && item.key() != "data_offsets") {
        return Bad("", "field " + Quoted(item.key()), "dtype, shape and data_offsets");
      }
    }
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!json.contains(field)) return Bad("", JsonSnippet(json), std::string("field ") + field);
    }
    SafetensorsEntry entry;
    const Json& dtype = json["dtype"];
    const std::optional<uint64_t> bits =
        dtype.is_string() ? BitsOf(dtype.get_ref<const std::string&>()) : std::nullopt;
    if (!bits) return Bad(" dtype", JsonSnippet(dtype), "a dtype that safetensors defines");
    entry.dtype_name = dtype.get<std::string>();
    entry.dtype = DTypeFromName(entry.dtype_name);
    H3RT_RETURN_IF_ERROR(ParseShape(json["shape"], entry));
    H3RT_RETURN_IF_ERROR(ParseOffsets(json["data_offsets"], entry));
    const uint64_t elements = static_cast<uint64_t>(entry.shape.elements());
    uint64_t total_bits = 0;
    if (__builtin_mul_overflow(elements, *bits, &total_bits) || total_bits % 8 != 0) {
      return Bad(" size", entry.shape.ToString() + " of " + entry.dtype_name,
                 "a whole number of bytes below 2^61");
    }
    if (entry.end - entry.begin != total_bits / 8) {
      return Bad(" size", std::to_string(entry.end - entry.begin) + " bytes",
                 std::to_string(total_bits / 8) + " for " + entry.dtype_name + " " +
                     entry.shape.ToString());
    }
    return entry;
  }

 private:
  absl::Status Bad(const std::string& part, std::string got, std::string wanted) const {
    return Corrupt(what_ + part, std::move(got), std::move(wanted), where_);
  }

  absl::Status ParseShape(const Json& json, SafetensorsEntry& entry) const {
    if (!json.is_array() || json.size() > Shape::kMaxRank) {
      return Bad(" shape", JsonSnippet(json), "a list of at most 8 extents");
    }
    std::vector<int64_t> dims;
    for (const Json& item : json) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        return Bad(" shape", JsonSnippet(json), "extents from 0 to 2^63 - 1");
      }
      dims.push_back(item.get<int64_t>());
    }
    absl::StatusOr<Shape> shape = Shape::FromDims(dims);
    if (!shape.ok()) return Bad(" shape", JsonSnippet(json), "at most 2^62 elements");
    entry.shape = *shape;
    return absl::OkStatus();
  }

  absl::Status ParseOffsets(const Json& json, SafetensorsEntry& entry) const {
    if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() ||
        !json[1].is_number_unsigned()) {
      return Bad(" data_offsets", JsonSnippet(json), "two offsets of 0 or more");
    }
    entry.begin = json[0].get<uint64_t>();
    entry.end = json[1].get<uint64_t>();
    if (entry.begin > entry.end) {
      return Bad(" data_offsets", JsonSnippet(json), "the begin at or before the end");
    }
    if (entry.end > data_size_) {
      return Bad(" data_offsets", JsonSnippet(json),
                 "an end inside the " + std::to_string(data_size_) + " bytes of data");
    }
    return absl::OkStatus();
  }

  std::string what_;
  uint64_t data_size_;
  const std::string& where_;
};

absl::Status ParseMetadata(const Json& json, const std::string& where, SafetensorsHeader& header) {
  if (!json.is_object()) {
    return Corrupt("safetensors key \"__metadata__\"", JsonSnippet(json), "an object of strings",
                   where);
  }
  for (const auto& item : json.items()) {
    if (!item.value().is_string()) {
      return Corrupt("safetensors key \"__metadata__\" entry " + Quoted(item.key()),
                     JsonSnippet(item.value()), "a string", where);
    }
    header.metadata[item.key()] = item.value().get<std::string>();
  }
  return absl::OkStatus();
}

// The tensors have to cover the data exactly, in any order of names.
absl::Status CheckCoverage(const SafetensorsHeader& header, uint64_t data_size,
                           const std::string& where) {
  using Pair = std::pair<const std::string, SafetensorsEntry>;
  std::vector<const Pair*> order;
  order.reserve(header.entries.size());
  for (const Pair& item : header.entries) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const Pair* a, const Pair* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t covered = 0;
  for (const Pair* item : order) {
    const uint64_t begin = item->second.begin;
    if (begin != covered) {
      return Corrupt(std::string("safetensors data ") + (begin < covered ? "overlap" : "gap") +
                         " at key " + Quoted(item->first),
                     "offset " + std::to_string(begin), std::to_string(covered), where);
    }
    covered = item->second.end;
  }
  if (covered != data_size) {
    return Corrupt("safetensors file size: trailing bytes after the last tensor",
                   std::to_string(data_size) + " bytes of data", std::to_string(covered), where);
  }
  return absl::OkStatus();
}

uint64_t ReadLength(std::span<const std::byte> head) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthField; ++i) {
    length |= static_cast<uint64_t>(head[i]) << (8 * i);
  }
  return length;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> head,
                                                         uint64_t file_size,
                                                         const std::string& where) {
  if (file_size < kLengthField || head.size() < kLengthField) {
    return Corrupt("safetensors file is too short", std::to_string(file_size) + " bytes",
                   "at least 8 bytes of header length", where);
  }
  const uint64_t length = ReadLength(head);
  if (length > kMaxSafetensorsHeader) {
    return Corrupt("safetensors header length", std::to_string(length),
                   "at most " + std::to_string(kMaxSafetensorsHeader), where);
  }
  if (length > file_size - kLengthField || length > head.size() - kLengthField) {
    return Corrupt(
        "safetensors header length", std::to_string(length),
        "at most the " + std::to_string(file_size - kLengthField) + " bytes that follow the length",
        where);
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + kLengthField,
                              static_cast<size_t>(length));
  // The parser would let a byte order mark and leading blanks pass; the format does not.
  if (text.empty() || text.front() != '{') {
    return Corrupt("safetensors header", text.empty() ? "0 bytes" : "another first character",
                   "a JSON object that begins with {", where);
  }
  H3RT_ASSIGN_OR_RETURN(const Json json, ParseJson(text, where + " header"));
  SafetensorsHeader header;
  header.data_begin = kLengthField + length;
  const uint64_t data_size = file_size - header.data_begin;
  for (const auto& item : json.items()) {
    if (item.key() == "__metadata__") {
      H3RT_RETURN_IF_ERROR(ParseMetadata(item.value(), where, header));
      continue;
    }
    const EntryParser parser(item.key(), data_size, where);
    H3RT_ASSIGN_OR_RETURN(SafetensorsEntry entry, parser.Parse(item.value()));
    header.entries.emplace(item.key(), std::move(entry));
  }
  H3RT_RETURN_IF_ERROR(CheckCoverage(header, data_size, where));
  return header;
}

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
                                                            const Metadata& metadata) {
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
  SafetensorsWriter writer(std::move(file));
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
