// Small steps on text: for readers of other programs' output, each of which takes what it found off
// the front, and for messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace h3rt::lab {

// A message from words and whole numbers.
template <typename... Parts>
std::string Message(const Parts&... parts) {
  std::string text;
  const auto add = [&](const auto& part) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(parts), ...);
  return text;
}

// The next line without its end; false at the end of the text.
inline bool TakeLine(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const size_t end = std::min(text.find('\n'), text.size());
  line = text.substr(0, end);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  text.remove_prefix(std::min(end + 1, text.size()));
  return true;
}
inline bool Take(std::string_view& text, std::string_view literal) {
  if (text.substr(0, literal.size()) != literal) return false;
  text.remove_prefix(literal.size());
  return true;
}
// A whole number of up to 15 digits, so that every sum and the canonical form hold it.
inline bool TakeNumber(std::string_view& text, int64_t& value) {
  size_t n = 0;
  int64_t read = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') {
    if (n == 15) return false;
    read = read * 10 + (text[n++] - '0');
  }
  if (n == 0) return false;
  value = read;
  text.remove_prefix(n);
  return true;
}
// The text up to a mark, and the mark.
inline bool TakeUntil(std::string_view& text, char mark, std::string_view& part) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return false;
  part = text.substr(0, at);
  text.remove_prefix(at + 1);
  return true;
}
inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
// Of counts up to 15 digits; more of them than a canonical number holds counts as that.
inline int64_t AddCapped(int64_t a, int64_t b) {
  constexpr int64_t kMost = 1000000000000000;
  return std::min(a + b, kMost);
}
inline bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}
// For messages: cut, and other bytes than printable ones as '?'.
inline std::string Printable(std::string_view text, size_t most = 160) {
  std::string out(text.substr(0, most));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

}  // namespace h3rt::lab
