// What ptxas, compute-sanitizer and ncu print.
#include "h3rt/lab/tool_logs.h"

#include <map>

#include "h3rt/lab/scan.h"

namespace h3rt::lab {
namespace {

// ptxas -v, by target and entry:
//   ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90a'
//   ptxas info    : Function properties for _Z1kPf
//       8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
//   ptxas info    : Used 32 registers, used 1 barriers, 128 bytes smem, 352 bytes cmem[0]
struct PtxasReader {
  std::string_view file;
  Findings& findings;
  std::vector<PtxasKernel> kernels;
  int64_t line = 0;
  bool properties_of_entry = false;  // the stack line that follows is the entry's, not a callee's
  // A callee's spills are traffic of every entry of its target that may call it.
  std::map<std::string, std::pair<int64_t, int64_t>> callee_spills;

  void Say(const char* code, const std::string& message) {
    findings.Add({.code = code, .file = std::string(file), .line = line, .message = message});
  }
  PtxasKernel* current() { return kernels.empty() ? nullptr : &kernels.back(); }

  void Entry(std::string_view text) {
    std::string_view symbol, target;
    if (!TakeUntil(text, '\'', symbol) || symbol.empty() || !Take(text, " for '") ||
        !TakeUntil(text, '\'', target) || target.substr(0, 3) != "sm_" || !text.empty() ||
        !IsPrintable(symbol) || !IsPrintable(target)) {
      return Say("E-RES-MISSING", "an entry without symbol and target");
    }
    kernels.push_back({std::string(symbol), std::string(target)});
    properties_of_entry = false;
  }

  void Stack(std::string_view text) {
    int64_t stack = 0, stores = 0, loads = 0;
    if (!TakeNumber(text, stack) || !Take(text, " bytes stack frame, ") ||
        !TakeNumber(text, stores) || !Take(text, " bytes spill stores, ") ||
        !TakeNumber(text, loads) || text != " bytes spill loads" || !current()) {
      return Say("E-RES-MISSING", "a line of stack and spills in another form");
    }
    if (properties_of_entry) {
      current()->stack_bytes = std::max(current()->stack_bytes, stack);
      current()->spill_store_bytes = stores;
      current()->spill_load_bytes = loads;
    } else {
      auto& [all_stores, all_loads] = callee_spills[current()->target];
      all_stores = AddCapped(all_stores, stores);
      all_loads = AddCapped(all_loads, loads);
    }
  }

  // One item of the "Used" line.
  bool Item(std::string_view text) {
    PtxasKernel& kernel = *current();
    int64_t value = 0;
    if (Take(text, "used ")) {
      if (!TakeNumber(text, value) || (text != " barriers" && text != " barrier")) return false;
      kernel.barriers = value;
      return true;
    }
    if (!TakeNumber(text, value)) return false;
    if (text == " registers") {
      kernel.registers = value;
    } else if (text == " bytes smem") {
      kernel.static_shared_bytes = value;
    } else if (text == " bytes cumulative stack size") {
      kernel.stack_bytes = std::max(kernel.stack_bytes, value);
    } else if (Take(text, " bytes cmem[")) {
      kernel.constant_bytes = AddCapped(kernel.constant_bytes, value);
    } else {
      return text == " bytes lmem" || text == " textures" || text == " surfaces" ||
             text == " samplers";
    }
    return true;
  }

  void Used(std::string_view text) {
    if (!current()) return Say("E-RES-MISSING", "a use of registers without an entry");
    while (!text.empty()) {
      const size_t end = std::min(text.find(", "), text.size());
      if (!Item(text.substr(0, end))) {
        Say("E-RES-MISSING", "unknown use: " + Printable(text.substr(0, end), 60));
      }
      text.remove_prefix(std::min(end + 2, text.size()));
    }
  }

  void Line(std::string_view text) {
    if (Take(text, "ptxas info")) {
      while (Take(text, " ")) continue;
      if (!Take(text, ": ")) return;
      if (Take(text, "Compiling entry function '")) return Entry(text);
      if (Take(text, "Used ")) return Used(text);
      if (Take(text, "Function properties for ")) {
        properties_of_entry = current() && text == current()->symbol;
      }  // Others: gmem, compile time, notes.
    } else if (Take(text, "ptxas warning")) {
      while (Take(text, " ") || Take(text, ":")) continue;
      if (Contains(text, "will be ignored")) Say("W-RES-HINT", Printable(text));
    } else if (Contains(text, "bytes stack frame")) {
      while (Take(text, " ") || Take(text, "\t")) continue;
      Stack(text);
    }
  }
};

// "1 error" / "2 errors": a count and its noun.
bool TakeCount(std::string_view& text, std::string_view noun, int64_t& value) {
  if (!TakeNumber(text, value) || !Take(text, " ") || !Take(text, noun)) return false;
  Take(text, "s");
  return true;
}

// Adds to a count that is below zero until something is counted.
void Count(int64_t& all, int64_t more) { all = AddCapped(std::max<int64_t>(all, 0), more); }

// "1 hazard displayed (1 error, 0 warnings)"
bool RaceSummary(std::string_view text, SanitizerLog& log) {
  int64_t hazards = 0, errors = 0, warnings = 0;
  if (!TakeCount(text, "hazard", hazards) || !Take(text, " displayed (") ||
      !TakeCount(text, "error", errors) || !Take(text, ", ") ||
      !TakeCount(text, "warning", warnings) || text != ")") {
    return false;
  }
  log.tool = "racecheck";
  Count(log.hazards_displayed, hazards);
  Count(log.errors, AddCapped(errors, warnings));
  return true;
}

// What says that the tool did not see the program to its end.
constexpr std::string_view kBroken[] = {
    "terminated before first instrumented API call",
    "Internal Sanitizer Error",
    "process didn't terminate successfully",
    "No CUDA-capable device",
    "Unable to find injection library",
};

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

std::vector<PtxasKernel> ParsePtxasLog(std::string_view text, std::string_view file,
                                       Findings& findings) {
  PtxasReader reader{file, findings, {}, 0, false, {}};
  for (std::string_view line; TakeLine(text, line);) {
    ++reader.line;
    reader.Line(line);
  }
  reader.line = 0;
  if (reader.kernels.empty()) reader.Say("E-RES-MISSING", "no kernel in the log");
  for (PtxasKernel& kernel : reader.kernels) {
    if (kernel.registers < 0 || kernel.stack_bytes < 0 || kernel.spill_store_bytes < 0) {
      reader.Say("E-RES-MISSING", kernel.symbol.substr(0, 200) + " for " +
                                      kernel.target.substr(0, 20) +
                                      ": registers, stack or spills are not told");
      continue;
    }
    const auto& [stores, loads] = reader.callee_spills[kernel.target];
    kernel.spill_store_bytes = AddCapped(kernel.spill_store_bytes, stores);
    kernel.spill_load_bytes = AddCapped(kernel.spill_load_bytes, loads);
  }
  return std::move(reader.kernels);
}

std::optional<SanitizerLog> ParseSanitizerLog(std::string_view text, std::string_view file,
                                              Findings& findings) {
  SanitizerLog log;
  int64_t number = 0, in_brackets = 0, hidden = 0;
  bool head = false;
  const auto refuse = [&](const std::string& message) {
    findings.Add(
        {.code = "E-SAN-EMPTY", .file = std::string(file), .line = number, .message = message});
    return std::nullopt;
  };
  for (std::string_view line; TakeLine(text, line);) {
    ++number;
    if (!Take(line, "========= ")) continue;
    for (const std::string_view sign : kBroken) {
      if (Contains(line, sign)) return refuse(Printable(line));
    }
    if (Take(line, "COMPUTE-SANITIZER")) {
      head = true;
      continue;
    }
    // "and Read access at k(int *)+0xd0 [256 hazards]": one displayed hazard stands for these.
    const size_t open = line.rfind('[');
    int64_t count = 0;
    if (open != std::string_view::npos) {
      std::string_view inside = line.substr(open + 1);
      if (TakeCount(inside, "hazard", count) && inside == "]")
        in_brackets = AddCapped(in_brackets, count);
    }
    const bool race = Take(line, "RACECHECK SUMMARY: ");
    if (!race && !Take(line, "ERROR SUMMARY: ")) continue;
    std::string_view rest = line;
    if (TakeNumber(rest, count) && Contains(rest, " not ")) {  // "5 errors were not printed..."
      hidden = AddCapped(hidden, race ? count : 0);
      continue;
    }
    rest = line;
    const bool read =
        race ? RaceSummary(rest, log) : TakeCount(rest, "error", count) && rest.empty();
    if (!read) return refuse("a summary in another form: " + Printable(line));
    if (!race) Count(log.errors, count);
  }
  number = 0;
  if (!head) return refuse("no line of compute-sanitizer");
  if (log.errors < 0) return refuse("no summary: the tool did not come to its end");
  if (log.hazards_displayed >= 0) {
    log.hazards_total = AddCapped(std::max(in_brackets, log.hazards_displayed), hidden);
  }
  return log;
}

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
    const bool closed = SplitRow(line, fields);
    if (closed && columns.empty()) {
      for (size_t i = 0; i < fields.size(); ++i) columns.emplace(fields[i], i);
      for (const char* name : {"ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"}) {
        if (columns.count(name)) continue;
        say(std::string("no column \"") + name + "\"");
        return {};
      }
      continue;
    }
    const auto field = [&](const char* name) { return fields[columns.at(name)]; };
    int64_t value = 0;
    if (!closed) {
      say("quotes that do not close");
    } else if (fields.size() != columns.size()) {
      say(Message("a row of ", fields.size(), " fields"));
    } else if (!IsPrintable(line)) {
      say("a row with other than printable characters");
    } else if (!NumberE3(field("Metric Value"), value)) {
      say(field("Metric Name") + ": \"" + field("Metric Value") + "\" is no number");
    } else {
      const auto [at, added] = by_id.emplace(field("ID"), launches.size());
      if (added) {
        launches.push_back(
            {{"id", field("ID")}, {"kernel", field("Kernel Name")}, {"metrics", Doc::object()}});
      }
      launches[at->second]["metrics"][field("Metric Name")] = {{"unit", field("Metric Unit")},
                                                               {"value_e3", value}};
    }
  }
  number = 0;
  if (launches.empty()) say("no metric in the report");
  return launches;
}

}  // namespace h3rt::lab
