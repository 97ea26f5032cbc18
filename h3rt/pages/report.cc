#include "h3rt/pages/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "h3rt/base/file.h"
#include "h3rt/pages/report_view.h"
#include "h3rt/pages/svg.h"

namespace h3rt::lab {

const std::array<StatusMeaning, 7> kStatusMeanings = {{
    {"production_accepted", "●",
     "Selected today for the environment that its record names: every gate passed on current "
     "evidence and the production manifest lists it."},
    {"research_retained", "◆",
     "Worth keeping as a reference or a neutral result. Nothing is said about production."},
    {"architecture_rejected", "▲",
     "The design breaks a named rule of the data flow, or polishes a boundary that should not be "
     "there."},
    {"performance_rejected", "▼",
     "The candidate is correct, and a performance gate failed with confidence."},
    {"quality_rejected", "✕",
     "A correctness or quality requirement failed, however fast the candidate is."},
    {"temporarily_blocked", "■",
     "A toolchain, compiler, host or memory problem stands before any conclusion; the record says "
     "when to try again."},
    {"incomplete", "○", "The evidence does not carry any stronger word."},
}};

const std::array<const char*, 9> kInterpretationNotes = {
    "production_accepted speaks of the eligible environment in the record, not of other devices.",
    "research_retained does not say that any program dispatches to it.",
    "architecture_rejected can stand without timings: the reason is the design, not a number.",
    "temporarily_blocked is never read as slow: what did not run has no speed.",
    "incomplete is also the word for named history whose source or measurements are lost. "
    "Nothing "
    "is filled in by guessing.",
    "An imported status is what an older page said. It carries no gate here; the status of this "
    "registry moves only on evidence that this project made.",
    "A gap blocks stronger claims unless it says otherwise. What does not apply to a record is no "
    "gap.",
    "A gain is baseline over candidate: above zero the candidate is faster. Measurements stay in "
    "their artifacts, with workload and environment, and are quoted from there.",
    "Evidence is current while the sources, tools and inputs behind it are the ones in the tree. A "
    "stale verdict keeps its history and cannot support a claim.",
};

std::string Words(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

const char* WordOf(EvidenceState state) {
  static constexpr const char* kWords[] = {"current", "stale", "imported", "invalid",
                                           "not in the store"};
  return kWords[static_cast<size_t>(state)];
}

bool ReportRow::IsCurrent(const Doc& verdict) const {
  const Doc& cited = At(verdict, "evidence");
  return std::all_of(cited.begin(), cited.end(), [&](const Doc& digest) {
    return std::any_of(evidence.begin(), evidence.end(), [&](const CitedEvidence& entry) {
      return digest == entry.digest && entry.state == EvidenceState::kCurrent;
    });
  });
}

std::string ReportRow::VerdictText(size_t gate, const Doc& verdict) const {
  return std::string(kGates[gate]) + " " + Words(TextAt(verdict, "verdict")) +
         (IsCurrent(verdict) ? "" : " (stale)");
}

namespace {

CitedEvidence CiteOf(const Lab& lab, const Doc& entry) {
  CitedEvidence cited{.digest = TextAt(entry, "sha256"), .role = TextAt(entry, "role")};
  const auto found = lab.evidence.find(cited.digest);
  if (found == lab.evidence.end()) return cited;
  cited.evidence = &found->second;
  const auto fresh = lab.freshness.find(cited.digest);
  if (!BoolAt(entry, "valid", true)) {
    cited.state = EvidenceState::kInvalid;
    cited.reason = TextAt(entry, "invalid_reason");
  } else if (TextAt(found->second.json, "origin") == "imported") {
    cited.state = EvidenceState::kImported;
  } else if (fresh == lab.freshness.end() || fresh->second.stale) {
    cited.state = EvidenceState::kStale;
    cited.reason = fresh == lab.freshness.end() ? "" : fresh->second.reason;
  } else {
    cited.state = EvidenceState::kCurrent;
    cited.reason = fresh->second.reason;
  }
  return cited;
}

std::string FreshnessText(const std::vector<CitedEvidence>& evidence) {
  int64_t valid = 0, stale = 0, imported = 0;
  std::string reason;
  for (const CitedEvidence& cited : evidence) {
    if (cited.state == EvidenceState::kInvalid) continue;
    ++valid;
    if (cited.state == EvidenceState::kImported) ++imported;
    if (cited.state != EvidenceState::kStale && cited.state != EvidenceState::kAbsent) continue;
    ++stale;
    if (reason.empty()) reason = cited.reason.empty() ? WordOf(cited.state) : cited.reason;
  }
  if (evidence.empty()) return "none";
  if (valid == 0) return "invalid only";
  if (stale > 0) return fmt::format("{} of {} stale ({})", stale, valid, reason);
  return imported == valid ? "imported" : "current";
}

ReportRow RowOf(const Lab& lab, const Record& record) {
  ReportRow row{.record = &record, .id = record.id(), .status = TextAt(record.json, "status")};
  for (const Doc& entry : At(record.json, "evidence")) row.evidence.push_back(CiteOf(lab, entry));
  for (size_t gate = 0; gate < std::size(kGates); ++gate) {
    for (const Doc& verdict : At(At(record.json, "gates"), kGates[gate])) {
      row.verdicts[TextAt(verdict, "class")][gate] = &verdict;
    }
  }
  row.freshness = FreshnessText(row.evidence);
  return row;
}

// The end of a key says the unit: value / `unit` with `decimals`, then `name`.
struct Unit {
  const char* ending;
  int64_t unit;
  int decimals;
  const char* name;
};
constexpr Unit kUnits[] = {
    {"mde_e9", 10000000, 2, " %"},
    {"rel_l2_e9", 1000000000, 6, ""},
    {"max_abs_e9", 1000000000, 6, ""},
    {"_ppm", 10000, 2, " %"},
    {"_e9", 1000000000, 4, ""},
    {"_e6", 1000000, 4, ""},
    {"_e3", 1000, 2, ""},
    {"_mhz", 1, 0, " MHz"},
    {"_mw", 1000, 1, " W"},
    {"_c", 1, 0, " °C"},
    {"bytes_per_s", 1000000000, 1, " GB/s"},
    {"bytes", 1, 0, " B"},
};

std::string ReferenceText(const Lab& lab, std::string_view reference, std::string& file) {
  const size_t slash = reference.find('/');
  const std::string_view digest = reference.substr(0, slash);
  const auto found = lab.evidence.lower_bound(std::string(digest));
  if (digest.size() < 8 || found == lab.evidence.end() || !found->first.starts_with(digest)) {
    return "[no evidence " + std::string(digest.substr(0, 12)) + "]";
  }
  file = found->second.file;
  const Doc* value = nullptr;
  std::string pointer;
  if (slash != std::string_view::npos) pointer = reference.substr(slash);
  value = &found->second.json;
  // Step by step: a pointer that does not fit is a word in the page, not a fault.
  for (size_t at = 0; at < pointer.size() && value != nullptr;) {
    const size_t end = std::min(pointer.find('/', at + 1), pointer.size());
    const std::string step = pointer.substr(at + 1, end - at - 1);
    const bool number = !step.empty() && step.size() < 10 &&
                        step.find_first_not_of("0123456789") == std::string::npos;
    if (value->is_array() && number && std::stoul(step) < value->size()) {
      value = &(*value)[std::stoul(step)];
    } else {
      value = value->is_object() && value->contains(step) ? &(*value)[step] : nullptr;
    }
    at = end;
  }
  if (pointer.empty()) return TextAt(*value, "kind") + " " + found->first.substr(0, 12);
  if (value == nullptr || value->is_structured() || value->is_null()) {
    return "[no value " + pointer + "]";
  }
  return QuantityText(pointer.substr(pointer.rfind('/') + 1), *value);
}

}  // namespace

std::string QuantityText(std::string_view key, const Doc& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_integer()) return value.dump();
  const int64_t number = value.get<int64_t>();
  if (key.ends_with("_ps") || key == "ps") return TimeText(number);
  if ((key.ends_with("_ns") || key == "ns") && number < INT64_MAX / 1000 &&
      number > INT64_MIN / 1000) {
    return TimeText(number * 1000);
  }
  for (const Unit& unit : kUnits) {
    if (!key.ends_with(unit.ending)) continue;
    return (unit.unit == 1 ? CountText(number) : FixedText(number, unit.unit, unit.decimals)) +
           unit.name;
  }
  return CountText(number);
}

std::vector<TextPiece> FillReferences(const Lab& lab, std::string_view text) {
  std::vector<TextPiece> pieces;
  while (!text.empty()) {
    const size_t open = text.find("{ev:");
    const size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) {
      pieces.push_back({.text = std::string(text), .file = {}});
      break;
    }
    if (open > 0) pieces.push_back({.text = std::string(text.substr(0, open)), .file = {}});
    TextPiece piece;
    piece.text = ReferenceText(lab, text.substr(open + 4, close - open - 4), piece.file);
    pieces.push_back(std::move(piece));
    text.remove_prefix(close + 1);
  }
  return pieces;
}

std::vector<std::string> GapTexts(const Doc& record) {
  std::vector<std::string> gaps;
  for (const Doc& gap : At(record, "missing")) {
    if (TextAt(gap, "why") == "not_applicable") continue;
    gaps.push_back(TextAt(gap, "what") + (BoolAt(gap, "blocker", true) ? "" : " (not blocking)"));
  }
  for (const Doc& skip : At(record, "skipped")) {
    gaps.push_back(TextAt(skip, "gate") + " gate skipped on purpose after " +
                   TextAt(skip, "because_gate"));
  }
  return gaps;
}

std::vector<Source> SourcesOf(const ReportRow& row) {
  std::vector<Source> sources;
  const Doc& record = row.record->json;
  const bool here = TextAt(At(record, "source"), "state") == "present" ||
                    TextAt(At(record, "source"), "state") == "partial";
  for (const Doc& path : At(At(record, "source"), "paths")) {
    if (!path.is_string()) continue;
    const auto text = path.get<std::string>();
    sources.push_back({.text = text, .file = here ? text : ""});
  }
  for (const Doc& artifact : At(record, "artifacts")) {
    const std::string path = TextAt(artifact, "path");
    sources.push_back({.text = path, .file = BoolAt(artifact, "exists") ? path : ""});
  }
  for (const CitedEvidence& cited : row.evidence) {
    if (cited.evidence == nullptr) {
      sources.push_back({.text = cited.digest.substr(0, 12) + " (not in the store)", .file = {}});
      continue;
    }
    const Doc& envelope = cited.evidence->json;
    const std::string word =
        cited.state == EvidenceState::kCurrent ? "" : std::string(", ") + WordOf(cited.state);
    sources.push_back(
        {.text = fmt::format("{} {} {}{}", TextAt(envelope, "kind"), TextAt(envelope, "target"),
                             cited.digest.substr(0, 8), word),
         .file = cited.evidence->file});
  }
  const Doc& from = At(At(record, "provenance"), "from");
  if (from.is_object()) {
    sources.push_back(
        {.text = fmt::format("{}, line {}", TextAt(from, "document"), IntAt(from, "line")),
         .file = {}});
  }
  return sources;
}

absl::StatusOr<std::map<std::string, std::string>> RenderPages(const Store& store) {
  H3RT_ASSIGN_OR_RETURN(const Lab lab, OpenLab(store));
  ReportView view{.lab = lab,
                  .registry_digest = DigestOfText(RegistryText(lab.registry)),
                  .policy_digest = DigestOf(lab.policy),
                  .rows = {}};
  for (const Record& record : lab.registry.records) view.rows.push_back(RowOf(lab, record));
  std::map<std::string, std::string> pages;
  pages[kRegistryPage] = RegistryPage(view);
  pages[kLogPage] = LogPage(view);
  pages[kManifestFile] = ManifestPage(view);
  H3RT_ASSIGN_OR_RETURN(pages[kHtmlPage], HtmlPage(view));
  return pages;
}

absl::StatusOr<std::vector<std::string>> WritePages(const Store& store) {
  H3RT_ASSIGN_OR_RETURN(const auto pages, RenderPages(store));
  std::vector<std::string> written;
  for (const auto& [file, text] : pages) {
    const absl::StatusOr<std::string> old = ReadFile(store.PathOf(file));
    if (old.ok() && *old == text) continue;
    H3RT_RETURN_IF_ERROR(WriteFileAtomically(store.PathOf(file), text));
    written.push_back(file);
  }
  return written;
}

void CheckPages(const Store& store, Findings& findings) {
  const auto pages = RenderPages(store);
  if (!pages.ok()) {
    findings.Add({.code = "E-REPORT",
                  .file = kRegistryFile,
                  .message = "the pages cannot be made: " + MessageOf(pages.status())});
    return;
  }
  for (const auto& [file, text] : *pages) {
    const absl::StatusOr<std::string> old = ReadFile(store.PathOf(file));
    if (!old.ok()) {
      findings.Add({.code = "E-REPORT", .file = file, .message = MessageOf(old.status())});
      continue;
    }
    if (*old == text) continue;
    const auto difference = std::mismatch(old->begin(), old->end(), text.begin(), text.end());
    const auto line_at = [](const std::string& all, std::string::const_iterator at) {
      const auto start = static_cast<size_t>(at - all.begin());
      const size_t from = start == 0 ? 0 : all.rfind('\n', start - 1) + 1;
      return Shorten(SpellOut(all.substr(from, std::min(all.find('\n', from), from + 400) - from)),
                     80);
    };
    findings.Add({.code = "E-REPORT",
                  .file = file,
                  .line = 1 + std::count(old->cbegin(),
                                         old->cbegin() + (difference.first - old->begin()), '\n'),
                  .message = fmt::format(
                      "the file has \"{}\", the store gives \"{}\"",
                      line_at(*old, old->cbegin() + (difference.first - old->begin())),
                      line_at(text, text.cbegin() + (difference.second - text.begin())))});
  }
}

}  // namespace h3rt::lab
