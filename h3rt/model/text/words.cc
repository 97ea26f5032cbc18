#include "h3rt/model/text/words.h"

#include <cstddef>
#include <cstdint>

#include "fmt/format.h"

namespace h3rt {
namespace {

// One decoded character; length 0 stands for bytes that are not UTF-8.
struct Character {
  uint32_t code = 0;
  size_t length = 0;
};

Character Decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return {};
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (overlong || surrogate || code > 0x10ffff) return {};
  return {code, length};
}

// The White_Space property of the Unicode character database.
bool IsWhiteSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

}  // namespace

absl::StatusOr<std::vector<std::string_view>> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;  // of the word that `at` may extend
  size_t at = 0;
  while (at < text.size()) {
    const Character c = Decode(text, at);
    if (c.length == 0) {
      return InvalidArgument(
          {.what = "text is not UTF-8",
           .got = fmt::format("byte 0x{:02x} at position {}", static_cast<uint8_t>(text[at]), at),
           .wanted = "UTF-8",
           .where = "prompt"});
    }
    if (IsWhiteSpace(c.code)) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + c.length;
    }
    at += c.length;
  }
  if (at > begin) words.push_back(text.substr(begin, at - begin));
  return words;
}

}  // namespace h3rt
