// What is read in texts: numbers, references, predicates.
#include <algorithm>

#include "h3rt/lab/schema.h"

namespace h3rt::lab {
namespace {

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// What makes a number a measurement.
constexpr std::string_view kUnits[] = {
    "%",         "ppm",    "ppb",  "x",     "\xc3\x97", "ps",     "ns",     "us",      "\xc2\xb5s",
    "\xce\xbcs", "ms",     "s",    "sec",   "seconds",  "second", "min",    "minutes", "KB",
    "MB",        "GB",     "TB",   "KiB",   "MiB",      "GiB",    "TiB",    "kB",      "Hz",
    "kHz",       "MHz",    "GHz",  "W",     "mW",       "J",      "FLOPS",  "GFLOP",   "TFLOP",
    "GFLOPS",    "TFLOPS", "TOPS", "times", "percent",  "bytes",  "cycles", "fps"};

// The unit that a text begins with, after at most one space; empty when there is none.
std::string_view UnitAt(std::string_view text) {
  if (text.starts_with(' ') || text.starts_with('-')) text.remove_prefix(1);
  if (text.starts_with('%')) return "%";
  size_t end = 0;
  while (end < text.size() &&
         (IsLetter(text[end]) || static_cast<unsigned char>(text[end]) > 0x7f)) {
    ++end;
  }
  const std::string_view word = text.substr(0, end);
  for (const std::string_view unit : kUnits) {
    if (word == unit) return word;
  }
  return {};
}

// `field op value`. Gives why it could not be evaluated.
std::string Compare(const std::string& field, const std::string& op, const std::string& value,
                    const Doc* facts, bool& holds) {
  static constexpr std::string_view kOps[] = {"==", "!=", "<", "<=", ">", ">="};
  const size_t which =
      static_cast<size_t>(std::find(std::begin(kOps), std::end(kOps), op) - std::begin(kOps));
  if (field.empty() || !IsLetter(field[0])) return "got \"" + field + "\", wanted a field";
  if (which == std::size(kOps)) return "got \"" + op + "\", wanted == != < <= > or >=";
  const bool negative = value.starts_with('-');
  const bool digits = value.size() > (negative ? 1 : 0) && value.size() < 17 &&
                      std::all_of(value.begin() + (negative ? 1 : 0), value.end(), IsDecimal);
  if (!digits && (value.empty() || !IsLetter(value[0]))) {
    return "got \"" + value + "\", wanted an integer or a word";
  }
  if (!digits && which > 1) return "an order of words: " + field + " " + op + " " + value;
  if (facts == nullptr) return {};
  const Doc& fact = At(*facts, field);
  int order = 0;
  if (digits && fact.is_number_integer()) {
    const int64_t have = fact.get<int64_t>();
    const int64_t wanted = std::stoll(value);
    order = have < wanted ? -1 : have > wanted ? 1 : 0;
  } else if (!digits && fact.is_string()) {
    order = fact.get_ref<const std::string&>().compare(value);
  } else {
    return "\"" + field + "\" is not there, or of another type than " + value;
  }
  const bool answers[] = {order == 0, order != 0, order<0, order <= 0, order> 0, order >= 0};
  holds = answers[which];
  return {};
}

}  // namespace

std::string FirstUncitedNumber(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("{ev:")) {
      const size_t close = text.find('}', i);
      if (close == std::string_view::npos) return {};
      i = close;
      continue;
    }
    // A digit within a word (sm_90, fp16, 2026-08) is a name.
    const char before = i == 0 ? ' ' : text[i - 1];
    if (!IsDecimal(text[i]) || IsLetter(before) || IsDecimal(before) || before == '_') continue;
    size_t end = i;
    while (end < text.size() && (IsDecimal(text[end]) || text[end] == '.' || text[end] == ','))
      ++end;
    if (const std::string_view unit = UnitAt(text.substr(end)); !unit.empty()) {
      return std::string(text.substr(i, end - i)) + " " + std::string(unit);
    }
  }
  return {};
}

std::vector<std::string> References(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; (at = text.find("{ev:", at)) != std::string_view::npos;) {
    const size_t close = text.find('}', at);
    out.emplace_back(text.substr(at + 4, close == std::string_view::npos ? close : close - at - 4));
    at = std::min(close, text.size());
  }
  return out;
}

std::string EvaluatePredicate(std::string_view predicate, const Doc* facts, bool& holds) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= predicate.size();) {
    const size_t end = std::min(predicate.find(' ', at), predicate.size());
    words.emplace_back(predicate.substr(at, end - at));
    at = end + 1;
  }
  holds = false;
  bool all = true;  // of the comparisons since the last `or`
  for (size_t i = 0;; i += 4) {
    if (i + 3 > words.size()) return "wanted `field op value` joined by `and` or `or`";
    bool one = true;
    const std::string why = Compare(words[i], words[i + 1], words[i + 2], facts, one);
    if (!why.empty()) return why;
    all = all && one;
    if (i + 3 == words.size()) break;
    if (words[i + 3] != "and" && words[i + 3] != "or") {
      return "got \"" + words[i + 3] + "\", wanted `and` or `or`";
    }
    if (words[i + 3] == "or") {
      holds = holds || all;
      all = true;
    }
  }
  holds = holds || all;
  return {};
}

}  // namespace h3rt::lab
