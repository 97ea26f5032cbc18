// What the pages have in common: the store as rows. For the report_*.cc files only.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/lab/lab.h"

namespace h3rt::lab {

enum class EvidenceState { kCurrent, kStale, kImported, kInvalid, kAbsent };
// "current", "stale", "imported", "invalid", "not in the store".
const char* WordOf(EvidenceState state);

// One evidence[] entry of a record.
struct CitedEvidence {
  std::string digest;
  std::string role;
  const Evidence* evidence = nullptr;  // null: not in the store
  EvidenceState state = EvidenceState::kAbsent;
  std::string reason = {};  // why it is stale or invalid
};

struct ReportRow {
  const Record* record = nullptr;
  std::string id;
  std::string status;
  std::vector<CitedEvidence> evidence = {};
  // Device class -> the verdict of each gate, null where it was not run.
  std::map<std::string, std::array<const Doc*, 6>> verdicts = {};
  std::string freshness =
      {};  // of all its valid evidence: "current", "2 of 3 stale (source)", "none"
  // "build pass": with "(stale)" when evidence it cites is not current.
  std::string VerdictText(size_t gate, const Doc& verdict) const;
  bool IsCurrent(const Doc& verdict) const;
};

struct ReportView {
  const Lab& lab;
  std::string registry_digest;  // of the file
  std::string policy_digest;
  std::vector<ReportRow> rows;
};

// A status, what it means in a sentence, and a sign that needs no colour.
struct StatusMeaning {
  const char* status;
  const char* sign;
  const char* meaning;
};
extern const std::array<StatusMeaning, 7> kStatusMeanings;
extern const std::array<const char*, 9> kInterpretationNotes;
// "not_applicable" -> "not applicable".
std::string Words(std::string_view name);

// Text in which {ev:DIGEST/pointer} was replaced by the number with its unit. `file` is the
// artifact (relative to the root), empty for words.
struct TextPiece {
  std::string text;
  std::string file;
};
std::vector<TextPiece> FillReferences(const Lab& lab, std::string_view text);
// A number as people read it, by the unit that its key ends with ("p50_ps", "cv_ppm", "bytes").
std::string QuantityText(std::string_view key, const Doc& value);

// Gaps and deliberately skipped gates of a record, a text each.
std::vector<std::string> GapTexts(const Doc& record);
// Where a record comes from and what carries it: source and artifact paths, then cited evidence.
struct Source {
  std::string text;
  std::string file;  // what to link to; empty when it is not in the store
};
std::vector<Source> SourcesOf(const ReportRow& row);

std::string RegistryPage(const ReportView& view);
std::string LogPage(const ReportView& view);
std::string ManifestPage(const ReportView& view);
absl::StatusOr<std::string> HtmlPage(const ReportView& view);

// A plot with its table twin, or what is missing and which command fills it.
struct Figure {
  std::string svg;    // empty: nothing to draw
  std::string twin;   // <table>...</table>
  std::string empty;  // HTML
};
Figure StatusFigure(const ReportView& view);
Figure GateFigure(const ReportView& view);
Figure GainFigure(const ReportView& view);
Figure ResourceFigure(const ReportView& view);
Figure TimelineFigure(const ReportView& view);
// One a timing, in the order of the records.
struct SequenceFigure {
  std::string title;
  std::string note;
  Figure figure;
};
absl::StatusOr<std::vector<SequenceFigure>> SequenceFigures(const ReportView& view);

// Markdown. Text with every sign of markup escaped; a code span where the text allows one; a link
// to a file of the store, `prefix` leading from the page to the root; text with its references
// filled.
std::string EscapeMarkdown(std::string_view text);
std::string MarkdownCode(std::string_view text);
std::string MarkdownLink(std::string_view prefix, std::string_view file, const std::string& text);
std::string MarkdownText(const Lab& lab, std::string_view prefix, std::string_view text);

// HTML: <table> with a caption; cells are HTML. A heading that starts with '#' is a numeric column.
std::string HtmlTable(std::string_view caption, const std::vector<std::string>& headings,
                      const std::vector<std::vector<std::string>>& rows);
// A link from research/ to a file of the store.
std::string HtmlLink(std::string_view file, std::string_view text);

}  // namespace h3rt::lab
