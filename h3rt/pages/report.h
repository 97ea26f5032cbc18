// The generated pages. Pure functions of the store: the same store gives the same bytes.
#pragma once

#include <map>
#include <string>

#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// Relative path -> content: the registry page, the log page, index.html and the production
// manifest.
absl::StatusOr<std::map<std::string, std::string>> RenderPages(const Store& store);
// Writes those that differ, atomically. Returns what was written.
absl::StatusOr<std::vector<std::string>> WritePages(const Store& store);
// E-REPORT with the first line that differs, for each page.
void CheckPages(const Store& store, Findings& findings);

}  // namespace h3rt::lab
