#include "h3rt/media/clip_metadata.h"

#include <charconv>
#include <set>

#include "h3rt/base/json.h"

namespace h3rt {
namespace {

constexpr std::string_view kExtraPrefix = "h3rt_x_";
constexpr size_t kTitleBytes = 120;

bool IsContinuation(unsigned char c) { return (c & 0xC0) == 0x80; }

// Bytes of the UTF-8 character at the front of `text`, 0 when it is not one.
size_t CharacterBytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i) {
    if (!IsContinuation(static_cast<unsigned char>(text[i]))) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  // Overlong forms, surrogates, and code points beyond the last one.
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
      (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return n;
}

absl::Status CheckText(std::string_view text, std::string_view name) {
  for (size_t i = 0; i < text.size();) {
    const size_t n = CharacterBytes(text.substr(i));
    if (n == 0 || text[i] == '\0') {
      return InvalidArgument(
          {.what = "clip metadata " + std::string(name),
           .got =
               (n == 0 ? "bytes that are not UTF-8 at byte " : "NUL at byte ") + std::to_string(i),
           .wanted = "UTF-8 text without NUL"});
    }
    i += n;
  }
  return absl::OkStatus();
}

// The first line, cut at a character.
std::string Title(std::string_view prompt) {
  std::string_view line = prompt.substr(0, prompt.find_first_of("\r\n"));
  if (line.size() <= kTitleBytes) return std::string(line);
  size_t end = kTitleBytes;
  while (end > 0 && IsContinuation(static_cast<unsigned char>(line[end]))) --end;
  return std::string(line.substr(0, end)) + "...";
}

template <typename T>
absl::Status ParseNumber(std::string_view key, std::string_view text, std::string_view where,
                         T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end == text.data() + text.size()) return absl::OkStatus();
  return DataLoss({.what = "clip metadata " + std::string(key),
                   .got = std::string(text.substr(0, 40)),
                   .wanted = "a number",
                   .where = std::string(where)});
}

}  // namespace

absl::Status ValidateMetadata(const ClipMetadata& metadata) {
  H3RT_RETURN_IF_ERROR(CheckText(metadata.prompt, "prompt"));
  H3RT_RETURN_IF_ERROR(CheckText(metadata.model_hash, "model_hash"));
  H3RT_RETURN_IF_ERROR(CheckText(metadata.h3rt_version, "h3rt_version"));
  std::set<std::string> seen;
  for (const auto& [key, value] : metadata.extra) {
    const bool good =
        !key.empty() && key.size() <= 64 &&
        key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    if (!good || !seen.insert(key).second) {
      return InvalidArgument({.what = good ? "clip metadata key is repeated" : "clip metadata key",
                              .got = key,
                              .wanted = "1 to 64 characters a-z, 0-9 and _"});
    }
    H3RT_RETURN_IF_ERROR(CheckText(value, key));
  }
  return absl::OkStatus();
}

ClipTags MetadataToTags(const ClipMetadata& m) {
  const std::string size = std::to_string(m.width) + "x" + std::to_string(m.height);
  ClipTags all = {
      {"title", Title(m.prompt)},
      {"comment", "h3rt " + m.h3rt_version + ", " + size + ", " + std::to_string(m.frames) +
                      " frames, seed " + std::to_string(m.seed) + ", " +
                      std::to_string(m.forwards) + " forwards"},
      {"h3rt_prompt", m.prompt},
      {"h3rt_seed", std::to_string(m.seed)},
      {"h3rt_width", std::to_string(m.width)},
      {"h3rt_height", std::to_string(m.height)},
      {"h3rt_frames", std::to_string(m.frames)},
      {"h3rt_forwards", std::to_string(m.forwards)},
      {"h3rt_model_hash", m.model_hash},
      {"h3rt_version", m.h3rt_version},
  };
  for (const auto& [key, value] : m.extra) all.emplace_back(std::string(kExtraPrefix) + key, value);
  ClipTags tags;
  for (auto& tag : all) {
    if (!tag.second.empty()) tags.push_back(std::move(tag));
  }
  return tags;
}

absl::StatusOr<ClipMetadata> MetadataFromTags(const ClipTags& tags, std::string_view where) {
  ClipMetadata m;
  bool ours = false;
  for (const auto& [key, value] : tags) {
    if (key.rfind(kExtraPrefix, 0) == 0) {
      m.extra.emplace_back(key.substr(kExtraPrefix.size()), value);
    } else if (key == "h3rt_prompt") {
      m.prompt = value;
    } else if (key == "h3rt_model_hash") {
      m.model_hash = value;
    } else if (key == "h3rt_version") {
      m.h3rt_version = value;
    } else if (key == "h3rt_seed") {
      ours = true;
      H3RT_RETURN_IF_ERROR(ParseNumber(key, value, where, &m.seed));
    } else if (key == "h3rt_width") {
      H3RT_RETURN_IF_ERROR(ParseNumber(key, value, where, &m.width));
    } else if (key == "h3rt_height") {
      H3RT_RETURN_IF_ERROR(ParseNumber(key, value, where, &m.height));
    } else if (key == "h3rt_frames") {
      H3RT_RETURN_IF_ERROR(ParseNumber(key, value, where, &m.frames));
    } else if (key == "h3rt_forwards") {
      H3RT_RETURN_IF_ERROR(ParseNumber(key, value, where, &m.forwards));
    }
  }
  if (!ours) {
    return NotFound({.what = "no metadata of h3rt in this file", .where = std::string(where)});
  }
  return m;
}

std::string TagsToJson(const ClipTags& tags) {
  Json object = Json::object();
  for (const auto& [key, value] : tags) object[key] = value;
  // Validated before, but a replacement character beats an exception.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<ClipTags> TagsFromJson(std::string_view text, std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Json object, ParseJson(text, where));
  ClipTags tags;
  if (!object.is_object()) {
    return DataLoss({.what = "clip metadata is not an object", .where = std::string(where)});
  }
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) tags.emplace_back(key, value.get<std::string>());
  }
  return tags;
}

}  // namespace h3rt
