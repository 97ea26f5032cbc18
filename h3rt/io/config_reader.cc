#include "h3rt/io/config_reader.h"

#include <cmath>
#include <utility>

namespace h3rt {

ConfigReader::ConfigReader(const Json& json, std::string_view class_name, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object()) {
    Fail(InvalidArgument(
        {.what = "config", .got = JsonSnippet(json), .wanted = "a JSON object", .where = where_}));
    return;
  }
  if (!json.contains("_class_name")) return;
  const Json& found = json["_class_name"];
  if (!found.is_string() || found.get_ref<const std::string&>() != class_name) {
    Fail(InvalidArgument({.what = "config key \"_class_name\"",
                          .got = JsonSnippet(found),
                          .wanted = "\"" + std::string(class_name) + "\"",
                          .where = where_}));
  }
}

bool ConfigReader::Has(std::string_view key) const {
  return json_.is_object() && json_.contains(std::string(key));
}

template <typename T>
void ConfigReader::Take(std::string_view key, absl::StatusOr<T> read, T& value) {
  known_.insert(std::string(key));
  if (!read.ok()) {
    Fail(read.status());
    return;
  }
  value = *std::move(read);
}

void ConfigReader::Read(std::string_view key, int64_t& value) {
  Take(key, JsonInt(json_, key, where_), value);
}

void ConfigReader::Read(std::string_view key, std::vector<int64_t>& value) {
  Take(key, JsonInts(json_, key, where_), value);
}

void ConfigReader::Read(std::string_view key, std::vector<std::vector<int64_t>>& value) {
  known_.insert(std::string(key));
  if (!status_.ok()) return;
  if (!Has(key) || !json_[std::string(key)].is_array()) {
    Fail(InvalidArgument({.what = "config key \"" + std::string(key) + "\"",
                          .got = Has(key) ? JsonSnippet(json_[std::string(key)]) : "nothing",
                          .wanted = "a list of lists of integers",
                          .where = where_}));
    return;
  }
  std::vector<std::vector<int64_t>> out;
  for (const Json& row : json_[std::string(key)]) {
    // A row is read as if it were a key of its own, for the same messages.
    Json object = Json::object();
    object[std::string(key)] = row;
    absl::StatusOr<std::vector<int64_t>> values = JsonInts(object, key, where_);
    if (!values.ok()) {
      Fail(values.status());
      return;
    }
    out.push_back(*std::move(values));
  }
  value = std::move(out);
}

void ConfigReader::ReadOptional(std::string_view key, int64_t& value) {
  if (Has(key)) Take(key, JsonInt(json_, key, where_), value);
}

void ConfigReader::ReadOptional(std::string_view key, double& value) {
  if (Has(key)) Take(key, JsonDouble(json_, key, where_), value);
}

void ConfigReader::ReadOptional(std::string_view key, std::string& value) {
  if (Has(key)) Take(key, JsonString(json_, key, where_), value);
}

void ConfigReader::ReadOptional(std::string_view key, std::vector<int64_t>& value) {
  if (Has(key)) Take(key, JsonInts(json_, key, where_), value);
}

bool ConfigReader::ReadOptional(std::string_view key, std::vector<double>& value) {
  if (!Has(key)) return false;
  Take(key, JsonDoubles(json_, key, where_), value);
  return true;
}

void ConfigReader::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

absl::Status ConfigReader::Finish() const {
  H3RT_RETURN_IF_ERROR(status_);
  for (const auto& item : json_.items()) {
    const std::string& key = item.key();
    if (!key.empty() && key[0] == '_') continue;
    if (known_.find(key) == known_.end()) {
      return InvalidArgument({.what = "unknown config key \"" + key.substr(0, 200) + "\"",
                              .got = JsonSnippet(item.value()),
                              .where = where_});
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRange(std::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidArgument({.what = "config value " + std::string(field),
                          .got = std::to_string(value),
                          .wanted = std::to_string(low) + " to " + std::to_string(high)});
}

absl::Status CheckPositive(std::string_view field, double value, double high) {
  if (value > 0.0 && value <= high) return absl::OkStatus();
  return InvalidArgument({.what = "config value " + std::string(field),
                          .got = std::to_string(value),
                          .wanted = "above 0, at most " + std::to_string(high)});
}

absl::Status CheckChannelValues(std::string_view field, const std::vector<double>& values,
                                int64_t channels, bool positive) {
  if (static_cast<int64_t>(values.size()) != channels) {
    return InvalidArgument({.what = "config value " + std::string(field),
                            .got = std::to_string(values.size()) + " values",
                            .wanted = std::to_string(channels) + ", one a latent channel"});
  }
  for (const double value : values) {
    // Beyond float32's range normalisation would overflow.
    if (!(std::fabs(value) <= 1e6) || (positive && !(value >= 1e-6))) {
      return InvalidArgument({.what = "config value " + std::string(field),
                              .got = std::to_string(value),
                              .wanted = positive ? "1e-6 to 1e6" : "-1e6 to 1e6"});
    }
  }
  return absl::OkStatus();
}

absl::Status CheckList(std::string_view field, const std::vector<int64_t>& values, size_t low_size,
                       size_t high_size, int64_t low, int64_t high) {
  if (values.size() < low_size || values.size() > high_size) {
    return InvalidArgument(
        {.what = "config value " + std::string(field),
         .got = std::to_string(values.size()) + " entries",
         .wanted = std::to_string(low_size) + " to " + std::to_string(high_size) + " entries"});
  }
  for (const int64_t value : values) H3RT_RETURN_IF_ERROR(CheckRange(field, value, low, high));
  return absl::OkStatus();
}

}  // namespace h3rt
