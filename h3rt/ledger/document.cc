#include "h3rt/ledger/document.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "h3rt/base/check.h"
#include "h3rt/base/hash.h"

namespace h3rt::lab {
namespace {

constexpr size_t kMostDepth = 64;
constexpr size_t kMostString = 1u << 20;
constexpr size_t kMostText = 1u << 30;
constexpr int64_t kMostInteger = (int64_t{1} << 53) - 1;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Of a character that is UTF-8: U+0000 to U+001F and U+007F to U+009F.
bool IsControl(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return lead < 0x20 || lead == 0x7f ||
         (lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
}

// A recursive descent over the text. The first fault ends it.
class Parser {
 public:
  Parser(std::string_view text, std::string_view file, int64_t first_line, Findings& findings)
      : text_(text), file_(file), first_line_(first_line), findings_(findings) {}

  std::optional<Doc> Run() {
    if (!CheckText()) return std::nullopt;
    Doc document;
    SkipSpace();
    if (!Value(document)) return std::nullopt;
    SkipSpace();
    if (at_ != text_.size()) {
      Unexpected("the end of the document");
      return std::nullopt;
    }
    return document;
  }

 private:
  struct Step {
    const std::string* key;  // null: an element of a list
    size_t index;
  };

  // What concerns the text as a whole.
  bool CheckText() {
    if (text_.size() > kMostText) return Fail("E-JSON-LIMIT", 0, "a document over 1 GiB");
    if (text_.substr(0, 3) == "\xef\xbb\xbf") return Fail("E-JSON-ENC", 0, "a byte order mark");
    bool merged = false;
    for (size_t begin = 0; begin < text_.size();) {
      const std::string_view mark = text_.substr(begin, 7);
      if (mark == "<<<<<<<" || mark == "=======" || mark == ">>>>>>>") {
        Fail("E-MERGE", begin, "a conflict marker of git");
        merged = true;
      }
      const size_t end = text_.find('\n', begin);
      if (end == std::string_view::npos) break;
      begin = end + 1;
    }
    if (merged) return false;
    if (const size_t cr = text_.find('\r'); cr != std::string_view::npos) {
      return Fail("E-EOL", cr, "a carriage return: lines end in LF alone");
    }
    return true;
  }

  std::pair<int64_t, int64_t> Place(size_t offset) const {
    int64_t line = first_line_;
    size_t begin = 0;
    for (size_t i = 0; i < offset; ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      begin = i + 1;
    }
    return {line, static_cast<int64_t>(offset - begin) + 1};
  }

  bool Fail(const char* code, size_t offset, std::string message) {
    const auto [line, column] = Place(offset);
    std::string pointer;
    for (const Step& step : path_) {
      pointer += "/" + (step.key != nullptr ? PointerToken(*step.key) : std::to_string(step.index));
    }
    findings_.Add({.code = code,
                   .file = std::string(file_),
                   .line = line,
                   .column = column,
                   .pointer = pointer,
                   .message = std::move(message)});
    return false;
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool AtEnd() const { return at_ >= text_.size(); }

  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\n' || Peek() == '\t') ++at_;
  }

  bool Unexpected(std::string_view wanted) {
    if (AtEnd()) return Fail("E-JSON", at_, "the text ends, wanted " + std::string(wanted));
    const size_t step = Utf8Step(text_.substr(at_));
    if (step == 0 || Peek() == '\0') return Fail("E-JSON-ENC", at_, "a byte that is no text");
    return Fail(
        "E-JSON", at_,
        "got \"" + std::string(text_.substr(at_, step)) + "\", wanted " + std::string(wanted));
  }

  bool Value(Doc& out) {
    if (Peek() == '{') return Object(out);
    if (Peek() == '[') return List(out);
    if (Peek() == '"') {
      out = std::string();
      return String(out.get_ref<std::string&>());
    }
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      out = word == "null" ? Doc() : Doc(word == "true");
      return true;
    }
    return Number(out);
  }

  bool Number(Doc& out) {
    const size_t begin = at_;
    const bool negative = Peek() == '-';
    if (negative) ++at_;
    for (const std::string_view word : {"NaN", "Infinity", "inf", "nan"}) {
      if (text_.substr(at_, word.size()) == word) {
        return Fail("E-JSON-NUM", begin, "not a finite number");
      }
    }
    if (!IsDigit(Peek())) return Unexpected("a value");
    if (Peek() == '0' && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1])) {
      return Fail("E-JSON", begin, "a number with a leading zero");
    }
    int64_t value = 0;
    for (; IsDigit(Peek()); ++at_) {
      value = value * 10 + (Peek() - '0');
      if (value > kMostInteger) return Fail("E-JSON-NUM", begin, "an integer beyond 2^53 - 1");
    }
    if (Peek() == '.' || Peek() == 'e' || Peek() == 'E') {
      return Fail("E-JSON-NUM", begin, "a fraction or exponent: only integers are hashed");
    }
    if (negative && value == 0) return Fail("E-JSON-NUM", begin, "minus zero");
    out = negative ? -value : value;
    return true;
  }

  bool FourHexDigits() {
    for (const size_t end = at_ + 4; at_ < end; ++at_) {
      if (std::string_view("0123456789abcdefABCDEF").find(Peek()) == std::string_view::npos) {
        return Unexpected("four hex digits");
      }
    }
    return true;
  }

  // Finds where an escape ends, with the low half of a pair; the library decodes it.
  bool Escape(std::string& out) {
    const size_t begin = at_++;
    const char c = Peek();
    if (std::string_view("\"\\/bfnrtu").find(c) == std::string_view::npos) {
      return Unexpected("an escape");
    }
    ++at_;
    if (c == 'u') {
      if (!FourHexDigits()) return false;
      const bool high = (text_[at_ - 4] | 0x20) == 'd' &&
                        std::string_view("89abAB").find(text_[at_ - 3]) != std::string_view::npos;
      if (high && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        if (!FourHexDigits()) return false;
      }
    }
    const Doc read = Doc::parse("\"" + std::string(text_.substr(begin, at_ - begin)) + "\"",
                                /*cb=*/nullptr, /*allow_exceptions=*/false);
    if (read.is_discarded()) return Fail("E-JSON-ENC", begin, "a lone surrogate");
    const std::string& decoded = read.get_ref<const std::string&>();
    if (IsControl(decoded)) return Fail("E-JSON-ENC", begin, "a control character");
    out += decoded;
    return true;
  }

  bool String(std::string& out) {
    const size_t begin = at_++;
    while (Peek() != '"') {
      // Runs of plain text are copied at once.
      const size_t run = at_;
      while (!AtEnd() && text_[at_] >= 0x20 && text_[at_] < 0x7f && text_[at_] != '"' &&
             text_[at_] != '\\') {
        ++at_;
      }
      out += text_.substr(run, at_ - run);
      if (out.size() > kMostString) return Fail("E-JSON-LIMIT", begin, "a string over 1 MiB");
      if (AtEnd()) return Fail("E-JSON", at_, "the text ends within a string");
      if (Peek() == '"') break;
      if (Peek() == '\\') {
        if (!Escape(out)) return false;
        continue;
      }
      const size_t step = Utf8Step(text_.substr(at_));
      if (step == 0) return Fail("E-JSON-ENC", at_, "a byte that is not UTF-8");
      if (IsControl(text_.substr(at_))) return Fail("E-JSON-ENC", at_, "a control character");
      out += text_.substr(at_, step);
      at_ += step;
    }
    ++at_;
    return true;
  }

  // What stands between brackets: `item` reads one and stays before the comma.
  template <typename Item>
  bool Items(char close, const char* what, const Item& item) {
    if (++depth_ > kMostDepth) return Fail("E-JSON-LIMIT", at_, "nesting over 64 levels");
    ++at_;
    SkipSpace();
    while (Peek() != close) {
      if (!item()) return false;
      path_.pop_back();
      SkipSpace();
      if (Peek() == close) break;
      if (Peek() != ',') return Unexpected(std::string("a comma or ") + close);
      ++at_;
      SkipSpace();
      if (Peek() == close) return Unexpected(what);
    }
    ++at_;
    --depth_;
    return true;
  }

  bool List(Doc& out) {
    out = Doc::array();
    return Items(']', "a value", [&] {
      path_.push_back({nullptr, out.size()});
      out.push_back(nullptr);
      return Value(out.back());
    });
  }

  bool Object(Doc& out) {
    out = Doc::object();
    auto& members = out.get_ref<Doc::object_t&>();
    std::vector<std::pair<const std::string*, size_t>> seen;
    return Items('}', "a key", [&] {
      if (Peek() != '"') return Unexpected("a key");
      const size_t key_at = at_;
      std::string key;
      if (!String(key)) return false;
      const auto it = members.try_emplace(std::move(key));
      const std::string* const name = &it.first->first;
      if (!it.second) {
        const auto first = std::find_if(seen.begin(), seen.end(),
                                        [&](const auto& one) { return one.first == name; });
        const auto [line, column] = Place(first->second);
        return Fail("E-JSON-DUPKEY", key_at,
                    "the key \"" + name->substr(0, 80) + "\" a second time; the first is at " +
                        std::to_string(line) + ":" + std::to_string(column));
      }
      seen.emplace_back(name, key_at);
      SkipSpace();
      if (Peek() != ':') return Unexpected("a colon");
      ++at_;
      SkipSpace();
      path_.push_back({name, 0});
      return Value(it.first->second);
    });
  }

  std::string_view text_;
  std::string_view file_;
  int64_t first_line_;
  Findings& findings_;
  size_t at_ = 0;
  size_t depth_ = 0;
  std::vector<Step> path_;
};

bool HoldsFloat(const Doc& document) {
  if (document.is_structured()) {
    for (const auto& item : document) {
      if (HoldsFloat(item)) return true;
    }
  }
  return document.is_number_float();
}

}  // namespace

std::optional<Doc> ParseDocument(std::string_view text, std::string_view file, int64_t first_line,
                                 Findings& findings) {
  return Parser(text, file, first_line, findings).Run();
}

std::string CanonicalText(const Doc& document) {
  H3RT_CHECK(!HoldsFloat(document));
  return document.dump(-1, ' ', false, Doc::error_handler_t::replace);
}

std::string DigestOf(const Doc& document) { return DigestOfText(CanonicalText(document)); }

std::string DigestWithout(const Doc& document, std::string_view key) {
  Doc copy = document;
  if (copy.is_object()) copy.erase(std::string(key));
  return DigestOf(copy);
}

std::string DigestOfText(std::string_view bytes) {
  return Sha256Hex(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

size_t Utf8Step(std::string_view text) {
  if (text.empty()) return 0;
  const auto at = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t lead = at(0);
  if (lead < 0x80) return 1;
  const size_t step = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (size_t i = 1; i < step; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) > 0x9f) ||
      (lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) > 0x8f)) {
    return 0;
  }
  return step;
}

std::string PointerToken(std::string_view key) {
  std::string out;
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

bool IsDigest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

const Doc& At(const Doc& object, std::string_view key) {
  static const Doc* const nothing = new Doc();
  if (!object.is_object()) return *nothing;
  const auto it = object.find(key);
  return it == object.end() ? *nothing : *it;
}

std::string TextAt(const Doc& object, std::string_view key, std::string_view otherwise) {
  const Doc& value = At(object, key);
  return value.is_string() ? value.get_ref<const std::string&>() : std::string(otherwise);
}

int64_t IntAt(const Doc& object, std::string_view key, int64_t otherwise) {
  const Doc& value = At(object, key);
  return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

bool BoolAt(const Doc& object, std::string_view key, bool otherwise) {
  const Doc& value = At(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

bool Holds(const Doc& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

const Doc* FindBy(const Doc& list, std::string_view key, std::string_view text) {
  for (const Doc& item : list) {
    const Doc& value = At(item, key);
    if (value.is_string() && value.get_ref<const std::string&>() == text) return &item;
  }
  return nullptr;
}

}  // namespace h3rt::lab
