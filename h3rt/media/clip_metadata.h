// What a clip says about itself, carried in its file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

// Written into the MP4 under keys of their own (h3rt_prompt, h3rt_seed, ...; extras as h3rt_x_KEY)
// beside a short `title` and `comment` for players; into the WAV of the fallback as one JSON chunk.
struct ClipMetadata {
  std::string prompt;  // UTF-8 without NUL; any length, any quotes and newlines
  uint64_t seed = 0;
  int64_t width = 0;  // the writer fills in width, height and frames
  int64_t height = 0;
  int64_t frames = 0;
  int64_t forwards = 0;  // model evaluations, not grid points
  std::string model_hash;
  std::string h3rt_version;
  // Keys of 1 to 64 characters a-z, 0-9 and _; values as the prompt. Order is kept.
  std::vector<std::pair<std::string, std::string>> extra;
  friend bool operator==(const ClipMetadata&, const ClipMetadata&) = default;
};

using ClipTags = std::vector<std::pair<std::string, std::string>>;

// kInvalidArgument for a text that is not UTF-8 or holds NUL, and for a bad or repeated extra key.
absl::Status ValidateMetadata(const ClipMetadata& metadata);

// Key and value pairs as they stand in the file. Empty values are left out: MP4 cannot hold them.
ClipTags MetadataToTags(const ClipMetadata& metadata);
// The reverse; kNotFound when the tags are not of a clip by h3rt, kDataLoss for a number that is
// none. Unknown tags are ignored.
absl::StatusOr<ClipMetadata> MetadataFromTags(const ClipTags& tags, std::string_view where);

// The tags as one JSON object, and back.
std::string TagsToJson(const ClipTags& tags);
absl::StatusOr<ClipTags> TagsFromJson(std::string_view text, std::string_view where);

}  // namespace h3rt
