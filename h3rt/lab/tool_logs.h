// Readers of other tools' output. All strict: what they do not know is a finding, never a zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "h3rt/ledger/document.h"

namespace h3rt::lab {

struct PtxasKernel {
  std::string symbol;  // mangled
  std::string target;
  int64_t registers = -1, stack_bytes = -1, spill_store_bytes = -1, spill_load_bytes = -1;
  int64_t static_shared_bytes = 0, constant_bytes = 0, barriers = 0;
};
std::vector<PtxasKernel> ParsePtxasLog(std::string_view text, std::string_view file,
                                       Findings& findings);  // E-RES-MISSING, W-RES-HINT
struct SanitizerLog {
  std::string tool, version;
  int64_t errors = -1;
  int64_t hazards_displayed = -1, hazards_total = -1;
};
std::optional<SanitizerLog> ParseSanitizerLog(std::string_view text, std::string_view file,
                                              Findings& findings);  // E-SAN-EMPTY
std::vector<Doc> ParseNcuCsv(std::string_view text, std::string_view file,
                             Findings& findings);  // E-NCU-NUM

}  // namespace h3rt::lab
