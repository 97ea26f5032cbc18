// The registry as text for people.
#include "h3rt/pages/view.h"

#include <fmt/format.h>

#include <algorithm>

namespace h3rt::lab {
namespace {

// Counts of a key over all records, in the order given first, then by name.
std::vector<std::pair<std::string, int64_t>> CountBy(const Lab& lab, std::string_view by) {
  std::vector<std::pair<std::string, int64_t>> counts;
  const auto add = [&](const std::string& key) {
    const auto it = std::find_if(counts.begin(), counts.end(),
                                 [&](const auto& entry) { return entry.first == key; });
    if (it == counts.end()) {
      counts.emplace_back(key, 1);
    } else {
      ++it->second;
    }
  };
  if (by == "status") {
    for (const char* status : kStatuses) counts.emplace_back(status, 0);
  } else if (by == "gate") {
    for (const char* gate : kGates) counts.emplace_back(std::string(gate) + " passed", 0);
  }
  for (const Record& record : lab.registry.records) {
    if (by == "status" || by == "group") {
      add(TextAt(record.json, by));
    } else if (by == "gate") {
      for (const char* gate : kGates) {
        const Doc& verdicts = At(At(record.json, "gates"), gate);
        if (!verdicts.is_array() || verdicts.empty()) continue;
        for (const Doc& verdict : verdicts) {
          const std::string text = TextAt(verdict, "verdict");
          add(std::string(gate) + (text == "pass" ? " passed" : " " + text));
        }
      }
    } else {  // fresh
      for (const Doc& reference : At(record.json, "evidence")) {
        const auto fresh = lab.freshness.find(TextAt(reference, "sha256"));
        const bool stale = fresh == lab.freshness.end() || fresh->second.stale;
        add(!BoolAt(reference, "valid", true) ? "invalid" : stale ? "stale" : "current");
      }
    }
  }
  return counts;
}

std::string GateLine(const Doc& record) {
  std::string line;
  for (const char* gate : kGates) {
    const Doc& verdicts = At(At(record, "gates"), gate);
    line += fmt::format("  {:<11} ", gate);
    if (!verdicts.is_array() || verdicts.empty()) {
      line += "not run\n";
      continue;
    }
    std::string indent;
    for (const Doc& verdict : verdicts) {
      line += fmt::format("{}{} {}: {}\n", indent, TextAt(verdict, "class"),
                          TextAt(verdict, "verdict"), TextAt(verdict, "reason"));
      indent = std::string(14, ' ');
    }
  }
  return line;
}

std::string EvidenceLines(const Lab& lab, const Doc& record) {
  std::string lines;
  for (const Doc& reference : At(record, "evidence")) {
    const std::string digest = TextAt(reference, "sha256");
    const auto it = lab.evidence.find(digest);
    const auto fresh = lab.freshness.find(digest);
    if (it == lab.evidence.end()) {
      lines += fmt::format("  {} is not in the store\n", digest);
      continue;
    }
    const Doc& envelope = it->second.json;
    lines += fmt::format(
        "  {} {:<13} {:<9} {:<8} {}{}\n", digest.substr(0, 12), TextAt(envelope, "kind"),
        TextAt(envelope, "word", "-"), TextAt(envelope, "target"), it->second.file,
        !BoolAt(reference, "valid", true) ? " INVALID: " + TextAt(reference, "invalid_reason")
        : fresh != lab.freshness.end() && fresh->second.stale ? " stale: " + fresh->second.reason
                                                              : "");
  }
  return lines.empty() ? "  none\n" : lines;
}

std::string HistoryLines(const Lab& lab, const std::string& id) {
  std::string lines;
  for (const LogEntry& entry : lab.log.entries) {
    for (const Doc& named : At(entry.json, "records")) {
      if (TextAt(named, "id") != id) continue;
      lines += fmt::format("  {} {} {}: {}\n", entry.seq(), TextAt(entry.json, "ts").substr(0, 19),
                           TextAt(entry.json, "kind"), TextAt(entry.json, "title"));
    }
  }
  return lines.empty() ? "  none\n" : lines;
}

std::string WhyLines(const Lab& lab, const Doc& record) {
  std::string lines;
  for (const StatusView& view : PermittedStatuses(lab.CaseOf(record))) {
    lines += fmt::format(
        "  {:<22} {}\n", view.status,
        view.permitted ? std::string("permitted") + (view.strongest ? ", the strongest" : "") +
                             (view.status == TextAt(record, "status") ? ", held" : "")
                       : "missing: " + view.first_missing);
  }
  const Case judged = lab.CaseOf(record);
  for (const std::string& device_class : DeviceClasses(judged)) {
    for (const char* gate : kGates) {
      const GateResult result = EvaluateGate(judged, gate, device_class);
      if (result.verdict.is_null()) continue;
      lines += fmt::format("{} on {}: {}\n", gate, device_class, TextAt(result.verdict, "verdict"));
      for (const std::string& line : result.arithmetic) lines += "  " + line + "\n";
    }
  }
  return lines;
}

}  // namespace

std::string ShowStatus(const Lab& lab, std::string_view by) {
  std::string text;
  int64_t total = 0;
  for (const auto& [key, count] : CountBy(lab, by)) {
    text += fmt::format("{:<28} {:>5}\n", key, count);
    total += count;
  }
  text += fmt::format("{:<28} {:>5}\n", "total", total);
  int64_t stale = 0;
  for (const auto& [digest, fresh] : lab.freshness) stale += fresh.stale ? 1 : 0;
  text +=
      fmt::format("{} records, {} log entries, {} pieces of evidence, {} stale\n",
                  lab.registry.records.size(), lab.log.entries.size(), lab.evidence.size(), stale);
  return text;
}

Doc ShowStatusDoc(const Lab& lab) {
  Doc doc = {{"evidence", lab.evidence.size()},
             {"log_entries", lab.log.entries.size()},
             {"records", lab.registry.records.size()}};
  for (const char* by : {"status", "group", "gate", "fresh"}) {
    for (const auto& [key, count] : CountBy(lab, by)) doc["by"][by][key] = count;
  }
  return doc;
}

std::string ShowRecord(const Lab& lab, const Record& record, bool evidence, bool history,
                       bool why) {
  const Doc& json = record.json;
  std::string text =
      fmt::format("{}: {}\n{} {} in group {}", record.id(), TextAt(json, "name"),
                  TextAt(json, "status"), TextAt(json, "kind"), TextAt(json, "group"));
  if (const std::string imported = TextAt(json, "imported_status"); !imported.empty()) {
    text += fmt::format("; the imported page says {}", imported);
  }
  text += fmt::format("\n{}\n", TextAt(At(json, "decision"), "text"));
  text += "gates\n" + GateLine(json);
  if (!At(json, "missing").empty()) text += "missing\n";
  for (const Doc& gap : At(json, "missing")) {
    text += fmt::format("  {} ({}{})\n", TextAt(gap, "what"), TextAt(gap, "why"),
                        BoolAt(gap, "blocker") ? ", blocker" : "");
  }
  if (evidence || why) text += "evidence\n" + EvidenceLines(lab, json);
  if (history) text += "history\n" + HistoryLines(lab, record.id());
  if (why) text += "statuses\n" + WhyLines(lab, json);
  return text;
}

Doc ShowRecordDoc(const Lab& lab, const Record& record) {
  Doc doc = {{"record", record.json}, {"statuses", Doc::array()}, {"evidence", Doc::array()}};
  for (const StatusView& view : PermittedStatuses(lab.CaseOf(record.json))) {
    doc["statuses"].push_back({{"first_missing", view.first_missing},
                               {"permitted", view.permitted},
                               {"status", view.status},
                               {"strongest", view.strongest}});
  }
  for (const Doc& reference : At(record.json, "evidence")) {
    const std::string digest = TextAt(reference, "sha256");
    const auto fresh = lab.freshness.find(digest);
    if (fresh == lab.freshness.end()) continue;
    doc["evidence"].push_back(
        {{"reason", fresh->second.reason}, {"sha256", digest}, {"stale", fresh->second.stale}});
  }
  return doc;
}

}  // namespace h3rt::lab
