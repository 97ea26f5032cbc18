// Canonical JSON: the only form that is hashed.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "h3rt/ledger/finding.h"

namespace h3rt::lab {

// Keys are sorted by bytes, so dump() is the canonical text.
using Doc = nlohmann::json;

// Parses one document strictly: valid UTF-8 without BOM, no duplicate keys, no floats, no integers
// beyond +-(2^53 - 1), nesting up to 64, strings up to 1 MiB, no control characters. Anything else
// adds E-JSON, E-JSON-ENC, E-JSON-DUPKEY, E-JSON-LIMIT, E-JSON-NUM, E-EOL (CR) or E-MERGE (conflict
// markers) at its line and column and gives nothing. `first_line` is the line of text[0] in `file`.
std::optional<Doc> ParseDocument(std::string_view text, std::string_view file, int64_t first_line,
                                 Findings& findings);

// The canonical text, without a final newline. The document must hold no float (checked); what is
// not UTF-8 in it becomes U+FFFD.
std::string CanonicalText(const Doc& document);
// SHA-256 of the canonical text.
std::string DigestOf(const Doc& document);
// The digest of a record or log entry: without the key that holds the digest itself.
std::string DigestWithout(const Doc& document, std::string_view key);
std::string DigestOfText(std::string_view bytes);

// Bytes of the character that the text begins with; 0 where it is not valid UTF-8 or empty.
size_t Utf8Step(std::string_view text);

// A key as a token of a JSON pointer.
std::string PointerToken(std::string_view key);

// 64 lower-case hex digits.
bool IsDigest(std::string_view text);

// Typed reads that do not fail: the default where the key is absent or of another type. For
// documents that passed the schema.
std::string TextAt(const Doc& object, std::string_view key, std::string_view otherwise = "");
int64_t IntAt(const Doc& object, std::string_view key, int64_t otherwise = 0);
bool BoolAt(const Doc& object, std::string_view key, bool otherwise = false);
// The value under a key, or a null document.
const Doc& At(const Doc& object, std::string_view key);
// Whether a list has this text as an item.
bool Holds(const Doc& list, std::string_view text);
// The first object of a list with this text under a key; null when there is none.
const Doc* FindBy(const Doc& list, std::string_view key, std::string_view text);

}  // namespace h3rt::lab
