#include <map>

#include "h3rt/lab/scan.h"
#include "h3rt/lab/tool_logs.h"

// ptxas -v, by target and entry:
//   ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90a'
//   ptxas info    : Function properties for _Z1kPf
//       8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
//   ptxas info    : Used 32 registers, used 1 barriers, 128 bytes smem, 352 bytes cmem[0]

namespace h3rt::lab {
namespace {

struct Reader {
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
    PtxasKernel kernel;
    kernel.symbol = symbol;
    kernel.target = target;
    kernels.push_back(std::move(kernel));
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
      std::string_view rest = text;
      if (Take(rest, "Compiling entry function '")) return Entry(rest);
      if (Take(rest, "Function properties for ")) {
        properties_of_entry = current() && rest == current()->symbol;
        return;
      }
      if (Take(rest, "Used ")) return Used(rest);
      return;  // gmem, compile time, notes
    }
    if (Take(text, "ptxas warning")) {
      if (Contains(text, "will be ignored")) {
        Say("W-RES-HINT",
            Printable(text.substr(std::min(text.find_first_not_of(" :"), text.size()))));
      }
      return;
    }
    if (Contains(text, "bytes stack frame")) {
      while (Take(text, " ") || Take(text, "\t")) continue;
      Stack(text);
    }
  }
};

}  // namespace

std::vector<PtxasKernel> ParsePtxasLog(std::string_view text, std::string_view file,
                                       Findings& findings) {
  Reader reader{file, findings, {}, 0, false, {}};
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

}  // namespace h3rt::lab
