// Plots as inline SVG. Along x everything is in hundredths of a percent of the plot's width and
// along y in pixels, so that a plot fits a phone and a desk without shrinking its text. Integers
// only: the same numbers give the same bytes everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace h3rt::lab {

inline constexpr int64_t kFullWidth = 10000;  // 100 %

// Text for HTML and SVG: markup escaped, line ends as <br> or a space, characters that nobody sees
// (controls, marks of direction, zero width) spelled out as \u{...}.
std::string EscapeHtml(std::string_view text, bool breaks = false);
// The spelled-out form alone. Line ends stay.
std::string SpellOut(std::string_view text);
// The relative address of a file, escaped.
std::string UrlOf(std::string_view prefix, std::string_view file);
// At most `limit` characters, the middle replaced by an ellipsis.
std::string Shorten(std::string_view text, size_t limit);

// value / unit with so many decimals, rounded half away from zero. unit > 0, decimals <= 6.
std::string FixedText(int64_t value, int64_t unit, int decimals);
// 1234567 -> "1,234,567".
std::string CountText(int64_t value);
// Picoseconds with four digits and a unit: "14.43 us".
std::string TimeText(int64_t picoseconds);

// A linear axis over [low, high].
class Axis {
 public:
  // Room is added on both sides, `room_percent` of the range.
  Axis(int64_t low, int64_t high, int64_t room_percent);
  // The position of a value, 0 to `length`; values outside are held at the ends.
  int64_t At(int64_t value, int64_t length = kFullWidth) const;
  // Multiples of 1, 2 or 5 times a power of ten within the range, about `count` of them.
  std::vector<int64_t> Ticks(int64_t count) const;
  int64_t low() const { return low_; }
  int64_t high() const { return high_; }

 private:
  int64_t low_, high_;
};

enum class Mark { kDot, kSquare, kDiamond, kCross, kTriangle };
enum class Anchor { kStart, kMiddle, kEnd };

// One <svg>. `style` is a list of class names of the page's style sheet.
class SvgPlot {
 public:
  // `id` must be unique in the page; title and description are read to those who cannot see it.
  SvgPlot(std::string_view id, int64_t height, std::string_view title,
          std::string_view description);
  void Rect(int64_t x, int64_t y, int64_t width, int64_t height, std::string_view style,
            std::string_view hint = "");
  void Line(int64_t x1, int64_t y1, int64_t x2, int64_t y2, std::string_view style);
  void Draw(Mark mark, int64_t x, int64_t y, std::string_view style, std::string_view hint = "");
  void Text(int64_t x, int64_t y, std::string_view text, std::string_view style,
            Anchor anchor = Anchor::kStart);
  // Path data in a box of 10000 by 10 x `height` units that is stretched over the whole width from
  // y on; strokes keep their width.
  void Path(int64_t y, int64_t height, std::string_view data, std::string_view style);
  std::string Finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

}  // namespace h3rt::lab
