// The production manifest: what may be dispatched, and nothing else.
#include <set>

#include "h3rt/pages/report_view.h"

namespace h3rt::lab {

std::string ManifestPage(const ReportView& view) {
  Doc entries = Doc::array();
  for (const ReportRow& row : view.rows) {
    if (row.status != "production_accepted") continue;
    for (const auto& [device_class, verdicts] : row.verdicts) {
      std::set<std::string> evidence, workloads;
      bool current = true;
      for (const Doc* verdict : verdicts) {
        current = current && verdict != nullptr && TextAt(*verdict, "verdict") == "pass" &&
                  !At(*verdict, "evidence").empty() && row.IsCurrent(*verdict);
        if (!current) break;
        for (const Doc& digest : At(*verdict, "evidence"))
          evidence.insert(digest.get<std::string>());
        for (const Doc& id : At(*verdict, "workloads")) workloads.insert(id.get<std::string>());
      }
      if (!current) continue;
      const Doc& record = row.record->json;
      entries.push_back({{"class", device_class},
                         {"eligible", At(At(record, "scope"), "eligible")},
                         {"entry", At(At(record, "source"), "entry")},
                         {"evidence", evidence},
                         {"id", row.id},
                         {"source_digest", At(At(record, "source"), "digest")},
                         {"workloads", workloads}});
    }
  }
  return CanonicalText({{"entries", entries}, {"schema", "lab.manifest/1"}}) + "\n";
}

}  // namespace h3rt::lab
