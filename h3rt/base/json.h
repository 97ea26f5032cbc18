// JSON with typed errors: nlohmann-json with its exceptions kept inside.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

// Parses text; a syntax error, a duplicate key or a nesting over 64 levels is kDataLoss with the
// place. `where` names the source in messages.
absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view where);
absl::StatusOr<Json> ReadJsonFile(const std::string& path);

// Typed reads of one key of an object: kInvalidArgument with the key, what was there and `where`.
// A missing key is an error too.
absl::StatusOr<int64_t> JsonInt(const Json& object, std::string_view key, std::string_view where);
absl::StatusOr<double> JsonDouble(const Json& object, std::string_view key, std::string_view where);
absl::StatusOr<std::string> JsonString(const Json& object, std::string_view key,
                                       std::string_view where);
absl::StatusOr<std::vector<int64_t>> JsonInts(const Json& object, std::string_view key,
                                              std::string_view where);
absl::StatusOr<std::vector<double>> JsonDoubles(const Json& object, std::string_view key,
                                                std::string_view where);

// One line of text for messages, cut after 80 characters.
std::string JsonSnippet(const Json& value);

}  // namespace h3rt
