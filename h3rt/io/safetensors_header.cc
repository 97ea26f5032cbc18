// The header of a safetensors file, parsed event by event: a hostile header of 100 MB costs its
// entries and no document tree.
#include <algorithm>
#include <array>
#include <exception>
#include <tuple>
#include <utility>

#include "h3rt/base/json.h"
#include "h3rt/io/safetensors.h"

namespace h3rt {
namespace {

constexpr uint64_t kLengthField = 8;

struct DTypeRow {
  std::string_view name;
  uint64_t bits;
};

// Everything that the format defines; h3rt's own dtypes are found through DTypeFromName.
constexpr std::array<DTypeRow, 22> kDTypes = {{
    {"BOOL", 8},    {"U8", 8},          {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"I16", 16}, {"U16", 16},    {"F8_E5M2FNUZ", 8},
    {"F16", 16},    {"BF16", 16},       {"I32", 32}, {"U32", 32},    {"F32", 32},
    {"C64", 64},    {"F64", 64},        {"I64", 64}, {"U64", 64},    {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6},
}};

std::optional<uint64_t> BitsOf(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.bits;
  }
  return std::nullopt;
}

std::string Quoted(std::string_view key) { return "\"" + std::string(key.substr(0, 200)) + "\""; }

std::string Listed(const std::vector<uint64_t>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(values[i]);
  }
  return out + "]";
}

absl::Status Corrupt(std::string what, std::string got, std::string wanted,
                     const std::string& where) {
  return DataLoss({.what = std::move(what),
                   .got = std::move(got),
                   .wanted = std::move(wanted),
                   .where = where});
}

// One tensor as the header spells it.
struct RawEntry {
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

absl::StatusOr<SafetensorsEntry> CheckEntry(const std::string& key, const RawEntry& raw,
                                            uint64_t data_size, const std::string& where) {
  const auto bad = [&](std::string part, std::string got, std::string wanted) {
    return Corrupt("safetensors key " + Quoted(key) + std::move(part), std::move(got),
                   std::move(wanted), where);
  };
  if (!raw.dtype || !raw.shape || !raw.offsets) {
    return bad("",
               !raw.dtype   ? "no dtype"
               : !raw.shape ? "no shape"
                            : "no data_offsets",
               "dtype, shape and data_offsets");
  }
  const std::optional<uint64_t> bits = BitsOf(*raw.dtype);
  if (!bits) return bad(" dtype", Quoted(*raw.dtype), "a dtype that safetensors defines");
  SafetensorsEntry entry;
  entry.dtype_name = *raw.dtype;
  entry.dtype = DTypeFromName(entry.dtype_name);
  std::vector<int64_t> dims;
  for (const uint64_t extent : *raw.shape) {
    // 2^63 and more turn negative here, which FromDims refuses.
    dims.push_back(static_cast<int64_t>(extent));
  }
  absl::StatusOr<Shape> shape = Shape::FromDims(dims);
  if (!shape.ok()) return bad(" shape", Listed(*raw.shape), "at most 2^62 elements");
  entry.shape = *shape;
  if (raw.offsets->size() != 2) {
    return bad(" data_offsets", Listed(*raw.offsets), "two offsets");
  }
  entry.begin = (*raw.offsets)[0];
  entry.end = (*raw.offsets)[1];
  if (entry.begin > entry.end) {
    return bad(" data_offsets", Listed(*raw.offsets), "the begin at or before the end");
  }
  if (entry.end > data_size) {
    return bad(" data_offsets", Listed(*raw.offsets),
               "an end inside the " + std::to_string(data_size) + " bytes of data");
  }
  uint64_t total_bits = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(entry.shape.elements()), *bits, &total_bits) ||
      total_bits % 8 != 0) {
    return bad(" size", entry.shape.ToString() + " of " + entry.dtype_name,
               "a whole number of bytes below 2^61");
  }
  if (entry.end - entry.begin != total_bits / 8) {
    return bad(
        " size", std::to_string(entry.end - entry.begin) + " bytes",
        std::to_string(total_bits / 8) + " for " + entry.dtype_name + " " + entry.shape.ToString());
  }
  return entry;
}

// nlohmann's event interface, whose function names are given.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(uint64_t data_size, const std::string& where, SafetensorsHeader& header)
      : data_size_(data_size), where_(where), header_(header) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return Value("null"); }
  bool boolean(bool value) override { return Value(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return Value(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return Value(text); }
  bool binary(Json::binary_t&) override { return Value("binary data"); }

  bool number_unsigned(uint64_t value) override {
    std::vector<uint64_t>* const list = List();
    if (list == nullptr) return Value(std::to_string(value));
    if (list->size() == Shape::kMaxRank) {
      return Fail("more than 8 numbers", at_ == At::kShape ? "at most 8 extents" : "two offsets");
    }
    list->push_back(value);
    return true;
  }

  bool string(std::string& value) override {
    if (at_ == At::kMetadataValue) {
      header_.metadata[metadata_key_] = value;
      at_ = At::kMetadata;
      return true;
    }
    if (at_ != At::kDType) return Value(Quoted(value));
    entry_.dtype = value;
    at_ = At::kEntry;
    return true;
  }

  bool start_object(size_t) override {
    if (at_ == At::kStart) {
      at_ = At::kTop;
    } else if (at_ == At::kEntryValue) {
      at_ = key_ == "__metadata__" ? At::kMetadata : At::kEntry;
      entry_ = RawEntry();
    } else {
      return Value("an object");
    }
    return true;
  }

  bool key(std::string& name) override {
    if (at_ == At::kTop) {
      key_ = name;
      const bool metadata = key_ == "__metadata__";
      if (metadata ? seen_metadata_ : header_.entries.find(key_) != header_.entries.end()) {
        return Fail("the key twice", "each key once");
      }
      seen_metadata_ = seen_metadata_ || metadata;
      at_ = At::kEntryValue;
      return true;
    }
    if (at_ == At::kMetadata) {
      if (header_.metadata.find(name) != header_.metadata.end()) {
        return Fail("entry " + Quoted(name) + " twice", "each entry once");
      }
      metadata_key_ = name;
      at_ = At::kMetadataValue;
      return true;
    }
    const bool twice = (name == "dtype" && entry_.dtype) || (name == "shape" && entry_.shape) ||
                       (name == "data_offsets" && entry_.offsets);
    if (twice) return Fail("field " + Quoted(name) + " twice", "each field once");
    if (name == "dtype") {
      at_ = At::kDType;
    } else if (name == "shape") {
      at_ = At::kShape;
    } else if (name == "data_offsets") {
      at_ = At::kOffsets;
    } else {
      return Fail("field " + Quoted(name), "dtype, shape and data_offsets");
    }
    return true;
  }

  bool end_object() override {
    if (at_ == At::kTop) {
      at_ = At::kEnd;
      return true;
    }
    if (at_ == At::kEntry) {
      absl::StatusOr<SafetensorsEntry> entry = CheckEntry(key_, entry_, data_size_, where_);
      if (!entry.ok()) {
        status_ = entry.status();
        return false;
      }
      header_.entries.emplace(key_, *std::move(entry));
    }
    at_ = At::kTop;
    return true;
  }

  bool start_array(size_t) override {
    std::optional<std::vector<uint64_t>>* field = nullptr;
    if (at_ == At::kShape) field = &entry_.shape;
    if (at_ == At::kOffsets) field = &entry_.offsets;
    // A list inside the list arrives here with the field filled.
    if (field == nullptr || *field) return Value("a list");
    field->emplace();
    return true;
  }

  bool end_array() override {
    at_ = At::kEntry;
    return true;
  }

  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    status_ = Corrupt("safetensors header is not valid JSON", error.what(), "", where_);
    return false;
  }

 private:
  enum class At {
    kStart,
    kTop,
    kEntryValue,
    kEntry,
    kDType,
    kShape,
    kOffsets,
    kMetadata,
    kMetadataValue,
    kEnd
  };

  // The list that numbers go to, once its bracket was seen.
  std::vector<uint64_t>* List() {
    if (at_ == At::kShape && entry_.shape) return &*entry_.shape;
    if (at_ == At::kOffsets && entry_.offsets) return &*entry_.offsets;
    return nullptr;
  }

  bool Fail(std::string got, std::string wanted) {
    std::string what = at_ == At::kStart ? "safetensors header" : "safetensors key " + Quoted(key_);
    if (at_ == At::kDType) what += " dtype";
    if (at_ == At::kShape) what += " shape";
    if (at_ == At::kOffsets) what += " data_offsets";
    if (at_ == At::kMetadataValue) what += " entry " + Quoted(metadata_key_);
    status_ = Corrupt(std::move(what), std::move(got), std::move(wanted), where_);
    return false;
  }

  // A value of a type that does not belong where it stands.
  bool Value(const std::string& got) {
    switch (at_) {
      case At::kDType:
      case At::kMetadataValue:
        return Fail(got, "a string");
      case At::kShape:
        return Fail(got, "a list of extents of 0 or more");
      case At::kOffsets:
        return Fail(got, "two offsets of 0 or more");
      default:
        return Fail(got, "an object");
    }
  }

  const uint64_t data_size_;
  const std::string& where_;
  SafetensorsHeader& header_;
  absl::Status status_;
  At at_ = At::kStart;
  std::string key_;
  std::string metadata_key_;
  bool seen_metadata_ = false;
  RawEntry entry_;
};

// The tensors have to cover the data exactly, in any order of names.
absl::Status CheckCoverage(const SafetensorsHeader& header, uint64_t data_size,
                           const std::string& where) {
  using Pair = std::pair<const std::string, SafetensorsEntry>;
  std::vector<const Pair*> order;
  order.reserve(header.entries.size());
  for (const Pair& item : header.entries) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const Pair* a, const Pair* b) {
    return std::tie(a->second.begin, a->second.end, a->first) <
           std::tie(b->second.begin, b->second.end, b->first);
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

absl::Status ParseText(std::string_view text, uint64_t data_size, const std::string& where,
                       SafetensorsHeader& header) {
  HeaderHandler handler(data_size, where, header);
  bool done = false;
  try {
    done = Json::sax_parse(text.begin(), text.end(), &handler);
  } catch (const std::exception& error) {
    return Corrupt("safetensors header is not valid JSON", error.what(), "", where);
  }
  if (done && handler.status().ok()) return absl::OkStatus();
  H3RT_RETURN_IF_ERROR(handler.status());
  return Corrupt("safetensors header is not valid JSON", "no reason", "", where);
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> head,
                                                         uint64_t file_size,
                                                         const std::string& where) {
  if (file_size < kLengthField || head.size() < kLengthField) {
    return Corrupt("safetensors file is too short", std::to_string(file_size) + " bytes",
                   "at least 8 bytes of header length", where);
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthField; ++i) length |= static_cast<uint64_t>(head[i]) << (8 * i);
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
  SafetensorsHeader header;
  header.data_begin = kLengthField + length;
  const uint64_t data_size = file_size - header.data_begin;
  H3RT_RETURN_IF_ERROR(ParseText(text, data_size, where, header));
  H3RT_RETURN_IF_ERROR(CheckCoverage(header, data_size, where));
  return header;
}

}  // namespace h3rt
