#include "h3rt/cuda/compute_capability.h"

#include <algorithm>

namespace h3rt {

std::string NameOf(const ComputeCapability& capability) {
  return std::to_string(capability.major) + "." + std::to_string(capability.minor);
}

absl::StatusOr<ComputeCapability> ParseComputeCapability(std::string_view text,
                                                         std::string_view where) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const size_t dot = text.find('.');
  const bool well_formed =
      dot != std::string_view::npos && dot >= 1 && dot <= 3 && text.size() == dot + 2 &&
      std::all_of(text.begin(), text.begin() + dot, is_digit) && is_digit(text[dot + 1]);
  if (!well_formed) {
    return InvalidArgument({.what = "compute capability",
                            .got = "\"" + std::string(text) + "\"",
                            .wanted = "<major>.<minor>, for example 9.0",
                            .where = std::string(where)});
  }
  ComputeCapability capability;
  for (const char c : text.substr(0, dot)) capability.major = capability.major * 10 + (c - '0');
  capability.minor = text[dot + 1] - '0';
  return capability;
}

}  // namespace h3rt
