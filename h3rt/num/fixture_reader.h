// For tests of this folder only: reads tensors of a safetensors fixture. Floor 1 has no reader of
// its own, and the real one (h3rt/io) is tested elsewhere.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "h3rt/base/file.h"
#include "h3rt/base/json.h"

namespace h3rt {

class FixtureReader {
 public:
  explicit FixtureReader(const std::string& name) {
    const absl::StatusOr<std::string> file = ReadFile(std::string(H3RT_TEST_DATA) + "/h3/" + name);
    if (!file.ok()) {
      ADD_FAILURE() << MessageOf(file.status());
      return;
    }
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file->data(), sizeof(header_bytes));
    absl::StatusOr<Json> header = ParseJson(file->substr(8, header_bytes), name);
    if (!header.ok()) {
      ADD_FAILURE() << MessageOf(header.status());
      return;
    }
    header_ = *std::move(header);
    data_ = file->substr(8 + header_bytes);
  }

  const Json& header() const { return header_; }

  // The elements of one tensor; a test failure and nothing when it is not there.
  template <typename T>
  std::vector<T> Read(const std::string& key) const {
    if (!header_.contains(key)) {
      ADD_FAILURE() << "no tensor " << key;
      return {};
    }
    const auto begin = header_[key]["data_offsets"][0].get<uint64_t>();
    const auto end = header_[key]["data_offsets"][1].get<uint64_t>();
    if (begin >= end || end > data_.size() || (end - begin) % sizeof(T) != 0) {
      ADD_FAILURE() << "bad extent of " << key;
      return {};
    }
    std::vector<T> out((end - begin) / sizeof(T));
    std::memcpy(out.data(), data_.data() + begin, end - begin);
    return out;
  }

 private:
  Json header_;
  std::string data_;
};

}  // namespace h3rt
