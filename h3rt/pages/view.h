// The registry as text for people, and what changed in it.
#pragma once

#include <string>
#include <vector>

#include "h3rt/lab/lab.h"

namespace h3rt::lab {

// Texts for people, and the same as JSON.
std::string ShowRecord(const Lab& lab, const Record& record, bool evidence, bool history, bool why);
Doc ShowRecordDoc(const Lab& lab, const Record& record);
std::string ShowStatus(const Lab& lab, std::string_view by);
Doc ShowStatusDoc(const Lab& lab);
// Two stores (folders), or two pieces of evidence by digest: what changed, a line each.
absl::StatusOr<std::vector<std::string>> DiffStores(const Store& a, const Store& b);
absl::StatusOr<std::vector<std::string>> DiffEvidence(const Lab& lab, std::string_view a,
                                                      std::string_view b);

}  // namespace h3rt::lab
