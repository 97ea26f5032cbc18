#include "h3rt/lab/scan.h"
#include "h3rt/lab/tool_logs.h"

namespace h3rt::lab {
namespace {

// "1 error" / "2 errors": a count and its noun.
bool TakeCount(std::string_view& text, std::string_view noun, int64_t& value) {
  if (!TakeNumber(text, value) || !Take(text, " ") || !Take(text, noun)) return false;
  Take(text, "s");
  return true;
}

// "1 hazard displayed (1 error, 0 warnings)"
bool RaceSummary(std::string_view text, SanitizerLog& log) {
  int64_t hazards = 0, errors = 0, warnings = 0;
  if (!TakeCount(text, "hazard", hazards) || !Take(text, " displayed (") ||
      !TakeCount(text, "error", errors) || !Take(text, ", ") ||
      !TakeCount(text, "warning", warnings) || text != ")") {
    return false;
  }
  log.tool = "racecheck";
  log.hazards_displayed = AddCapped(std::max<int64_t>(log.hazards_displayed, 0), hazards);
  log.errors = AddCapped(std::max<int64_t>(log.errors, 0), AddCapped(errors, warnings));
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

}  // namespace

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
    if (race ? RaceSummary(rest, log) : TakeCount(rest, "error", count) && rest.empty()) {
      if (!race) log.errors = AddCapped(std::max<int64_t>(log.errors, 0), count);
    } else {
      return refuse("a summary in another form: " + Printable(line));
    }
  }
  number = 0;
  if (!head) return refuse("no line of compute-sanitizer");
  if (log.errors < 0) return refuse("no summary: the tool did not come to its end");
  if (log.hazards_displayed >= 0) {
    log.hazards_total = AddCapped(std::max(in_brackets, log.hazards_displayed), hidden);
  }
  return log;
}

}  // namespace h3rt::lab
