// The seed's page and log as records and entries of this project.
#include <algorithm>
#include <set>

#include "h3rt/imports/import.h"
#include "h3rt/lab/gate.h"
#include "h3rt/lab/lab.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/commit.h"

namespace h3rt::lab {
namespace {

absl::StatusOr<Doc> LoadInventory(const Store& store) {
  Findings findings;
  std::optional<Doc> out;
  if (const auto text = ReadText(store, kSeedInventoryFile, findings)) {
    out = ParseDocument(*text, kSeedInventoryFile, 1, findings);
  }
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  if (!out || TextAt(*out, "schema") != "lab.seed_inventory/1") {
    return InvalidArgument({.what = "inventory of the seed",
                            .got = out ? "schema " + At(*out, "schema").dump() : "nothing",
                            .wanted = "lab.seed_inventory/1",
                            .where = kSeedInventoryFile});
  }
  return *std::move(out);
}

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// What a gap of the page points to: a pointer, "skip" or "none".
std::string PointerOf(const Doc& inventory, const std::string& gap) {
  const std::string lower = Lower(gap);
  for (const Doc& rule : At(inventory, "gap_words")) {
    const bool sound =
        rule.is_array() && rule.size() == 2 && rule[0].is_string() && rule[1].is_string();
    if (sound && lower.find(rule[0].get<std::string>()) != std::string::npos) {
      return rule[1].get<std::string>();
    }
  }
  return "/source/digest";
}

// Fills missing[] and skipped[] of one record.
class Gaps {
 public:
  Gaps(Doc& record, bool imported) : record_(record), imported_(imported) {}

  void FromCell(const Doc& inventory, const std::string& cell, int64_t seq) {
    for (size_t at = 0; at <= cell.size();) {
      const size_t end = std::min(cell.find(',', at), cell.size());
      std::string gap = cell.substr(at, end - at);
      at = end + 1;
      gap.erase(0, gap.find_first_not_of(' '));
      if (gap.starts_with("and ")) gap.erase(0, 4);
      const std::string pointer = gap.empty() ? "none" : PointerOf(inventory, gap);
      if (pointer == "none") return;  // nothing is missing, with the reason
      if (pointer == "skip") {
        Skip(Lower(gap), seq);
      } else {
        Add(pointer, gap, Why(pointer));
      }
    }
  }

  // Every null that needs a word and has none yet.
  void Rest(bool family) {
    const char* const unknown = imported_ ? "unknown_historical" : "not_applicable";
    if (family) Default("/variants", "the members of the family", "not_enumerated");
    Default("/baseline", "what it is compared with", unknown);
    Default("/boundary", "a boundary that it crosses", "not_applicable");
    Default("/scope/eligible", "where it may be selected", "not_applicable");
    Default("/source/commit", "the commit of the origin's source", unknown);
    if (Why("/source/digest") == "unrecoverable") {
      Default("/source/digest", "the candidate's source", "unrecoverable");
    }
    Default("/source/patch", "the origin's patch", imported_ ? "not_recorded" : "not_applicable");
  }

 private:
  std::string Why(const std::string& pointer) const {
    if (pointer == "/variants") return "not_enumerated";
    if (pointer == "/scope/eligible") return "not_recorded";
    if (pointer == "/source/commit") return "unknown_historical";
    if (pointer != "/source/digest") return "not_run";
    return TextAt(At(record_, "source"), "state") == "unrecoverable" ? "unrecoverable" : "not_run";
  }
  void Add(const std::string& pointer, const std::string& what, const std::string& why) {
    record_["missing"].push_back({{"blocker", why != "not_applicable"},
                                  {"note", nullptr},
                                  {"pointer", pointer},
                                  {"what", what},
                                  {"why", why}});
  }
  void Default(const std::string& pointer, const char* what, const std::string& why) {
    const bool filled = pointer == "/boundary" && !At(record_, "boundary").is_null();
    for (const Doc& gap : record_["missing"]) {
      if (TextAt(gap, "pointer") == pointer) return;
    }
    if (!filled) Add(pointer, what, why);
  }
  // The gate before the first one that was left out is why it was.
  void Skip(const std::string& gap, int64_t seq) {
    std::string because;
    for (size_t i = 1; i < std::size(kGates); ++i) {
      if (gap.find(kGates[i]) == std::string::npos) continue;
      if (because.empty()) because = kGates[i - 1];
      record_["skipped"].push_back({{"because_evidence", nullptr},
                                    {"because_gate", because},
                                    {"gate", kGates[i]},
                                    {"log_seq", seq}});
    }
  }

  Doc& record_;
  bool imported_;
};

// A record from the inventory's words and, where it has one, the page's row.
Doc BuildRecord(const Doc& inventory, const std::string& id, const SeedPage& page,
                const SeedRow* row, int64_t seq) {
  const Doc& words = At(At(inventory, "records"), id);
  const auto list = [&](const char* name) {
    const Doc& value = At(words, name);
    return value.is_array() ? value : Doc::array();
  };
  Doc record = EmptyRecord(id, seq);
  record["name"] = row != nullptr ? row->name : TextAt(words, "name");
  record["group"] = TextAt(words, "group");
  record["kind"] = TextAt(words, "kind");
  record["boundary"] = At(words, "boundary");
  record["imported_status"] = row != nullptr ? Doc(row->status) : Doc();
  record["decision"]["text"] = TextAt(words, "decision");
  record["scope"]["archs"] = list("archs");
  record["scope"]["non_claims"] = list("non_claims");
  record["source"]["state"] = TextAt(words, "source_state", "not_started");
  record["retention"]["purpose"] = list("purpose");
  if (At(words, "relations").is_object()) record["relations"].update(At(words, "relations"));
  for (const Doc& variant : list("variants")) {
    record["variants"].push_back({{"note", At(variant, "note")},
                                  {"params", Doc::object()},
                                  {"source_digest", nullptr},
                                  {"vid", At(variant, "vid")}});
  }
  Gaps gaps(record, row != nullptr);
  if (row != nullptr) {
    record["provenance"] = {
        {"from", {{"document", page.file}, {"line", row->line}, {"sha256", page.sha256}}},
        {"origin", "imported"}};
    gaps.FromCell(inventory, row->gaps, seq);
  }
  gaps.Rest(BoolAt(words, "family"));
  RefreshDigest(record);
  return record;
}

absl::StatusOr<Doc> PolicyOf(const Store& store) {
  Findings findings;
  std::optional<Doc> policy = LoadPolicy(store, findings);
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  if (!policy) return NotFound({.what = "no policy", .where = kPolicyFile});
  return *std::move(policy);
}

// The records of `ids` that the registry does not have, checked. `rows` gives the row of an id.
absl::StatusOr<std::vector<Doc>> NewRecords(const Store& store, const Doc& inventory,
                                            const SeedPage& page, bool of_page,
                                            const Registry& registry, int64_t seq) {
  H3RT_ASSIGN_OR_RETURN(const Doc policy, PolicyOf(store));
  std::vector<Doc> records;
  std::set<std::string> rows;
  for (const SeedRow& row : page.rows) {
    rows.insert(row.id);
    if (!At(At(inventory, "records"), row.id).is_object()) {
      return InvalidArgument(
          {.what = "row of the page",
           .got = row.id,
           .wanted = std::string("an id that has words in ") + kSeedInventoryFile,
           .where = page.file + ":" + std::to_string(row.line)});
    }
    if (!of_page || registry.Find(row.id) != nullptr) continue;
    records.push_back(BuildRecord(inventory, row.id, page, &row, seq));
  }
  for (const auto& [id, words] : At(inventory, "records").items()) {
    if (of_page || rows.count(id) > 0 || registry.Find(id) != nullptr) continue;
    records.push_back(BuildRecord(inventory, id, page, nullptr, seq));
  }
  Findings findings;
  for (const Doc& record : records) {
    ValidateRecord(record, policy, kSeedInventoryFile, 0, findings);
  }
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  return records;
}

Doc PageEntry(const SeedPage& page, size_t records) {
  Doc entry = EmptyEntry("import", "Registry page " + page.file);
  entry["document"] = {{"counted", page.counted},  {"file", page.file},
                       {"printed", page.printed},  {"printed_total", page.printed_total},
                       {"rows", page.rows.size()}, {"sha256", page.sha256}};
  entry["actions"] = Doc::array(
      {"Took over " + std::to_string(records) + " records with their status as imported_status.",
       "Split their gaps into missing[] entries, and deliberate skips into skipped[]."});
  entry["decision"] =
      "Imported statuses say what the origin decided. The status of each record here starts as "
      "incomplete and moves only on evidence made by this project.";
  entry["not_done"] = Doc::array({"No experiment was run, and no source was taken over."});
  return entry;
}

Doc ExtraEntry() {
  Doc entry = EmptyEntry("entry", "Records for what the imported documents name without a row");
  entry["actions"] =
      Doc::array({"Added the records that the imported documents speak of and the "
                  "page has no row for, and the experiments of the compiler."});
  entry["decision"] = "A complete registry names them, also while nothing about them was run.";
  entry["status"] = "incomplete";
  return entry;
}

// The entry that took over a document's line (0: any line); 0 when none did.
int64_t SeqOfImport(const Log& log, const std::string& sha256, int64_t line) {
  for (const LogEntry& entry : log.entries) {
    const Doc& document = At(entry.json, "document");
    const bool same =
        TextAt(entry.json, "kind") == "import" && TextAt(document, "sha256") == sha256;
    if (same && (line == 0 || IntAt(document, "line") == line)) return entry.seq();
  }
  return 0;
}

struct SeedDocument {
  std::string file;
  std::string sha256;
  Doc inventory;
};

Doc LogEntryOf(const SeedDocument& document, const SeedEntry& seed) {
  Doc entry = EmptyEntry("import", (seed.date.empty() ? "" : seed.date + ": ") + seed.title);
  if (!seed.status.empty()) entry["status"] = seed.status;
  entry["document"] = {{"date", seed.date.empty() ? Doc() : Doc(seed.date)},
                       {"file", document.file},
                       {"line", seed.line},
                       {"records", Doc::array()},
                       {"sha256", document.sha256},
                       {"text", Doc::array()}};
  for (const Doc& words : At(document.inventory, "log")) {
    if (TextAt(words, "title") != seed.title) continue;
    entry["document"]["records"] = At(words, "records");
    entry["projections"] = At(words, "projections");
  }
  bool actions = false;
  for (const std::string& paragraph : seed.paragraphs) {
    const auto take = [&](std::string_view label, const char* field) {
      if (!paragraph.starts_with(label)) return false;
      entry[field] = paragraph.substr(label.size());
      return true;
    };
    if (take("Decision: ", "decision") || take("Hypothesis: ", "hypothesis")) {
      actions = false;
    } else if (paragraph == "Actions:") {
      actions = true;
    } else if (actions) {
      entry["actions"].push_back(paragraph);
    } else {
      std::string text = paragraph;  // documents hold no tabs
      for (size_t tab; (tab = text.find('\t')) != std::string::npos;) text.replace(tab, 1, " | ");
      entry["document"]["text"].push_back(text);
    }
  }
  return entry;
}

const Doc* ClosedWork(const Doc& inventory, std::string_view work) {
  for (const Doc& closed : At(inventory, "closed")) {
    if (TextAt(closed, "work") == work) return &closed;
  }
  return nullptr;
}

absl::StatusOr<Change> CloseWork(const SeedDocument& document, const Doc& words,
                                 const Registry& registry, int64_t seq) {
  H3RT_ASSIGN_OR_RETURN(const Record* record, RecordOf(registry, TextAt(words, "id")));
  Change change{.entry = EmptyEntry("close", TextAt(words, "work")), .records = {record->json}};
  change.records[0]["closed"] = {{"candidate_digest", nullptr},
                                 {"log_seq", seq},
                                 {"reopen",
                                  {{"auto", At(words, "auto")},
                                   {"conditions", At(words, "conditions")},
                                   {"mode", TextAt(words, "mode")}}},
                                 {"reuse_only_in", At(words, "reuse_only_in")},
                                 {"rule", TextAt(words, "rule")}};
  change.entry["decision"] = TextAt(words, "decision");
  change.entry["document"] = {{"file", document.file}, {"sha256", document.sha256}};
  return change;
}

// The rows of a table of closed work: the name, which is what stands before the first tab.
std::vector<std::string> WorkOf(const SeedEntry& entry) {
  std::vector<std::string> out;
  for (const std::string& paragraph : entry.paragraphs) {
    const size_t tab = paragraph.find('\t');
    if (tab != std::string::npos) out.push_back(paragraph.substr(0, tab));
  }
  if (!out.empty()) out.erase(out.begin());  // the heads
  return out;
}

}  // namespace

absl::StatusOr<int64_t> ImportSeedPage(const Store& store, const SeedPage& page,
                                       const std::string& now) {
  if (page.rows.empty()) {
    return InvalidArgument({.what = "registry page", .got = "no rows", .where = page.file});
  }
  H3RT_ASSIGN_OR_RETURN(const Doc inventory, LoadInventory(store));
  int64_t last = 0;
  for (const bool of_page : {true, false}) {
    bool nothing = false;
    const absl::StatusOr<int64_t> seq = Commit(
        store,
        [&](const Registry& registry, const Log& log, int64_t next) -> absl::StatusOr<Change> {
          Change change;
          H3RT_ASSIGN_OR_RETURN(change.records,
                                NewRecords(store, inventory, page, of_page, registry, next));
          change.entry = of_page ? PageEntry(page, change.records.size()) : ExtraEntry();
          nothing = change.records.empty();
          if (nothing) last = std::max(last, SeqOfImport(log, page.sha256, 0));
          if (nothing) return absl::AlreadyExistsError("nothing new");  // writes nothing
          return change;
        },
        now);
    if (!seq.ok() && !nothing) return seq.status();
    if (seq.ok()) last = *seq;
  }
  return last;
}

absl::StatusOr<int64_t> ImportSeedLog(const Store& store, std::string_view text,
                                      std::string_view file, const std::string& now) {
  Findings findings;
  const std::vector<SeedEntry> entries = ParseSeedLog(text, file, findings);
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  SeedDocument document{.file = std::string(file), .sha256 = DigestOfText(text), .inventory = {}};
  H3RT_ASSIGN_OR_RETURN(document.inventory, LoadInventory(store));
  // What could be refused is refused before anything is written.
  H3RT_ASSIGN_OR_RETURN(const Doc policy, PolicyOf(store));
  const std::optional<Registry> registry = LoadRegistry(store, findings);
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  std::vector<const Doc*> works;
  for (const SeedEntry& entry : entries) {
    for (const std::string& work : WorkOf(entry)) {
      works.push_back(ClosedWork(document.inventory, work));
      if (works.back() == nullptr) {
        return InvalidArgument({.what = "closed work",
                                .got = work,
                                .wanted = std::string("a row of ") + kSeedInventoryFile});
      }
      H3RT_ASSIGN_OR_RETURN(const Change change, CloseWork(document, *works.back(), *registry, 1));
      ValidateRecord(change.records[0], policy, kSeedInventoryFile, 0, findings);
    }
  }
  H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
  H3RT_ASSIGN_OR_RETURN(const Log before, LoadSoundLog(store, false));
  auto last = static_cast<int64_t>(before.entries.size());
  for (const SeedEntry& entry : entries) {
    const bool wanted = !entry.date.empty() || !WorkOf(entry).empty();
    if (!wanted || SeqOfImport(before, document.sha256, entry.line) > 0) continue;
    const auto build = [&](const Registry&, const Log&, int64_t) {
      return Change{.entry = LogEntryOf(document, entry)};
    };
    H3RT_ASSIGN_OR_RETURN(last, Commit(store, build, now));
  }
  for (const Doc* words : works) {
    if (!At(registry->Find(TextAt(*words, "id"))->json, "closed").is_null()) continue;
    const auto build = [&](const Registry& current, const Log&, int64_t seq) {
      return CloseWork(document, *words, current, seq);
    };
    H3RT_ASSIGN_OR_RETURN(last, Commit(store, build, now));
  }
  return last;
}

}  // namespace h3rt::lab
