#include <stdlib.h>  // mkdtemp

#include <algorithm>
#include <filesystem>
#include <set>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/imports/import.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/lab/scan.h"
#include "h3rt/lab/validate.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kMagic = "h3rt-lab-bundle/1";
constexpr int64_t kMostRawBytes = int64_t{64} << 20;  // of a blob

// A folder of its own that goes with it.
struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    std::error_code error;
    std::string name = fs::temp_directory_path(error).string() + "/h3rt-bundle-XXXXXX";
    if (!error && ::mkdtemp(name.data())) path = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// The regular files under a folder, relative and sorted. A link is refused: what it names is not in
// the folder.
absl::StatusOr<std::vector<std::string>> FilesUnder(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const fs::file_status status = at->symlink_status(error);
    if (error || fs::is_directory(status)) continue;
    if (!fs::is_regular_file(status)) {
      return InvalidArgument({.what = "no regular file", .got = at->path().string()});
    }
    files.push_back(at->path().lexically_relative(folder).generic_string());
  }
  if (error) return ErrnoStatus(error.value(), "read", folder);
  std::sort(files.begin(), files.end());
  return files;
}

// One line of findings for everything that a bundle can have wrong with it.
struct Refusal {
  std::string_view file;
  Findings& findings;
  bool refused = false;
  void Add(const std::string& message, const std::string& entry = "") {
    refused = true;
    findings.Add({.code = "E-BUNDLE",
                  .file = std::string(file),
                  .message = (entry.empty() ? "" : Printable(entry, 100) + ": ") + message});
  }
};

// "<sha256>.json" and "<sha256>.z": a name with a folder in it is no such name.
bool IsEntryName(const std::string& name) {
  const std::string ending = name.size() > 64 ? name.substr(64) : "";
  return IsDigest(name.substr(0, 64)) && (ending == ".json" || ending == ".z");
}

// Takes the entries apart. Every name is the digest of its bytes.
std::map<std::string, std::string_view> ReadEntries(std::string_view bytes, Refusal& refusal) {
  std::map<std::string, std::string_view> entries;
  std::string_view line;
  if (!TakeLine(bytes, line) || line != kMagic) {
    refusal.Add("its first line is not \"" + std::string(kMagic) + "\"");
    return entries;
  }
  Findings form;
  std::optional<Doc> index;
  if (TakeLine(bytes, line)) index = ParseDocument(line, refusal.file, 2, form);
  if (!index || !At(*index, "entries").is_array()) {
    refusal.Add(form.errors() > 0 ? form.Sorted()[0].message : "no index");
    return entries;
  }
  for (const Doc& entry : At(*index, "entries")) {
    const std::string name = TextAt(entry, "name");
    const int64_t size = IntAt(entry, "bytes", -1);
    if (!IsEntryName(name)) {
      refusal.Add("an entry is named by its digest, with .json or .z", name);
    } else if (size < 0 || static_cast<uint64_t>(size) > bytes.size()) {
      refusal.Add("the bytes end before it does", name);
      return entries;
    } else {
      const std::string_view part = bytes.substr(0, static_cast<size_t>(size));
      bytes.remove_prefix(part.size());
      const std::string digest = DigestOfText(part);
      if (digest != name.substr(0, 64) || digest != TextAt(entry, "sha256")) {
        refusal.Add("its bytes have the digest " + digest, name);
      } else if (!entries.emplace(name, part).second) {
        refusal.Add("twice", name);
      }
    }
  }
  if (!bytes.empty()) refusal.Add(std::to_string(bytes.size()) + " bytes after the last entry");
  return entries;
}

// An envelope with its form and its blobs, each of which must inflate to its size.
std::optional<NewEvidence> ReadPiece(const std::string& name, std::string_view text,
                                     const std::map<std::string, std::string_view>& entries,
                                     std::set<std::string>& used, Refusal& refusal) {
  Findings form;
  std::optional<Doc> envelope = ParseDocument(text, refusal.file, 1, form);
  if (envelope && CanonicalText(*envelope) != text) {
    refusal.Add("not canonical", name);
    return std::nullopt;
  }
  if (envelope) {
    CheckEvidenceForm({.digest = name.substr(0, 64), .file = std::string(name), .json = *envelope},
                      form);
  }
  if (!envelope || form.errors() > 0) {
    const Finding first = form.Sorted()[0];
    refusal.Add(first.code + " " + first.pointer + ": " + first.message, name);
    return std::nullopt;
  }
  NewEvidence piece{std::move(*envelope), {}};
  for (const Doc& blob : At(piece.envelope, "blobs")) {
    const auto stream = entries.find(TextAt(blob, "sha256") + ".z");
    const int64_t raw = IntAt(blob, "raw_bytes");
    if (stream == entries.end() ||
        stream->second.size() != static_cast<uint64_t>(IntAt(blob, "bytes"))) {
      refusal.Add("its blob " + TextAt(blob, "name") + " is not there", name);
    } else if (raw > kMostRawBytes || !Inflate(stream->second, static_cast<uint64_t>(raw)).ok()) {
      refusal.Add("its blob " + TextAt(blob, "name") + " does not inflate", name);
    } else {
      used.insert(stream->first);
      piece.blobs.emplace(TextAt(blob, "name"), stream->second);
    }
  }
  return piece;
}

bool Declares(const Experiment* experiment, const std::string& vid) {
  if (!experiment) return false;
  const auto same = [&](const auto& declared) { return vid == declared.vid; };
  return std::any_of(experiment->arms.begin(), experiment->arms.end(), same) ||
         std::any_of(experiment->probes.begin(), experiment->probes.end(), same);
}

bool HasVariant(const Doc& record, const std::string& vid) {
  const Doc& variants = At(record, "variants");
  return std::any_of(variants.begin(), variants.end(),
                     [&](const Doc& variant) { return TextAt(variant, "vid") == vid; });
}

bool Cites(const Doc& record, const std::string& digest) {
  const Doc& list = At(record, "evidence");
  return std::any_of(list.begin(), list.end(),
                     [&](const Doc& cited) { return TextAt(cited, "sha256") == digest; });
}

// What the evidence speaks of must be known here.
void CheckReferences(const NewEvidence& piece, const Registry& registry, const Log& log,
                     Refusal& refusal) {
  const std::string digest = DigestOf(piece.envelope);
  const std::string id = TextAt(piece.envelope, "experiment");
  const std::string vid = TextAt(piece.envelope, "vid");
  const Record* record = registry.Find(id);
  if (!record) return refusal.Add("of an unknown experiment, " + Printable(id, 80), digest);
  if (!vid.empty() && !HasVariant(record->json, vid) && !Declares(FindExperiment(id), vid)) {
    refusal.Add(id + " has no variant " + Printable(vid, 80), digest);
  }
  const Doc& plan = At(piece.envelope, "plan");
  if (plan.is_null()) return;
  const bool known = std::any_of(log.entries.begin(), log.entries.end(), [&](const LogEntry& e) {
    return e.seq() == IntAt(plan, "log_seq") && TextAt(e.json, "kind") == "plan" &&
           TextAt(e.json, "hash") == TextAt(plan, "entry_hash");
  });
  if (!known) refusal.Add("its plan is not in this log", digest);
}

void Cite(Doc& record, const NewEvidence& piece, const std::string& digest) {
  const Doc& vid = At(piece.envelope, "vid");
  const std::string kind = TextAt(piece.envelope, "kind");
  // A timing that was not planned may only screen, and so may a variant that is not the candidate.
  const Experiment* const experiment = FindExperiment(TextAt(piece.envelope, "experiment"));
  const bool variant = experiment != nullptr && experiment->arms.size() > 1 && vid.is_string() &&
                       vid != experiment->arms[1].vid;
  const bool screen =
      variant || (kind.rfind("timing_", 0) == 0 && At(piece.envelope, "plan").is_null());
  const bool reference = TextAt(piece.envelope, "origin") == "imported";
  record["evidence"].push_back({{"sha256", digest},
                                {"role", reference ? "reference"
                                         : screen  ? "screen"
                                                   : "result"},
                                {"vid", vid},
                                {"valid", true},
                                {"invalid_reason", nullptr},
                                {"invalid_log_seq", nullptr}});
  if (!vid.is_string() || HasVariant(record, vid.get<std::string>())) return;
  record["variants"].push_back(
      {{"vid", vid}, {"params", Doc::object()}, {"source_digest", nullptr}, {"note", nullptr}});
  Doc open = Doc::array();  // a gap that is filled is closed
  for (const Doc& gap : At(record, "missing")) {
    if (TextAt(gap, "pointer") != "/variants") open.push_back(gap);
  }
  record["missing"] = std::move(open);
}

// Under the writers' lock: the files, then the change of the records that do not cite them yet.
absl::StatusOr<Change> BuildImport(const Store& store, const std::vector<NewEvidence>& evidence,
                                   std::string_view file, const Registry& registry, const Log& log,
                                   Refusal& refusal, BundleResult& result) {
  for (const NewEvidence& piece : evidence) CheckReferences(piece, registry, log, refusal);
  if (refusal.refused) return DataLoss({.what = "bundle refused", .where = std::string(file)});
  Change change;
  change.entry = EmptyEntry("entry", "Evidence taken in");
  std::map<std::string, Doc> records;
  std::map<std::string, std::set<std::string>> kinds;
  for (const NewEvidence& piece : evidence) {
    H3RT_ASSIGN_OR_RETURN(const std::string digest, WriteEvidence(store, piece));
    const std::string id = TextAt(piece.envelope, "experiment");
    result.digests.push_back(digest);
    if (Cites(registry.Find(id)->json, digest)) {
      ++result.present;
      continue;
    }
    ++result.added;
    Doc& record = records.emplace(id, registry.Find(id)->json).first->second;
    Cite(record, piece, digest);
    kinds[id].insert(TextAt(piece.envelope, "kind"));
    change.entry["evidence"].push_back(digest);
  }
  for (const auto& [id, names] : kinds) {
    std::string text = id + ":";
    for (const std::string& kind : names) text += " " + kind;
    change.entry["actions"].push_back(text);
    result.experiments.push_back(id);
    change.records.push_back(records[id]);
  }
  return change;
}

Doc InventoryOf(const std::string& folder, const std::vector<std::string>& files,
                absl::Status& status) {
  Doc list = Doc::array();
  for (const std::string& path : files) {
    const std::string full = folder + "/" + path;
    const absl::StatusOr<std::string> digest = Sha256OfFile(full);
    std::error_code error;
    const auto bytes = fs::file_size(full, error);
    if (!digest.ok() || error) {
      status = digest.ok() ? ErrnoStatus(error.value(), "read", full) : digest.status();
      return list;
    }
    list.push_back({{"path", path}, {"bytes", bytes}, {"sha256", *digest}});
  }
  return {{"schema", "lab.inventory/1"}, {"files", list}};
}

}  // namespace

absl::StatusOr<std::string> PackBundle(const std::vector<NewEvidence>& evidence) {
  const TemporaryFolder folder;
  if (folder.path.empty()) return IoError({.what = "cannot make a temporary folder"});
  const Store packed{folder.path};
  for (const NewEvidence& piece : evidence) {
    H3RT_RETURN_IF_ERROR(WriteEvidence(packed, piece).status());
  }
  std::map<std::string, std::string> by_name;  // a blob of two experiments once
  if (!evidence.empty()) {
    H3RT_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesUnder(folder.path));
    for (const std::string& path : files) {
      H3RT_ASSIGN_OR_RETURN(by_name[fs::path(path).filename().string()],
                            ReadFile(packed.PathOf(path)));
    }
  }
  Doc entries = Doc::array();
  std::string bytes;
  for (const auto& [name, content] : by_name) {
    entries.push_back({{"name", name}, {"bytes", content.size()}, {"sha256", name.substr(0, 64)}});
    bytes += content;
  }
  return std::string(kMagic) + "\n" + CanonicalText({{"entries", entries}}) + "\n" + bytes;
}

absl::Status WriteBundle(const std::string& path, const std::vector<NewEvidence>& evidence) {
  H3RT_ASSIGN_OR_RETURN(const std::string bytes, PackBundle(evidence));
  return WriteFileAtomically(path, bytes);
}

std::optional<std::vector<NewEvidence>> ParseBundle(std::string_view bytes, std::string_view file,
                                                    Findings& findings) {
  Refusal refusal{file, findings};
  const std::map<std::string, std::string_view> entries = ReadEntries(bytes, refusal);
  std::vector<NewEvidence> evidence;
  std::set<std::string> used;
  for (const auto& [name, text] : entries) {
    if (name.back() != 'n') continue;
    used.insert(name);
    std::optional<NewEvidence> piece = ReadPiece(name, text, entries, used, refusal);
    if (piece) evidence.push_back(std::move(*piece));
  }
  for (const auto& [name, text] : entries) {
    if (!used.count(name)) refusal.Add("no evidence names it", name);
  }
  if (!refusal.refused && evidence.empty()) refusal.Add("no evidence in it");
  if (refusal.refused) return std::nullopt;
  return evidence;
}

absl::StatusOr<BundleResult> ImportBundle(const Store& store, std::string_view bytes,
                                          std::string_view file, Findings& findings,
                                          const std::string& now) {
  const auto refused = [&] {
    return DataLoss({.what = "bundle refused, nothing was imported", .where = std::string(file)});
  };
  const std::optional<std::vector<NewEvidence>> evidence = ParseBundle(bytes, file, findings);
  if (!evidence) return refused();
  Refusal refusal{file, findings};
  BundleResult result;
  // A second import takes no entry: nothing is new in it.
  Findings loading;
  const std::optional<Registry> registry = LoadRegistry(store, loading);
  const bool all_known =
      registry && std::all_of(evidence->begin(), evidence->end(), [&](const NewEvidence& piece) {
        const Record* record = registry->Find(TextAt(piece.envelope, "experiment"));
        return record && Cites(record->json, DigestOf(piece.envelope));
      });
  if (all_known) {
    for (const NewEvidence& piece : *evidence) {
      H3RT_ASSIGN_OR_RETURN(const std::string digest, WriteEvidence(store, piece));
      result.digests.push_back(digest);
      ++result.present;
    }
    return result;
  }
  const absl::StatusOr<int64_t> seq = Commit(
      store,
      [&](const Registry& present, const Log& log, int64_t) {
        return BuildImport(store, *evidence, file, present, log, refusal, result);
      },
      now);
  if (refusal.refused) return refused();
  if (!seq.ok()) return seq.status();
  result.log_seq = *seq;
  return result;
}

absl::StatusOr<int64_t> ImportInventory(const Store& store, const std::string& folder,
                                        const std::string& now) {
  H3RT_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesUnder(folder));
  if (files.empty()) return NotFound({.what = "no fixtures", .where = folder});
  absl::Status status;
  const Doc inventory = InventoryOf(folder, files, status);
  H3RT_RETURN_IF_ERROR(status);
  const std::string text = CanonicalText(inventory) + "\n";
  return Commit(
      store,
      [&](const Registry&, const Log&, int64_t) -> absl::StatusOr<Change> {
        std::error_code error;
        fs::create_directories(store.PathOf(kEvidenceFolder), error);
        H3RT_RETURN_IF_ERROR(WriteFileAtomically(store.PathOf(kInventoryFile), text));
        Change change;
        change.entry = EmptyEntry("import", "Inventory of the reference fixtures");
        change.entry["document"] = {{"file", kInventoryFile}, {"sha256", DigestOfText(text)}};
        return change;
      },
      now);
}

void VerifyInventory(const Store& store, const std::string& folder, Findings& findings) {
  const auto say = [&](const char* code, const std::string& message) {
    findings.Add({.code = code, .file = kInventoryFile, .message = message});
  };
  const absl::StatusOr<std::string> text = ReadFile(store.PathOf(kInventoryFile));
  if (!text.ok()) return say("E-IO", MessageOf(text.status()));
  const std::optional<Doc> inventory = ParseDocument(*text, kInventoryFile, 1, findings);
  if (!inventory) return;
  const absl::StatusOr<std::vector<std::string>> files = FilesUnder(folder);
  if (!files.ok()) return say("E-IO", MessageOf(files.status()));
  std::set<std::string> open(files->begin(), files->end());
  for (const Doc& entry : At(*inventory, "files")) {
    const std::string path = TextAt(entry, "path");
    if (open.erase(path) == 0) {
      say("E-ART-MISSING", Printable(path) + " is not in " + folder);
      continue;
    }
    const absl::StatusOr<std::string> digest = Sha256OfFile(folder + "/" + path);
    if (!digest.ok() || *digest != TextAt(entry, "sha256")) {
      say("E-ART-HASH", Printable(path) + ": expected " + TextAt(entry, "sha256") + ", found " +
                            (digest.ok() ? *digest : MessageOf(digest.status())));
    }
  }
  for (const std::string& path : open) say("E-ART-FLAG", Printable(path) + " is not in it");
}

}  // namespace h3rt::lab
