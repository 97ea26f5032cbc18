#include <map>

#include "h3rt/lab/scan.h"
#include "h3rt/lab/tool_logs.h"

namespace h3rt::lab {
namespace {

// The fields of a line; false when its quotes do not close.
bool SplitRow(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  while (true) {
    std::string field;
    if (Take(line, "\"")) {
      while (true) {
        const size_t quote = line.find('"');
        if (quote == std::string_view::npos) return false;
        field.append(line.substr(0, quote));
        line.remove_prefix(quote + 1);
        if (!Take(line, "\"")) break;
        field.push_back('"');
      }
    } else {
      const size_t end = std::min(line.find(','), line.size());
      field = line.substr(0, end);
      line.remove_prefix(end);
    }
    fields.push_back(std::move(field));
    if (line.empty()) return true;
    if (!Take(line, ",")) return false;
  }
}

// "3,700" and "1,234.5678" times 1000, rounded; groups of three or none. Everything else is
// refused, "1,5" and "1.234,5" of another locale too.
bool NumberE3(std::string_view text, int64_t& value) {
  const bool negative = Take(text, "-");
  const size_t point = std::min(text.find('.'), text.size());
  std::string_view whole = text.substr(0, point);
  std::string_view part = text.substr(std::min(point + 1, text.size()));
  if (whole.empty() || (point < text.size() && part.empty())) return false;
  std::string digits;
  const bool grouped = whole.find(',') != std::string_view::npos;
  for (bool first = true; !whole.empty(); first = false) {
    const size_t end = std::min(whole.find(','), whole.size());
    if (grouped && (first ? end == 0 || end > 3 : end != 3)) return false;
    digits.append(whole.substr(0, end));
    if (end + 1 == whole.size()) return false;  // a comma at the end
    whole.remove_prefix(std::min(end + 1, whole.size()));
  }
  for (const char c : part) {
    if (c < '0' || c > '9') return false;
  }
  const bool up = part.size() > 3 && part[3] >= '5';
  std::string thousandths(part.substr(0, 3));
  thousandths.resize(3, '0');
  std::string_view all = digits += thousandths;
  if (!TakeNumber(all, value) || !all.empty()) return false;
  value = negative ? -(value + up) : value + up;
  return true;
}

}  // namespace

std::vector<Doc> ParseNcuCsv(std::string_view text, std::string_view file, Findings& findings) {
  std::vector<Doc> launches;
  std::map<std::string, size_t> columns, by_id;
  std::vector<std::string> fields;
  int64_t number = 0;
  const auto say = [&](const std::string& message) {
    findings.Add({.code = "E-NCU-NUM",
                  .file = std::string(file),
                  .line = number,
                  .message = Printable(message)});
  };
  for (std::string_view line; TakeLine(text, line);) {
    ++number;
    if (line.empty() || line.substr(0, 2) == "==") continue;  // "==PROF== ..." of ncu itself
    if (columns.empty() && line[0] != '"') continue;          // what the program printed
    if (!SplitRow(line, fields)) {
      say("quotes that do not close");
      continue;
    }
    if (columns.empty()) {
      for (size_t i = 0; i < fields.size(); ++i) columns.emplace(fields[i], i);
      for (const char* name : {"ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"}) {
        if (columns.count(name)) continue;
        say(std::string("no column \"") + name + "\"");
        return {};
      }
      continue;
    }
    if (fields.size() != columns.size()) {
      say("a row of " + std::to_string(fields.size()) + " fields");
      continue;
    }
    const auto field = [&](const char* name) { return fields[columns.at(name)]; };
    int64_t value = 0;
    if (!IsPrintable(line)) {
      say("a row with other than printable characters");
      continue;
    }
    if (!NumberE3(field("Metric Value"), value)) {
      say(field("Metric Name") + ": \"" + field("Metric Value") + "\" is no number");
      continue;
    }
    const auto [at, added] = by_id.emplace(field("ID"), launches.size());
    if (added) {
      launches.push_back(
          {{"id", field("ID")}, {"kernel", field("Kernel Name")}, {"metrics", Doc::object()}});
    }
    launches[at->second]["metrics"][field("Metric Name")] = {{"unit", field("Metric Unit")},
                                                             {"value_e3", value}};
  }
  number = 0;
  if (launches.empty()) say("no metric in the report");
  return launches;
}

}  // namespace h3rt::lab
