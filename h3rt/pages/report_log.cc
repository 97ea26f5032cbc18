// EXPERIMENT_LOG.md beside the log.
#include <fmt/format.h>

#include "h3rt/pages/report_view.h"
#include "h3rt/pages/svg.h"

namespace h3rt::lab {
namespace {

constexpr char kUp[] = "../../";

std::string Paragraph(const Lab& lab, const char* label, const std::string& text) {
  if (text.empty()) return "";
  return fmt::format("{}: {}\n\n", label, MarkdownText(lab, kUp, text));
}

std::string Bullets(const Lab& lab, const char* label, const Doc& texts) {
  if (!texts.is_array() || texts.empty()) return "";
  std::string out = std::string(label) + ":\n\n";
  for (const Doc& text : texts) {
    if (text.is_string()) out += "- " + MarkdownText(lab, kUp, text.get<std::string>()) + "\n";
  }
  return out + "\n";
}

std::string Projections(const Doc& projections) {
  std::string out;
  for (const Doc& projection : projections) {
    const std::string unit = TextAt(projection, "unit");
    out += fmt::format("- between {} and {}\n", QuantityText(unit, At(projection, "low")),
                       QuantityText(unit, At(projection, "high")));
  }
  return out.empty() ? "" : "Projected, not measured:\n\n" + out + "\n";
}

// Objects of a fixed but small form (plan, anchor, quarantine): key and value.
std::string Facts(const char* label, const Doc& object) {
  if (!object.is_object() || object.empty()) return "";
  std::string out;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || value.is_structured()) continue;
    out += (out.empty() ? "" : "; ") + EscapeMarkdown(Words(key)) + " " +
           MarkdownCode(QuantityText(key, value));
  }
  return fmt::format("{}: {}\n\n", label, out);
}

// What an entry was taken from, and its words there.
std::string Origin(const Doc& document) {
  if (!document.is_object()) return "";
  std::string out = "Imported from " + MarkdownCode(TextAt(document, "file"));
  if (document.contains("line")) out += fmt::format(", line {}", IntAt(document, "line"));
  if (const std::string date = TextAt(document, "date"); !date.empty()) {
    out += ", dated there " + EscapeMarkdown(date);
  }
  out += fmt::format(" (`{}`).\n\n", TextAt(document, "sha256").substr(0, 12));
  for (const Doc& text : At(document, "text")) {
    if (text.is_string()) out += "> " + EscapeMarkdown(text.get<std::string>()) + "\n>\n";
  }
  return out.ends_with(">\n") ? out.substr(0, out.size() - 2) + "\n" : out;
}

std::string EvidenceLine(const Lab& lab, const Doc& digests) {
  std::string out;
  for (const Doc& entry : digests) {
    if (!entry.is_string()) continue;
    const auto digest = entry.get<std::string>();
    const auto found = lab.evidence.find(digest);
    out += (out.empty() ? "" : ", ") +
           MarkdownLink(kUp, found == lab.evidence.end() ? "" : found->second.file,
                        "`" + digest.substr(0, 12) + "`");
  }
  return out.empty() ? "" : "Evidence: " + out + "\n\n";
}

std::string RecordsLine(const Doc& records) {
  std::string out;
  int64_t count = 0;
  for (const Doc& change : records) {
    const std::string after = TextAt(change, "after").substr(0, 8);
    const std::string before = TextAt(change, "before").substr(0, 8);
    out += fmt::format("{}{} ({})", count++ == 0 ? "" : ", ", MarkdownCode(TextAt(change, "id")),
                       before.empty() ? "new, " + after : before + " → " + after);
  }
  if (count == 0) return "";
  // Long lists fold: an import names every record.
  if (count <= 8) return "Records: " + out + "\n\n";
  return fmt::format("<details><summary>{} records</summary>\n\n{}\n\n</details>\n\n", count, out);
}

std::string EntryText(const Lab& lab, const Doc& entry) {
  const std::string status = TextAt(entry, "status");
  std::string text = fmt::format("### {}. {}\n\n{}, {} UTC{}\n\n", IntAt(entry, "seq"),
                                 EscapeMarkdown(TextAt(entry, "title")), TextAt(entry, "kind"),
                                 TextAt(entry, "ts").substr(11, 8),
                                 status.empty() ? "" : ". Status: " + MarkdownCode(status));
  text += Origin(At(entry, "document"));
  text += Paragraph(lab, "Hypothesis", TextAt(entry, "hypothesis"));
  text += Bullets(lab, "Actions", At(entry, "actions"));
  text += Projections(At(entry, "projections"));
  text += Paragraph(lab, "Decision", TextAt(entry, "decision"));
  text += Bullets(lab, "Alternatives", At(entry, "alternatives"));
  text += Bullets(lab, "Not done", At(entry, "not_done"));
  text += Bullets(lab, "Authorizes", At(entry, "authorizes"));
  text += Bullets(lab, "Forbids", At(entry, "forbids"));
  text += Facts("Plan", At(entry, "plan"));
  text += Facts("Anchor", At(entry, "anchor"));
  text += Facts("Quarantine", At(entry, "quarantine"));
  text += EvidenceLine(lab, At(entry, "evidence"));
  text += RecordsLine(At(entry, "records"));
  return text + fmt::format("Hash: `{}`\n\n", TextAt(entry, "hash"));
}

// How closed work may be opened again, from the record it closed.
std::string ReopenText(const Lab& lab, const Doc& entry) {
  std::string out;
  for (const Doc& change : At(entry, "records")) {
    const Record* record = lab.registry.Find(TextAt(change, "id"));
    if (record == nullptr) continue;
    const Doc& closed = At(record->json, "closed");
    if (closed.is_null()) continue;
    out += (out.empty() ? "" : "<br>") + MarkdownText(lab, kUp, TextAt(closed, "rule"));
    for (const Doc& condition : At(At(closed, "reopen"), "conditions")) {
      const std::string text =
          condition.is_string() ? condition.get<std::string>() : condition.dump();
      out += "<br>Condition: " + MarkdownText(lab, kUp, text);
    }
  }
  for (const Doc& text : At(entry, "forbids")) {
    if (!text.is_string()) continue;
    out += (out.empty() ? "" : "<br>") + MarkdownText(lab, kUp, text.get<std::string>());
  }
  return out.empty() ? "—" : out;
}

std::string ClosedTable(const Lab& lab) {
  std::string rows;
  for (const LogEntry& entry : lab.log.entries) {
    if (TextAt(entry.json, "kind") != "close") continue;
    rows += fmt::format("| {} | {} | {} | {} |\n", EscapeMarkdown(TextAt(entry.json, "title")),
                        MarkdownText(lab, kUp, TextAt(entry.json, "decision", "—")),
                        ReopenText(lab, entry.json), entry.seq());
  }
  if (rows.empty()) return "No entry closes any work yet.\n\n";
  return "| Work | Result | Preservation / reopening rule | Entry |\n| --- | --- | --- | ---: |\n" +
         rows + "\n";
}

}  // namespace

std::string LogPage(const ReportView& view) {
  const Lab& lab = view.lab;
  std::string page = fmt::format(
      "# Experiment Log\n\n"
      "Generated by `h3rt lab report` from `EXPERIMENT_LOG.jsonl`; do not edit. The log only "
      "grows:\n"
      "errors are corrected by a later entry. Projections are estimates of a design, never "
      "results.\n\n"
      "{} entries, head `{}`.\n\n## Closed Work\n\n",
      lab.log.entries.size(), lab.log.head_hash);
  page += ClosedTable(lab);
  std::string date;
  for (const LogEntry& entry : lab.log.entries) {
    const std::string day = TextAt(entry.json, "ts").substr(0, 10);
    if (day != date) page += "## " + day + "\n\n";
    date = day;
    page += EntryText(lab, entry.json);
  }
  page.pop_back();  // one line end at the end
  return page;
}

}  // namespace h3rt::lab
