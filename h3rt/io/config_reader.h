// Reads the keys of one config.json: typed, each once, and nothing left over. Private to io.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/json.h"
#include "h3rt/base/status.h"

namespace h3rt {

// The first error is kept and later reads do nothing, so that a reader is a list of keys. Finish()
// returns that error, or names a key that was never asked for. Keys that begin with "_" belong to
// the tool that wrote the file (_diffusers_version and the like) and are ignored, except
// _class_name.
class ConfigReader {
 public:
  // `class_name`: what _class_name has to say where it is present.
  ConfigReader(const Json& json, std::string_view class_name, std::string where);

  bool Has(std::string_view key) const;
  // Missing is an error.
  void Read(std::string_view key, int64_t& value);
  void Read(std::string_view key, std::vector<int64_t>& value);
  void Read(std::string_view key, std::vector<std::vector<int64_t>>& value);
  // Missing keeps the value that is there.
  void ReadOptional(std::string_view key, int64_t& value);
  void ReadOptional(std::string_view key, double& value);
  void ReadOptional(std::string_view key, std::string& value);
  void ReadOptional(std::string_view key, std::vector<int64_t>& value);
  // True when the key was there.
  bool ReadOptional(std::string_view key, std::vector<double>& value);

  // Records an error of the caller's own checks.
  void Fail(const absl::Status& status);
  absl::Status Finish() const;

 private:
  template <typename T>
  void Take(std::string_view key, absl::StatusOr<T> read, T& value);

  const Json& json_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
  absl::Status status_;
};

// Checks of Validate(), which name the field.
absl::Status CheckRange(std::string_view field, int64_t value, int64_t low, int64_t high);
absl::Status CheckPositive(std::string_view field, double value, double high);
// One value per channel, finite; `positive` for standard deviations.
absl::Status CheckChannelValues(std::string_view field, const std::vector<double>& values,
                                int64_t channels, bool positive);
absl::Status CheckList(std::string_view field, const std::vector<int64_t>& values, size_t low_size,
                       size_t high_size, int64_t low, int64_t high);

}  // namespace h3rt
