// What changed between two stores, or differs between two pieces of evidence.
#include <algorithm>
#include <set>

#include "h3rt/pages/view.h"

namespace h3rt::lab {
namespace {

// Leaves that differ, as "pointer: a -> b"; whole values where one side lacks the key.
void DiffLeaves(const Doc& a, const Doc& b, const std::string& pointer,
                std::vector<std::string>& lines) {
  if (a == b) return;
  const auto text = [](const Doc& value) {
    std::string dumped = value.dump();
    if (dumped.size() > 80) dumped = dumped.substr(0, 77) + "...";
    return dumped;
  };
  if (a.is_object() && b.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : a.items()) keys.insert(key);
    for (const auto& [key, value] : b.items()) keys.insert(key);
    for (const std::string& key : keys)
      DiffLeaves(At(a, key), At(b, key), pointer + "/" + key, lines);
    return;
  }
  lines.push_back(pointer + ": " + text(a) + " -> " + text(b));
}

std::set<std::string> EvidenceOf(const Doc& record) {
  std::set<std::string> digests;
  for (const Doc& reference : At(record, "evidence")) digests.insert(TextAt(reference, "sha256"));
  return digests;
}

void DiffRecord(const Doc& a, const Doc& b, std::vector<std::string>& lines) {
  const std::string id = TextAt(a, "id");
  const std::set<std::string> before = EvidenceOf(a);
  const std::set<std::string> after = EvidenceOf(b);
  for (const std::string& digest : after) {
    if (!before.contains(digest)) lines.push_back(id + ": evidence added " + digest.substr(0, 12));
  }
  for (const std::string& digest : before) {
    if (!after.contains(digest)) lines.push_back(id + ": evidence removed " + digest.substr(0, 12));
  }
  Doc left = a;
  Doc right = b;
  for (Doc* side : {&left, &right}) {
    side->erase("evidence");
    side->erase("record_digest");
  }
  std::vector<std::string> leaves;
  DiffLeaves(left, right, "", leaves);
  for (const std::string& leaf : leaves) lines.push_back(id + ": " + leaf);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DiffStores(const Store& a, const Store& b) {
  H3RT_ASSIGN_OR_RETURN(const Lab left, OpenLab(a));
  H3RT_ASSIGN_OR_RETURN(const Lab right, OpenLab(b));
  std::vector<std::string> lines;
  for (const Record& record : left.registry.records) {
    const Record* other = right.registry.Find(record.id());
    if (other == nullptr) {
      lines.push_back(record.id() + ": removed");
    } else if (TextAt(record.json, "record_digest") != TextAt(other->json, "record_digest")) {
      DiffRecord(record.json, other->json, lines);
    }
  }
  for (const Record& record : right.registry.records) {
    if (left.registry.Find(record.id()) == nullptr) lines.push_back(record.id() + ": added");
  }
  DiffLeaves(left.policy, right.policy, "policy", lines);
  const size_t shared = std::min(left.log.entries.size(), right.log.entries.size());
  for (size_t i = 0; i < shared; ++i) {
    if (left.log.entries[i].json == right.log.entries[i].json) continue;
    lines.push_back("log: the histories part at entry " + std::to_string(i));
    return lines;
  }
  for (size_t i = shared; i < right.log.entries.size(); ++i) {
    const Doc& entry = right.log.entries[i].json;
    lines.push_back("log: entry " + std::to_string(i) + " " + TextAt(entry, "kind") + ": " +
                    TextAt(entry, "title"));
  }
  if (left.log.entries.size() > shared) {
    lines.push_back("log: " + std::to_string(left.log.entries.size() - shared) + " entries fewer");
  }
  return lines;
}

absl::StatusOr<std::vector<std::string>> DiffEvidence(const Lab& lab, std::string_view a,
                                                      std::string_view b) {
  const Evidence* sides[2] = {nullptr, nullptr};
  const std::string_view names[2] = {a, b};
  for (int i = 0; i < 2; ++i) {
    for (const auto& [digest, evidence] : lab.evidence) {
      if (names[i].size() < 8 || !digest.starts_with(names[i])) continue;
      if (sides[i] != nullptr) {
        return InvalidArgument({.what = "evidence",
                                .got = std::string(names[i]),
                                .wanted = "more digits: two pieces begin so"});
      }
      sides[i] = &evidence;
    }
    if (sides[i] == nullptr) {
      return NotFound({.what = "no such evidence",
                       .got = std::string(names[i]),
                       .wanted = "at least 8 digits of a digest under benchmarks/"});
    }
  }
  std::vector<std::string> lines;
  DiffLeaves(sides[0]->json, sides[1]->json, "", lines);
  return lines;
}

}  // namespace h3rt::lab
