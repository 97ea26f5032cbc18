// What a check found: one line each, with a code from a closed table, in a stable order.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "h3rt/base/exit_code.h"
#include "h3rt/base/json.h"

namespace h3rt::lab {

enum class Severity { kError, kWarning };

// One rule. `exit_code` is what a command that met it ends with, when nothing graver happened.
struct CodeEntry {
  const char* code;
  Severity severity;
  ExitCode exit_code;
  bool strict_error;  // a warning that --strict raises to an error
  const char* mend;   // how to mend it, for every finding of this code
};

// Every code there is. The tests hold that each has a fixture.
std::span<const CodeEntry> CodeTable();
const CodeEntry* FindCode(std::string_view code);

struct Finding {
  std::string code;
  std::string file = {};     // relative to the store's root
  int64_t line = 0;          // 1-based; 0: the file as a whole
  int64_t column = 0;        // 1-based, in bytes; 0: the line as a whole
  std::string pointer = {};  // JSON pointer within the line's document
  std::string message;
};

// Collects findings up to a cap of errors and one of warnings; the counts stay exact beyond it.
class Findings {
 public:
  explicit Findings(size_t cap = 1000) : cap_(cap) {}
  // The code must be in the table (a fault of ours otherwise). Control bytes and what is not UTF-8
  // are escaped, so that a finding is one line whatever it quotes.
  void Add(Finding finding);
  // At the first column of a line.
  void Add(const char* code, std::string_view file, int64_t line, std::string_view pointer,
           std::string message) {
    Add({.code = code,
         .file = std::string(file),
         .line = line,
         .column = 1,
         .pointer = std::string(pointer),
         .message = std::move(message)});
  }
  // Turns a rule off: its findings are neither kept nor counted. For the mutation test.
  void Mute(std::string_view code) { muted_ = code; }
  // --strict: staleness and lint warnings of CodeTable() that strictness raises count as errors.
  // Set it before the first finding.
  void SetStrict(bool strict) { strict_ = strict; }

  int64_t errors() const { return errors_; }
  int64_t warnings() const { return warnings_; }
  bool Has(std::string_view code) const { return counts_.find(code) != counts_.end(); }
  // Code -> how often, beyond the cap too.
  const std::map<std::string, int64_t, std::less<>>& counts() const { return counts_; }
  // The gravest exit code among the errors: data loss before I/O before findings; 0 without errors.
  ExitCode exit_code() const { return exit_code_; }
  // Sorted by file, line, column, pointer, code.
  std::vector<Finding> Sorted() const;
  // "E-ID-DUP research/experiment_registry.json:7:1 /id: message; mend: ..."
  static std::string ToText(const Finding& finding);
  Json ToJson() const;

 private:
  size_t cap_;
  std::string muted_;
  bool strict_ = false;
  int64_t errors_ = 0;
  int64_t warnings_ = 0;
  ExitCode exit_code_ = ExitCode::kDone;
  std::map<std::string, int64_t, std::less<>> counts_;
  std::vector<Finding> kept_;
};

}  // namespace h3rt::lab
