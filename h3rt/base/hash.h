// SHA-256 (OpenSSL).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "h3rt/base/status.h"

namespace h3rt {

// Incremental; Finish() gives 64 lower-case hex digits and ends the object's use.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::span<const std::byte> bytes);
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

}  // namespace h3rt
