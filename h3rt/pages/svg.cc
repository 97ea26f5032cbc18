#include "h3rt/pages/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "h3rt/base/check.h"

namespace h3rt::lab {
namespace {

// The length of the UTF-8 sequence that starts here; 1 for a stray byte.
size_t SequenceLength(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(length, text.size() - at);
}

uint32_t CodePoint(std::string_view sequence) {
  if (sequence.size() == 1) return static_cast<unsigned char>(sequence[0]);
  uint32_t code = static_cast<unsigned char>(sequence[0]) & (0xFFu >> (sequence.size() + 1));
  for (const char c : sequence.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  }
  return code;
}

// Controls, soft hyphen, marks of direction and of zero width, separators of lines, tags.
bool IsInvisible(uint32_t code) {
  return (code < 0x20 && code != '\n') || (code >= 0x7F && code <= 0x9F) || code == 0xAD ||
         code == 0x61C || code == 0x180E || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
         code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFB) ||
         (code >= 0xE0000 && code <= 0xE007F);
}

std::string Percent(int64_t hundredths) { return FixedText(hundredths, 100, 2) + "%"; }

std::string Hint(std::string_view hint) {
  return hint.empty() ? "" : "<title>" + EscapeHtml(hint) + "</title>";
}

}  // namespace

std::string SpellOut(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view sequence = text.substr(at, SequenceLength(text, at));
    const uint32_t code = CodePoint(sequence);
    if (IsInvisible(code)) {
      out += fmt::format("\\u{{{:04X}}}", code);
    } else {
      out += sequence;
    }
    at += sequence.size();
  }
  return out;
}

std::string EscapeHtml(std::string_view text, bool breaks) {
  static constexpr std::string_view kSigns = "&<>\"'\n";
  static constexpr const char* kNames[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", " "};
  std::string out;
  for (const char c : SpellOut(text)) {
    const size_t sign = kSigns.find(c);
    if (sign == std::string_view::npos) {
      out += c;
    } else {
      out += c == '\n' && breaks ? "<br>" : kNames[sign];
    }
  }
  return out;
}

std::string UrlOf(std::string_view prefix, std::string_view file) {
  std::string out(prefix);
  for (const char c : file) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/._-").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string Shorten(std::string_view text, size_t limit) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size(); at += characters.back().size()) {
    characters.push_back(text.substr(at, SequenceLength(text, at)));
  }
  if (characters.size() <= limit) return std::string(text);
  std::string out;
  const size_t tail = limit / 2;
  for (size_t i = 0; i < characters.size(); ++i) {
    if (i == limit - tail - 1) out += "…";
    if (i < limit - tail - 1 || i >= characters.size() - tail) out += characters[i];
  }
  return out;
}

std::string FixedText(int64_t value, int64_t unit, int decimals) {
  H3RT_CHECK(unit > 0 && decimals >= 0 && decimals <= 6);
  int64_t power = 1;
  for (int i = 0; i < decimals; ++i) power *= 10;
  const auto size = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const auto divisor = static_cast<uint64_t>(unit);
  // Whole part first, so that nothing overflows: unit stays below 10^12.
  uint64_t whole = size / divisor;
  uint64_t rest = (size % divisor * static_cast<uint64_t>(power) + divisor / 2) / divisor;
  if (rest == static_cast<uint64_t>(power)) {
    rest = 0;
    ++whole;
  }
  std::string text = value < 0 && whole + rest > 0 ? "-" : "";
  text += std::to_string(whole);
  if (decimals > 0) text += fmt::format(".{:0{}d}", rest, decimals);
  return text;
}

std::string CountText(int64_t value) {
  std::string text = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string TimeText(int64_t picoseconds) {
  struct Unit {
    int64_t size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {
      {1000000000000, "s"}, {1000000000, "ms"}, {1000000, "us"}, {1000, "ns"}, {1, "ps"}};
  const int64_t size = picoseconds < 0 ? -picoseconds : picoseconds;
  const Unit* unit = kUnits;
  while (unit->size > 1 && size < unit->size) ++unit;
  const int64_t whole = size / unit->size;
  const int decimals = unit->size == 1 ? 0
                       : whole >= 1000 ? 0
                       : whole >= 100  ? 1
                       : whole >= 10   ? 2
                                       : 3;
  return FixedText(picoseconds, unit->size, decimals) + " " + unit->name;
}

Axis::Axis(int64_t low, int64_t high, int64_t room_percent) : low_(low), high_(high) {
  H3RT_CHECK(low <= high);
  const int64_t room = std::max<int64_t>((high - low) / 100 * room_percent, 1);
  low_ -= room;
  high_ += room;
}

int64_t Axis::At(int64_t value, int64_t length) const {
  int64_t offset = std::clamp(value, low_, high_) - low_;
  int64_t span = high_ - low_;
  while (span > int64_t{1} << 40) {
    span >>= 1;
    offset >>= 1;
  }
  return (offset * length + span / 2) / span;
}

std::vector<int64_t> Axis::Ticks(int64_t count) const {
  int64_t step = 1;
  for (int i = 1; (high_ - low_) / step > count; ++i) step = i % 3 == 2 ? step / 2 * 5 : step * 2;
  std::vector<int64_t> ticks;
  // Truncation goes towards zero: a low end above zero is rounded up.
  for (int64_t tick = low_ / step * step + (low_ > 0 && low_ % step != 0 ? step : 0); tick <= high_;
       tick += step) {
    ticks.push_back(tick);
  }
  return ticks;
}

SvgPlot::SvgPlot(std::string_view id, int64_t height, std::string_view title,
                 std::string_view description)
    : text_(fmt::format("<svg class=\"plot\" width=\"100%\" height=\"{0}\" role=\"img\" "
                        "aria-labelledby=\"{1}-t {1}-d\"><title id=\"{1}-t\">{2}</title>"
                        "<desc id=\"{1}-d\">{3}</desc>\n",
                        height, id, EscapeHtml(title), EscapeHtml(description))) {}

void SvgPlot::Rect(int64_t x, int64_t y, int64_t width, int64_t height, std::string_view style,
                   std::string_view hint) {
  text_ += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" class=\"{}\">{}</rect>\n",
      Percent(x), y, Percent(width), height, style, Hint(hint));
}

void SvgPlot::Line(int64_t x1, int64_t y1, int64_t x2, int64_t y2, std::string_view style) {
  text_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                       Percent(x1), y1, Percent(x2), y2, style);
}

void SvgPlot::Draw(Mark mark, int64_t x, int64_t y, std::string_view style, std::string_view hint) {
  static constexpr const char* kShapes[] = {"M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
                                            "M-4.5-4.5h9v9h-9z", "M-6 0L0-6 6 0 0 6z",
                                            "M-4-4L4 4M-4 4L4-4", "M-5 4L0-5 5 4z"};
  text_ += fmt::format(
      "<svg x=\"{}\" y=\"{}\" class=\"at\"><path d=\"{}\" class=\"{}\">{}</path></svg>\n",
      Percent(x), y, kShapes[static_cast<size_t>(mark)], style, Hint(hint));
}

void SvgPlot::Text(int64_t x, int64_t y, std::string_view text, std::string_view style,
                   Anchor anchor) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  text_ +=
      fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", Percent(x),
                  y, kAnchors[static_cast<size_t>(anchor)], style, EscapeHtml(text));
}

void SvgPlot::Path(int64_t y, int64_t height, std::string_view data, std::string_view style) {
  text_ += fmt::format(
      "<svg x=\"0\" y=\"{0}\" width=\"100%\" height=\"{1}\" viewBox=\"0 0 10000 {2}\" "
      "preserveAspectRatio=\"none\" class=\"at\"><path d=\"{3}\" class=\"{4}\"/></svg>\n",
      y, height, 10 * height, data, style);
}

}  // namespace h3rt::lab
