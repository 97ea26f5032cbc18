#include "h3rt/base/json.h"

#include <cmath>
#include <exception>
#include <set>

#include "h3rt/base/file.h"

namespace h3rt {
namespace {

constexpr int kMaxDepth = 64;

// Rejects duplicate keys and deep nesting while parsing (nlohmann keeps the last duplicate
// silently).
class StrictCallback {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > kMaxDepth) problem = "nesting over 64 levels";
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Event::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) problem = "duplicate key \"" + key.substr(0, 80) + "\"";
    }
    return problem.empty();
  }
  std::string problem;

 private:
  std::vector<std::set<std::string>> keys_;
};

absl::StatusOr<const Json*> Find(const Json& object, std::string_view key, std::string_view where) {
  if (!object.is_object()) {
    return InvalidArgument(
        {.what = "not an object", .got = JsonSnippet(object), .where = std::string(where)});
  }
  const auto it = object.find(std::string(key));
  if (it == object.end()) {
    return InvalidArgument(
        {.what = "missing key \"" + std::string(key) + "\"", .where = std::string(where)});
  }
  return &*it;
}

absl::Status WrongType(std::string_view key, const Json& value, std::string_view wanted,
                       std::string_view where) {
  return InvalidArgument({.what = "key \"" + std::string(key) + "\"",
                          .got = JsonSnippet(value),
                          .wanted = std::string(wanted),
                          .where = std::string(where)});
}

bool FitsInt64(const Json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
  }
  return value.is_number_integer();
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view where) {
  StrictCallback callback;
  // nlohmann takes a NUL as the end of the text and would ignore what follows.
  if (text.find('\0') != std::string_view::npos) {
    return DataLoss({.what = "not valid JSON", .got = "a NUL byte", .where = std::string(where)});
  }
  try {
    Json json = Json::parse(
        text.begin(), text.end(),
        [&callback](int depth, Json::parse_event_t event, Json& parsed) {
          return callback(depth, event, parsed);
        },
        /*allow_exceptions=*/true);
    if (callback.problem.empty()) return json;
  } catch (const std::exception& error) {
    if (callback.problem.empty()) callback.problem = error.what();
  }
  return DataLoss({.what = "not valid JSON", .got = callback.problem, .where = std::string(where)});
}

absl::StatusOr<Json> ReadJsonFile(const std::string& path) {
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 64ull << 20));
  return ParseJson(text, path);
}

absl::StatusOr<int64_t> JsonInt(const Json& object, std::string_view key, std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Json* value, Find(object, key, where));
  if (!FitsInt64(*value)) return WrongType(key, *value, "an integer", where);
  return value->get<int64_t>();
}

absl::StatusOr<double> JsonDouble(const Json& object, std::string_view key,
                                  std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Json* value, Find(object, key, where));
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return WrongType(key, *value, "a finite number", where);
  }
  return value->get<double>();
}

absl::StatusOr<std::string> JsonString(const Json& object, std::string_view key,
                                       std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Json* value, Find(object, key, where));
  if (!value->is_string()) return WrongType(key, *value, "a string", where);
  return value->get<std::string>();
}

absl::StatusOr<std::vector<int64_t>> JsonInts(const Json& object, std::string_view key,
                                              std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Json* value, Find(object, key, where));
  if (!value->is_array()) return WrongType(key, *value, "a list of integers", where);
  std::vector<int64_t> out;
  for (const Json& item : *value) {
    if (!FitsInt64(item)) return WrongType(key, item, "integers", where);
    out.push_back(item.get<int64_t>());
  }
  return out;
}

absl::StatusOr<std::vector<double>> JsonDoubles(const Json& object, std::string_view key,
                                                std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Json* value, Find(object, key, where));
  if (!value->is_array()) return WrongType(key, *value, "a list of numbers", where);
  std::vector<double> out;
  for (const Json& item : *value) {
    if (!item.is_number() || !std::isfinite(item.get<double>())) {
      return WrongType(key, item, "finite numbers", where);
    }
    out.push_back(item.get<double>());
  }
  return out;
}

std::string JsonSnippet(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace h3rt
