// Values against their shapes, and what is read in texts: numbers, references, predicates.
#include "h3rt/ledger/schema.h"

#include <algorithm>

#include "h3rt/ledger/log.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {
namespace {

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool IsPlaceholder(std::string_view text) {
  static constexpr std::string_view kThese[] = {"unknown", "n/a", "na",  "tbd", "todo", "null",
                                                "-1",      "?",   "xxx", "-",   "..."};
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(std::begin(kThese), std::end(kThese), lower) != std::end(kThese);
}

bool IsCommit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// sm_90, sm_90a, sm_121f.
bool IsTarget(std::string_view text) {
  if (!text.starts_with("sm_")) return false;
  text.remove_prefix(3);
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) text.remove_suffix(1);
  return (text.size() == 2 || text.size() == 3) && text[0] != '0' &&
         std::all_of(text.begin(), text.end(), IsDecimal);
}

bool IsClass(std::string_view text) { return text == "host" || IsTarget(text); }

bool IsTime(std::string_view text) { return ParseUtc(text).has_value(); }

// How many letters must change (Levenshtein).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

std::string Nearest(std::string_view name, const std::vector<Field>& fields) {
  const Field* best = nullptr;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const Field& field : fields) {
    const size_t distance = Distance(name.substr(0, 100), field.name);
    if (distance < least) {
      least = distance;
      best = &field;
    }
  }
  return best == nullptr ? "" : "; the nearest known name is \"" + best->name + "\"";
}

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// What each kind is: in JSON Schema, in words, and the form of its texts.
struct KindText {
  const char* type;
  const char* wanted;
  const char* pattern = nullptr;
  bool (*has_form)(std::string_view) = nullptr;
};
const KindText& TextOf(Kind kind) {
  static const std::map<Kind, KindText> kTexts = {
      {Kind::kAny, {nullptr, "anything"}},
      {Kind::kBool, {"boolean", "true or false"}},
      {Kind::kInt, {"integer", "an integer"}},
      {Kind::kText, {"string", "a text"}},
      {Kind::kEnum, {nullptr, "a word"}},
      {Kind::kDigest, {"string", "64 lower-case hex digits", "^[0-9a-f]{64}$", IsDigest}},
      {Kind::kId,
       {"string", "lower-case words joined by hyphens, 3 to 80 characters",
        "^[a-z0-9]+(-[a-z0-9]+)*$", IsId}},
      {Kind::kCommit, {"string", "40 lower-case hex digits", "^[0-9a-f]{40}$", IsCommit}},
      {Kind::kPath, {"string", "a relative path", "^[^/].*$"}},
      {Kind::kTarget,
       {"string", "an architecture like sm_90a", "^sm_[1-9][0-9]{1,2}[af]?$", IsTarget}},
      {Kind::kClass,
       {"string", "an architecture like sm_90a, or host", "^(host|sm_[1-9][0-9]{1,2}[af]?)$",
        IsClass}},
      {Kind::kTime,
       {"string", "a time like 2026-08-26T14:03:22.123456789Z",
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{9}Z$", IsTime}},
      {Kind::kObject, {"object", "an object"}},
      {Kind::kList, {"array", "a list"}},
      {Kind::kMap, {"object", "an object"}},
  };
  return kTexts.at(kind);
}

void CheckText(const std::string& text, const Shape& shape, const std::string& pointer,
               FormCheck& check) {
  if (shape.kind == Kind::kEnum) {
    if (std::find(shape.words.begin(), shape.words.end(), text) != shape.words.end()) return;
    const bool placeholder = IsPlaceholder(text);
    const char* code = placeholder ? "E-PLACEHOLDER" : shape.is_status ? "E-STATUS-ENUM" : "E-ENUM";
    return check.Add(code, pointer,
                     "got \"" + text.substr(0, 80) + "\", wanted one of " + Joined(shape.words));
  }
  for (std::string_view rest = text; !rest.empty();) {
    const size_t step = Utf8Step(rest);
    const auto byte = static_cast<unsigned char>(rest[0]);
    if (step == 0 || byte < 0x20 || byte == 0x7f) {
      return check.Add("E-JSON-ENC", pointer, "a control character or a byte that is not UTF-8");
    }
    rest.remove_prefix(step);
  }
  const std::string got = "got \"" + text.substr(0, 80) + "\"";
  if (IsPlaceholder(text)) return check.Add("E-PLACEHOLDER", pointer, got);
  if (shape.kind == Kind::kPath) {
    const std::string why = WhyNotRelative(text);
    if (!why.empty()) check.Add("E-PATH", pointer, got + ": " + why);
    return;
  }
  const int64_t size = static_cast<int64_t>(text.size());
  if (shape.kind == Kind::kText && (size < shape.low || size > shape.high)) {
    return check.Add("E-TYPE", pointer,
                     "got " + std::to_string(size) + " bytes of text, wanted 1 to " +
                         std::to_string(shape.high));
  }
  const KindText& kind = TextOf(shape.kind);
  if (kind.has_form != nullptr && !kind.has_form(text)) {
    check.Add("E-TYPE", pointer, got + ", wanted " + kind.wanted);
  }
}

void CheckInteger(const Doc& value, const Shape& shape, const std::string& pointer,
                  FormCheck& check) {
  const int64_t number = value.get<int64_t>();
  if (number >= shape.low && number <= shape.high) return;
  check.Add(number == -1 ? "E-PLACEHOLDER" : "E-TYPE", pointer,
            "got " + value.dump() + ", wanted " + std::to_string(shape.low) + " to " +
                std::to_string(shape.high));
}

// Known fields in order beside the document's, which are sorted by bytes too.
void CheckObject(const Doc& value, const Shape& shape, std::string& pointer, FormCheck& check) {
  const size_t length = pointer.size();
  auto field = shape.fields.begin();
  const auto missing = [&](const std::string& name) {
    check.Add("E-FIELD-MISSING", pointer + "/" + name, "the field is not there");
  };
  for (const auto& [name, item] : value.get_ref<const Doc::object_t&>()) {
    while (field != shape.fields.end() && field->name < name) missing((field++)->name);
    pointer += "/";
    if (field != shape.fields.end() && field->name == name) {
      pointer += name;
      CheckShape(item, field->shape, pointer, check);
      ++field;
    } else {
      check.Add("E-FIELD-UNKNOWN", pointer + PointerToken(name),
                "no document of this kind has it" + Nearest(name, shape.fields));
    }
    pointer.resize(length);
  }
  while (field != shape.fields.end()) missing((field++)->name);
}

void CheckItems(const Doc& value, const Shape& shape, std::string& pointer, FormCheck& check) {
  const size_t length = pointer.size();
  if (static_cast<int64_t>(value.size()) < shape.low) {
    check.Add("E-TYPE", pointer, "an empty list, wanted at least one item");
  }
  size_t index = 0;
  for (auto it = value.begin(); it != value.end(); ++it) {
    pointer += "/" + (value.is_array() ? std::to_string(index++) : PointerToken(it.key()));
    CheckShape(*it, shape.item[0], pointer, check);
    pointer.resize(length);
  }
}

Doc SchemaOfShape(const Shape& shape) {
  Doc out = Doc::object();
  const KindText& text = TextOf(shape.kind);
  const bool nullable = shape.null != Null::kNo;
  if (text.type != nullptr) out["type"] = nullable ? Doc{text.type, "null"} : Doc(text.type);
  if (text.pattern != nullptr) out["pattern"] = text.pattern;
  if (shape.null == Null::kGap) out["description"] = "null needs an entry in missing";
  if (shape.kind == Kind::kInt) {
    out["minimum"] = shape.low;
    out["maximum"] = shape.high;
  } else if (shape.kind == Kind::kText) {
    out["minLength"] = shape.low;
    out["maxLength"] = shape.high;
  } else if (shape.kind == Kind::kEnum) {
    out["enum"] = shape.words;
    if (nullable) out["enum"].push_back(nullptr);
  } else if (shape.kind == Kind::kObject) {
    out["additionalProperties"] = false;
    out["properties"] = Doc::object();
    out["required"] = Doc::array();
    for (const Field& field : shape.fields) {
      out["properties"][field.name] = SchemaOfShape(field.shape);
      out["required"].push_back(field.name);
    }
  } else if (shape.kind == Kind::kList) {
    out["items"] = SchemaOfShape(shape.item[0]);
    out["minItems"] = shape.low;
  } else if (shape.kind == Kind::kMap) {
    out["additionalProperties"] = SchemaOfShape(shape.item[0]);
  }
  return out;
}

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

const Doc* AtPointer(const Doc& document, std::string_view pointer) {
  try {
    const Doc::json_pointer parsed{std::string(pointer)};
    return document.contains(parsed) ? &document.at(parsed) : nullptr;
  } catch (const Doc::exception&) {  // no pointer, or an index that no list has
    return nullptr;
  }
}

void FormCheck::Add(const char* code, const std::string& pointer, std::string message) {
  bad = true;
  findings.Add(code, file, line, pointer, std::move(message));
}

void CheckShape(const Doc& value, const Shape& shape, std::string& pointer, FormCheck& check) {
  if (shape.kind == Kind::kAny) return;
  if (value.is_null() && shape.null != Null::kNo) {
    if (shape.null == Null::kGap) check.gaps.push_back(pointer);
    return;
  }
  if (shape.kind == Kind::kObject && value.is_object()) {
    return CheckObject(value, shape, pointer, check);
  }
  if ((shape.kind == Kind::kList && value.is_array()) ||
      (shape.kind == Kind::kMap && value.is_object())) {
    return CheckItems(value, shape, pointer, check);
  }
  if (shape.kind == Kind::kBool && value.is_boolean()) return;
  if (shape.kind == Kind::kInt && value.is_number_integer()) {
    return CheckInteger(value, shape, pointer, check);
  }
  if (value.is_string() && (shape.kind >= Kind::kText && shape.kind <= Kind::kTime)) {
    return CheckText(value.get_ref<const std::string&>(), shape, pointer, check);
  }
  const bool word = value.is_string() && IsPlaceholder(value.get_ref<const std::string&>());
  const std::string wanted =
      shape.kind == Kind::kEnum ? "one of " + Joined(shape.words) : TextOf(shape.kind).wanted;
  std::string got = value.dump(-1, ' ', false, Doc::error_handler_t::replace);
  if (got.size() > 80) got = got.substr(0, 77) + "...";
  check.Add(word ? "E-PLACEHOLDER" : "E-TYPE", pointer, "got " + got + ", wanted " + wanted);
}

Doc SchemaOf() {
  Doc bodies = Doc::object();
  for (const auto& [kind, shape] : BodyShapes()) bodies[kind] = SchemaOfShape(shape);
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"$defs",
           {{"header", SchemaOfShape(HeaderShape())},
            {"record", SchemaOfShape(RecordShape())},
            {"evidence", SchemaOfShape(EvidenceShape())},
            {"bodies", bodies},
            {"log_entry", SchemaOfShape(LogEntryShape())},
            {"policy", SchemaOfShape(PolicyShape())},
            {"manifest", SchemaOfShape(ManifestShape())}}}};
}

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
