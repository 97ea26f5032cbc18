#include "h3rt/ledger/finding.h"

#include <algorithm>
#include <tuple>

#include "h3rt/base/check.h"
#include "h3rt/ledger/document.h"

namespace h3rt::lab {
namespace {

constexpr ExitCode kNo = ExitCode::kAnswerIsNo;
constexpr ExitCode kLost = ExitCode::kDataLoss;

constexpr CodeEntry Error(const char* code, const char* mend, ExitCode exit_code = kNo) {
  return {code, Severity::kError, exit_code, false, mend};
}
constexpr CodeEntry Warning(const char* code, const char* mend, bool strict_error = false) {
  return {code, Severity::kWarning, kNo, strict_error, mend};
}

constexpr CodeEntry kCodes[] = {
    // Files and JSON.
    Error("E-IO", "restore the file, or run where it is", ExitCode::kNotFoundOrIo),
    Error("E-JSON", "restore the document from git; it is not accepted in part"),
    Error("E-JSON-ENC", "write UTF-8 without BOM, lone surrogates and control characters"),
    Error("E-JSON-DUPKEY", "keep one of the two"),
    Error("E-JSON-LIMIT", "split it: nesting to 64, strings to 1 MiB, files to 1 GiB"),
    Error("E-JSON-NUM", "write an integer within +-(2^53 - 1) in a smaller unit"),
    Error("E-CANON", "write it with `h3rt lab`: sorted keys, no space, a record a line"),
    Error("E-EOL", "set `* text eol=lf` in .gitattributes and check out again"),
    Error("E-MERGE", "resolve the conflict: keep one side, then `h3rt lab validate`"),
    // The form of documents.
    Error("E-FIELD-UNKNOWN", "remove the field, or spell it as the schema does"),
    Error("E-FIELD-MISSING", "add the field; null with a missing[] entry when it is unknown"),
    Error("E-TYPE", "write the type and range that the schema names"),
    Error("E-ENUM", "write one of the allowed words exactly"),
    Error("E-STATUS-ENUM", "write one of the seven statuses exactly"),
    Error("E-PLACEHOLDER", "use null and a missing[] entry"),
    Error("E-NULL", "add a missing[] entry with this pointer, or fill the field"),
    Error("E-MISSING-STALE", "remove the entry: the field it names is filled or not there"),
    Error("E-RULE", "give what this kind or status asks for"),
    Error("E-POLICY", "mend research/policy.json, then `h3rt lab gate --reevaluate`"),
    Error("E-DIGEST", "change records with `h3rt lab set`, never by hand"),
    Error("E-ORDER", "sort the records by id"),
    // Records among each other.
    Error("E-ID-DUP", "an id is unique for ever: rename one"),
    Error("E-ID-REUSE", "a retired id stays retired: take another"),
    Warning("W-ID-NEAR", "rename one, or make sure that both are meant"),
    Error("E-REQ-MISSING", "import the record, even when nothing can be mapped to it"),
    Error("E-REL-DANGLING", "name a record that exists"),
    Error("E-REL-CYCLE", "cut the circle"),
    Error("E-REL-ONESIDED", "write supersedes and superseded_by on both sides"),
    Error("E-REL-SELF", "a record is in no relation with itself"),
    Warning("W-SHARED-EVIDENCE", "set duplicate_of or shares_evidence_with on one of them"),
    Error("E-CLOSED", "name the log entry that closed it and what would reopen it"),
    // Artifacts.
    Error("E-PATH", "name a regular file inside the repository by its relative path"),
    Error("E-ART-MISSING", "restore the file or set exists to false"),
    Error("E-ART-FLAG", "set exists to true, with size and hash"),
    Error("E-ART-HASH", "restore the file: its bytes are not those that were recorded", kLost),
    Error("E-ART-LFS", "fetch the file itself: this is a Git LFS pointer"),
    // Evidence.
    Error("E-EV-NAME", "restore the file from git: evidence is immutable", kLost),
    Error("E-EV-REF", "name evidence, experiment, variant, workload and plan that exist"),
    Error("E-EV-SIZE", "pack samples and drop raw logs: benchmarks/ stays under 8 MiB"),
    Error("E-EV-FORM", "run the experiment again with this version of the laboratory"),
    Error("E-SAMPLES", "restore the samples from git, or run the experiment again"),
    Error("E-EV-RECOMPUTE", "derived numbers come from the samples: run the experiment again"),
    Error("E-IMPOSSIBLE", "find what was not run: no kernel is faster than memory or arithmetic"),
    Warning("W-EXCESS", "check by hand what was timed before believing it"),
    Error("E-PAIR-MISMATCH", "run both arms with the same inputs, class, batch and mode"),
    Error("E-PROCESS", "run each process afresh"),
    Warning("W-TIME", "check the clock of the machine"),
    Error("E-TIME", "check the clock of the machine; times neither run backwards nor ahead"),
    Error("E-AUDIT-INPUT", "rotate the inputs: one repeated input ran faster"),
    Error("E-AUDIT-SEED", "the timing depends on the seed: find out why"),
    Error("E-AUDIT-OUTPUT", "the timed call did not compute the result"),
    Error("E-AUDIT-MUTATED", "the timed call wrote its inputs"),
    Error("E-AUDIT-POISON", "the timed call left outputs unwritten"),
    Error("E-AUDIT-STREAM", "work ran outside the timed stream"),
    Error("E-AUDIT-REPLAY", "a stored result was replayed: compute it"),
    Error("E-PARITY-EMPTY", "compare something: zero cases or elements are no pass"),
    Error("E-REF-UNSTABLE", "mend the reference first: it does not repeat itself"),
    Error("E-SAN-EMPTY", "run the sanitizer over launches of the kernel in question"),
    Error("E-SAN-CONTROL", "the sanitizer must find the planted fault in the same setting"),
    Error("E-NCU-NUM", "export the profile with plain or comma-grouped numbers"),
    Error("E-RES-MISSING", "compile with --resource-usage and keep the whole log"),
    Warning("W-RES-HINT", "look at the launch bounds: ptxas ignored a hint"),
    // Statuses and gates.
    Error("E-STATUS-EVIDENCE", "`h3rt lab show ID --why` names what is missing"),
    Warning("W-UNDERCLAIM", "set the stronger status or log why not"),
    Error("E-DISPATCH", "regenerate with `h3rt lab report`: accepted records alone are selected"),
    Warning("W-STALE", "run the gates again: accepted work rests on changed sources", true),
    Warning("W-AGED", "run the experiment again when the record matters"),
    Error("E-ORIGIN", "cite evidence that was measured or compiled here"),
    Warning("W-NUMBER", "cite the number as {ev:DIGEST/pointer}", true),
    Error("E-CLAIM", "cite current evidence of this repository, or drop the claim"),
    // The log.
    Error("E-LOG-COVER", "change records with `h3rt lab`, which writes the log entry too"),
    Error("E-LOG-CHAIN", "restore the log from git: lines are never edited", kLost),
    Error("E-LOG-CUT", "restore the log from git: lines are never removed", kLost),
    Error("E-LOG-TORN", "run `h3rt lab log repair`"),
    Error("E-LOG-FORM", "restore the entry from git, or append a correction"),
    // Pages and what is imported.
    Error("E-REPORT", "run `h3rt lab report`"),
    Error("E-TOTALS", "the printed totals do not count the rows: correct the page"),
    Error("E-SEED-FORM", "write the row as the page's table has it"),
    Warning("W-SEED-PATH", "name a path that a machine can resolve"),
    Error("E-BUNDLE", "pack the bundle again; nothing of it was imported", kLost),
};

// Control bytes and bytes that are no UTF-8 as \xNN; at most 1,000 bytes.
std::string OneLine(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  constexpr size_t kMost = 1000;
  std::string out;
  while (!text.empty() && out.size() < kMost) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const size_t step = Utf8Step(text);
    if (step == 0 || byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      text.remove_prefix(1);
    } else {
      out += text.substr(0, step);
      text.remove_prefix(step);
    }
  }
  return text.empty() ? out : out + "...";
}

int Gravity(ExitCode code) {
  return code == kLost ? 3 : code == ExitCode::kNotFoundOrIo ? 2 : code == kNo ? 1 : 0;
}

}  // namespace

std::span<const CodeEntry> CodeTable() { return kCodes; }

const CodeEntry* FindCode(std::string_view code) {
  for (const CodeEntry& entry : kCodes) {
    if (code == entry.code) return &entry;
  }
  return nullptr;
}

void Findings::Add(Finding finding) {
  const CodeEntry* entry = FindCode(finding.code);
  H3RT_CHECK(entry != nullptr);
  if (finding.code == muted_) return;
  const bool error = entry->severity == Severity::kError || (strict_ && entry->strict_error);
  int64_t& count = error ? errors_ : warnings_;
  ++count;
  ++counts_[finding.code];
  if (error && Gravity(entry->exit_code) > Gravity(exit_code_)) exit_code_ = entry->exit_code;
  if (static_cast<uint64_t>(count) > cap_) return;
  finding.file = OneLine(finding.file);
  finding.pointer = OneLine(finding.pointer);
  finding.message = OneLine(finding.message);
  kept_.push_back(std::move(finding));
}

std::vector<Finding> Findings::Sorted() const {
  std::vector<Finding> out = kept_;
  std::stable_sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.file, a.line, a.column, a.pointer, a.code, a.message) <
           std::tie(b.file, b.line, b.column, b.pointer, b.code, b.message);
  });
  return out;
}

std::string Findings::ToText(const Finding& finding) {
  std::string out = finding.code + " " + finding.file;
  if (finding.line > 0) out += ":" + std::to_string(finding.line);
  if (finding.line > 0 && finding.column > 0) out += ":" + std::to_string(finding.column);
  if (!finding.pointer.empty()) out += " " + finding.pointer;
  out += ": " + finding.message;
  const CodeEntry* entry = FindCode(finding.code);
  return entry == nullptr ? out : out + "; mend: " + entry->mend;
}

Json Findings::ToJson() const {
  Json list = Json::array();
  for (const Finding& finding : Sorted()) {
    const CodeEntry* entry = FindCode(finding.code);
    const bool error = entry->severity == Severity::kError || (strict_ && entry->strict_error);
    list.push_back({{"code", finding.code},
                    {"severity", error ? "error" : "warning"},
                    {"file", finding.file},
                    {"line", finding.line},
                    {"column", finding.column},
                    {"pointer", finding.pointer},
                    {"message", finding.message},
                    {"mend", entry->mend}});
  }
  return {{"errors", errors_}, {"warnings", warnings_}, {"findings", list}};
}

}  // namespace h3rt::lab
