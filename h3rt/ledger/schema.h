// The form of every document, in tables: the validator and the JSON Schema both read them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/ledger/document.h"
#include "h3rt/ledger/finding.h"

namespace h3rt::lab {

// The closed sets that code names too; the others stand in the tables only.
inline constexpr const char* kGates[] = {"build", "correct",    "isolated",
                                         "block", "trajectory", "deployment"};
inline constexpr const char* kVerdicts[] = {"pass", "fail", "inconclusive", "skipped",
                                            "not_applicable"};
inline constexpr const char* kStatuses[] = {"production_accepted",
                                            "research_retained",
                                            "architecture_rejected",
                                            "performance_rejected",
                                            "quality_rejected",
                                            "temporarily_blocked",
                                            "incomplete"};

enum class Kind {
  kAny,
  kBool,
  kInt,     // low..high
  kText,    // low..high bytes, no placeholder, no control characters
  kEnum,    // one of `words`
  kDigest,  // 64 hex digits
  kId,      // see IsId
  kCommit,  // 40 hex digits
  kPath,    // relative, see WhyNotRelative
  kTarget,  // sm_NN with an optional letter
  kClass,   // the same, or "host"
  kTime,    // UTC to the nanosecond
  kObject,  // exactly `fields`
  kList,    // at least `low` of item[0]
  kMap,     // any keys, values of item[0]
};

enum class Null {
  kNo,       // never null
  kMeaning,  // null says something of its own
  kGap,      // null means unknown or not applicable and needs a missing[] entry
};

struct Field;
struct Shape {
  Kind kind = Kind::kAny;
  Null null = Null::kNo;
  int64_t low = 0;
  int64_t high = 0;
  bool is_status = false;  // a word outside the set is E-STATUS-ENUM
  std::vector<std::string> words = {};
  std::vector<Shape> item = {};
  std::vector<Field> fields;  // sorted by name; no initializer: clang would need the whole Field
};
struct Field {
  std::string name;
  Shape shape;
};

const Shape& HeaderShape();
const Shape& RecordShape();
const Shape& EvidenceShape();
// Kind of evidence -> its body. Kinds without a producer are not here.
const std::map<std::string, Shape, std::less<>>& BodyShapes();
const Shape& LogEntryShape();
const Shape& PolicyShape();
const Shape& ManifestShape();

// Where findings of a form go. `gaps` collects the pointers of nulls that need a missing[] entry.
struct FormCheck {
  std::string_view file;
  int64_t line = 0;
  Findings& findings;
  std::vector<std::string> gaps = {};
  bool bad = false;  // something was found, muted or not

  void Add(const char* code, const std::string& pointer, std::string message);
};
// E-FIELD-*, E-TYPE, E-ENUM, E-STATUS-ENUM, E-PLACEHOLDER, E-PATH, E-JSON-ENC. `pointer` is where
// the value lies; it comes back unchanged.
void CheckShape(const Doc& value, const Shape& shape, std::string& pointer, FormCheck& check);
// The value at a JSON pointer; null pointer where nothing is.
const Doc* AtPointer(const Doc& document, std::string_view pointer);
// Pointers of a record's nulls that need a missing[] entry and have none.
std::vector<std::string> UnexplainedNulls(const Doc& record);

// The first literal number with a unit or a percent sign outside {ev:...}; empty when there is
// none.
std::string FirstUncitedNumber(std::string_view text);
// What stands in {ev:...} in a text.
std::vector<std::string> References(std::string_view text);

// A predicate: `field op value` joined by `and` and `or` (`and` binds closer), one space between
// words; op is one of == != < <= > >=; a value is an integer or a word. Fields are looked up in
// `facts`. Sets `holds`; gives why it could not be evaluated, empty when it could. Without facts
// only the form is checked.
std::string EvaluatePredicate(std::string_view predicate, const Doc* facts, bool& holds);

// JSON Schema of all documents, from the tables that the validator uses.
Doc SchemaOf();

}  // namespace h3rt::lab
