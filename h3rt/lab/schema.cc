#include "h3rt/lab/schema.h"

#include <algorithm>

#include "h3rt/lab/log.h"
#include "h3rt/lab/store.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool IsPlaceholder(std::string_view text) {
  static constexpr std::string_view kThese[] = {"unknown", "n/a", "na",  "tbd", "todo", "null",
                                                "-1",      "?",   "xxx", "-",   "..."};
  const std::string lower = Lower(text);
  return std::find(std::begin(kThese), std::end(kThese), lower) != std::end(kThese);
}

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// sm_90, sm_90a, sm_121f.
bool IsTarget(std::string_view text) {
  if (!text.starts_with("sm_")) return false;
  text.remove_prefix(3);
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) text.remove_suffix(1);
  return (text.size() == 2 || text.size() == 3) && text[0] != '0' &&
         std::all_of(text.begin(), text.end(), IsDecimal);
}

// How many letters must change (Levenshtein), for the nearest known name.
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

// What each kind wants, and its pattern for the JSON Schema.
struct KindText {
  Kind kind;
  const char* wanted;
  const char* pattern;
};
constexpr KindText kKindTexts[] = {
    {Kind::kBool, "true or false", nullptr},
    {Kind::kInt, "an integer", nullptr},
    {Kind::kText, "a text", nullptr},
    {Kind::kDigest, "64 lower-case hex digits", "^[0-9a-f]{64}$"},
    {Kind::kId, "lower-case words joined by hyphens, 3 to 80 characters",
     "^[a-z0-9]+(-[a-z0-9]+)*$"},
    {Kind::kCommit, "40 lower-case hex digits", "^[0-9a-f]{40}$"},
    {Kind::kPath, "a relative path", "^[^/].*$"},
    {Kind::kTarget, "an architecture like sm_90a", "^sm_[1-9][0-9]{1,2}[af]?$"},
    {Kind::kClass, "an architecture like sm_90a, or host", "^(host|sm_[1-9][0-9]{1,2}[af]?)$"},
    {Kind::kTime, "a time like 2026-08-26T14:03:22.123456789Z",
     "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{9}Z$"},
    {Kind::kObject, "an object", nullptr},
    {Kind::kList, "a list", nullptr},
    {Kind::kMap, "an object", nullptr},
};

const KindText& TextOf(Kind kind) {
  for (const KindText& text : kKindTexts) {
    if (text.kind == kind) return text;
  }
  return kKindTexts[0];
}

bool HasForm(std::string_view text, Kind kind) {
  switch (kind) {
    case Kind::kDigest:
      return IsDigest(text);
    case Kind::kId:
      return IsId(text);
    case Kind::kCommit:
      return IsHex(text, 40);
    case Kind::kTarget:
      return IsTarget(text);
    case Kind::kClass:
      return text == "host" || IsTarget(text);
    case Kind::kTime:
      return ParseUtc(text).has_value();
    default:
      return true;
  }
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
  if (!HasForm(text, shape.kind)) {
    check.Add("E-TYPE", pointer, got + ", wanted " + TextOf(shape.kind).wanted);
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
  const auto type = [&](const char* name) {
    out["type"] = shape.null == Null::kNo ? Doc(name) : Doc{name, "null"};
  };
  switch (shape.kind) {
    case Kind::kAny:
      return out;
    case Kind::kBool:
      type("boolean");
      return out;
    case Kind::kInt:
      type("integer");
      out["minimum"] = shape.low;
      out["maximum"] = shape.high;
      return out;
    case Kind::kEnum:
      out["enum"] = shape.words;
      if (shape.null != Null::kNo) out["enum"].push_back(nullptr);
      return out;
    case Kind::kObject:
      type("object");
      out["additionalProperties"] = false;
      out["properties"] = Doc::object();
      out["required"] = Doc::array();
      for (const Field& field : shape.fields) {
        out["properties"][field.name] = SchemaOfShape(field.shape);
        out["required"].push_back(field.name);
      }
      break;
    case Kind::kList:
      type("array");
      out["items"] = SchemaOfShape(shape.item[0]);
      out["minItems"] = shape.low;
      return out;
    case Kind::kMap:
      type("object");
      out["additionalProperties"] = SchemaOfShape(shape.item[0]);
      return out;
    default:
      type("string");
      if (shape.kind == Kind::kText) {
        out["minLength"] = shape.low;
        out["maxLength"] = shape.high;
      }
      if (text.pattern != nullptr) out["pattern"] = text.pattern;
  }
  if (shape.null == Null::kGap) out["description"] = "null needs an entry in missing";
  return out;
}

}  // namespace

const Doc* AtPointer(const Doc& document, std::string_view pointer) {
  const Doc* at = &document;
  while (!pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    const size_t end = std::min(pointer.find('/', 1), pointer.size());
    std::string token(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    for (const auto& [from, to] : {std::pair("~1", '/'), std::pair("~0", '~')}) {
      for (size_t i = 0; (i = token.find(from, i)) != std::string::npos; ++i) {
        token.replace(i, 2, 1, to);
      }
    }
    if (at->is_object()) {
      const auto it = at->find(token);
      if (it == at->end()) return nullptr;
      at = &*it;
    } else if (at->is_array() && !token.empty() && token.size() < 7 &&
               std::all_of(token.begin(), token.end(), IsDecimal) &&
               std::stoul(token) < at->size()) {
      at = &(*at)[std::stoul(token)];
    } else {
      return nullptr;
    }
  }
  return at;
}

void FormCheck::Add(const char* code, const std::string& pointer, std::string message) {
  bad = true;
  findings.Add({.code = code,
                .file = std::string(file),
                .line = line,
                .column = 1,
                .pointer = pointer,
                .message = std::move(message)});
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

}  // namespace h3rt::lab
