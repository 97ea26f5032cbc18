// h3rt lab: import, log, verify, diff.
#include <fmt/format.h>
#include <stdlib.h>  // mkdtemp

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "apps/h3rt/lab.h"
#include "h3rt/base/file.h"
#include "h3rt/base/process.h"
#include "h3rt/imports/import.h"
#include "h3rt/lab/validate.h"
#include "h3rt/pages/view.h"

namespace h3rt::cli {
namespace {

struct ImportOptions {
  std::string form;
  std::string file;
  std::string experiment;
  std::string rule;
  std::string boundary;
  bool check = false;
};

// Parses a registry page and says what does not agree. With --check that is all: exit 1 when there
// are errors, as any check.
absl::StatusOr<Outcome> ImportSeedPage(const LabOptions& options, const Invocation& invocation,
                                       const ImportOptions& import) {
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(import.file, 16 << 20));
  const std::string name = std::filesystem::path(import.file).filename().string();
  lab::Findings findings;
  const lab::SeedPage page = lab::ParseSeedPage(text, name, findings);
  const std::string summary = fmt::format("{}: {} rows; the page prints a total of {}", name,
                                          page.rows.size(), page.printed_total);
  if (import.check) return OutcomeOf(findings, options, invocation, summary);
  H3RT_ASSIGN_OR_RETURN(const int64_t seq, lab::ImportSeedPage(options.store(), page, options.now));
  Say(options, invocation, fmt::format("{}\nimported with log entry {}\n", summary, seq));
  return Outcome{.json = {{"log_seq", seq}, {"rows", page.rows.size()}}};
}

absl::StatusOr<Outcome> ImportBundleFile(const LabOptions& options, const Invocation& invocation,
                                         const ImportOptions& import) {
  H3RT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(import.file, 256 << 20));
  lab::Findings findings;
  const std::string name = std::filesystem::path(import.file).filename().string();
  if (import.check) {
    (void)lab::ParseBundle(bytes, name, findings);
    return OutcomeOf(findings, options, invocation, "bundle");
  }
  const absl::StatusOr<lab::BundleResult> result =
      lab::ImportBundle(options.store(), bytes, name, findings, options.now);
  if (findings.errors() > 0) return OutcomeOf(findings, options, invocation, "bundle");
  H3RT_RETURN_IF_ERROR(result.status());
  Say(options, invocation,
      fmt::format("{}: {} pieces of evidence added, {} were there\n", name, result->added,
                  result->present));
  return Outcome{.json = {{"added", result->added},
                          {"digests", result->digests},
                          {"present", result->present}}};
}

absl::StatusOr<Outcome> Import(const LabOptions& options, const Invocation& invocation,
                               const ImportOptions& import) {
  if (import.form == "seed-md") return ImportSeedPage(options, invocation, import);
  if (import.form == "bundle") return ImportBundleFile(options, invocation, import);
  lab::Findings findings;
  if (import.check && import.form == "inventory") {
    lab::VerifyInventory(options.store(), import.file, findings);
    return OutcomeOf(findings, options, invocation, import.form);
  }
  if (import.check && import.form != "seed-log") {
    return InvalidArgument({.what = "--check",
                            .got = "form " + import.form,
                            .wanted = "bundle, seed-md, seed-log or inventory"});
  }
  absl::StatusOr<int64_t> seq(-1);
  if (import.form == "seed-log") {
    H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(import.file, 16 << 20));
    const std::string name = std::filesystem::path(import.file).filename().string();
    if (import.check) {
      (void)lab::ParseSeedLog(text, name, findings);
      return OutcomeOf(findings, options, invocation, name);
    }
    seq = lab::ImportSeedLog(options.store(), text, name, options.now);
  } else if (import.form == "inventory") {
    seq = lab::ImportInventory(options.store(), import.file, options.now);
  } else if (import.form == "fixture") {
    seq =
        lab::ImportFixture(options.store(), import.file, import.experiment, findings, options.now);
  } else if (import.form == "inspection") {
    seq = lab::ImportInspection(options.store(),
                                {import.file, import.experiment, import.rule, import.boundary},
                                findings, options.now);
  } else {
    seq = lab::ImportLogFile(options.store(), import.form, import.file, import.experiment, findings,
                             options.now);
  }
  if (findings.errors() > 0) return OutcomeOf(findings, options, invocation, import.form);
  H3RT_RETURN_IF_ERROR(seq.status());
  Say(options, invocation, fmt::format("imported with log entry {}\n", *seq));
  return Outcome{.json = {{"log_seq", *seq}}};
}

// The HEAD of a file, or of a revision of the repository.
absl::StatusOr<std::string> HeadText(const LabOptions& options, const std::string& against) {
  if (std::filesystem::exists(against)) return ReadFile(against, 1 << 16);
  H3RT_ASSIGN_OR_RETURN(const ProgramResult git,
                        RunProgram({"git", "-C", options.root, "show",
                                    against + ":./" + std::string(lab::kHeadFile)}));
  if (git.ok()) return git.out;
  return NotFound({.what = "neither a HEAD file nor a revision with one",
                   .got = against,
                   .where = git.err.substr(0, git.err.find('\n'))});
}

absl::StatusOr<Outcome> LogVerify(const LabOptions& options, const Invocation& invocation,
                                  const std::string& against) {
  lab::Findings findings;
  const std::optional<lab::Log> log = lab::LoadLog(options.store(), findings);
  if (log && !against.empty()) {
    H3RT_ASSIGN_OR_RETURN(const std::string text, HeadText(options, against));
    const std::optional<lab::Doc> head =
        lab::ParseDocument(text.substr(0, text.find('\n')), against, 1, findings);
    if (head) lab::VerifyAgainst(*log, *head, against, findings);
  }
  return OutcomeOf(findings, options, invocation,
                   fmt::format("log: {} entries, head {}", log ? log->entries.size() : 0,
                               log ? log->head_hash.substr(0, 16) : "none"));
}

absl::StatusOr<Outcome> LogShow(const LabOptions& options, const Invocation& invocation,
                                int64_t last) {
  H3RT_ASSIGN_OR_RETURN(const lab::Lab laboratory, lab::OpenLab(options.store()));
  const std::vector<lab::LogEntry>& entries = laboratory.log.entries;
  std::string text;
  Json array = Json::array();
  const size_t first = entries.size() - std::min(entries.size(), static_cast<size_t>(last));
  for (size_t i = first; i < entries.size(); ++i) {
    const lab::Doc& entry = entries[i].json;
    text += fmt::format("{:>4} {} {:<10} {}\n", entries[i].seq(),
                        lab::TextAt(entry, "ts").substr(0, 19), lab::TextAt(entry, "kind"),
                        lab::TextAt(entry, "title"));
    if (!lab::TextAt(entry, "decision").empty()) {
      text += "     " + lab::TextAt(entry, "decision") + "\n";
    }
    array.push_back(ToJson(entry));
  }
  Say(options, invocation, text);
  return Outcome{.json = {{"entries", std::move(array)}}};
}

absl::StatusOr<Outcome> LogAppend(const LabOptions& options, const Invocation& invocation,
                                  const std::string& file) {
  std::string text;
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    H3RT_ASSIGN_OR_RETURN(text, ReadFile(file, 1 << 20));
  }
  lab::Findings findings;
  const std::optional<lab::Doc> fields = lab::ParseDocument(text, file, 1, findings);
  if (!fields) return OutcomeOf(findings, options, invocation, "log append");
  H3RT_ASSIGN_OR_RETURN(const int64_t seq, lab::AppendEntry(options.store(), *fields, options.now));
  Say(options, invocation, fmt::format("log entry {}\n", seq));
  return Outcome{.json = {{"log_seq", seq}}};
}

// An anchor names the commit that holds the log as it is now, so that a cut tail shows later.
absl::StatusOr<Outcome> LogAnchor(const LabOptions& options, const Invocation& invocation) {
  H3RT_ASSIGN_OR_RETURN(const ProgramResult git,
                        RunProgram({"git", "-C", options.root, "rev-parse", "--verify", "HEAD"}));
  if (!git.ok()) {
    return FailedPrecondition({.what = "an anchor needs a repository with a commit",
                               .got = git.err.substr(0, git.err.find('\n'))});
  }
  const std::string commit = git.out.substr(0, git.out.find('\n'));
  H3RT_ASSIGN_OR_RETURN(
      const int64_t seq,
      lab::AppendEntry(options.store(),
                       {{"anchor", commit}, {"kind", "anchor"}, {"title", "Anchor"}}, options.now));
  Say(options, invocation, fmt::format("anchored to {}: log entry {}\n", commit, seq));
  return Outcome{.json = {{"anchor", commit}, {"log_seq", seq}}};
}

struct VerifyOptions {
  bool recompute = false;
  std::string inventory;
  std::vector<std::string> ids;
};

absl::StatusOr<Outcome> Verify(const LabOptions& options, const Invocation& invocation,
                               const VerifyOptions& verify) {
  const lab::Store store = options.store();
  lab::Findings findings;
  if (!verify.inventory.empty()) lab::VerifyInventory(store, verify.inventory, findings);
  int64_t pieces = 0;
  for (const auto& [digest, evidence] : lab::LoadEvidence(store, findings)) {
    const std::string id = lab::TextAt(evidence.json, "experiment");
    if (!verify.ids.empty() &&
        std::find(verify.ids.begin(), verify.ids.end(), id) == verify.ids.end()) {
      continue;
    }
    ++pieces;
    for (const lab::Doc& blob : lab::At(evidence.json, "blobs")) {
      (void)lab::ReadBlob(store, evidence, lab::TextAt(blob, "name"), findings);
    }
    if (verify.recompute) lab::RecomputeEvidence(store, evidence, findings);
  }
  Outcome outcome = OutcomeOf(findings, options, invocation,
                              fmt::format("verify: {} pieces of evidence{}", pieces,
                                          verify.recompute ? ", recomputed" : ""));
  outcome.json["evidence"] = pieces;
  if (pieces == 0 && verify.inventory.empty() && outcome.code == ExitCode::kDone) {
    std::fprintf(stderr, "h3rt: there is no evidence to verify\n");
    outcome.code = ExitCode::kNothingCompared;
  }
  return outcome;
}

// A folder as it is; a revision of the repository in a temporary folder, which `keep` removes.
struct Side {
  lab::Store store;
  std::string temporary;
  ~Side() {
    std::error_code ignored;
    if (!temporary.empty()) std::filesystem::remove_all(temporary, ignored);
  }
};

absl::Status OpenSide(const LabOptions& options, const std::string& name, Side& side) {
  if (std::filesystem::is_directory(name)) {
    side.store.root = name;
    return absl::OkStatus();
  }
  std::string folder = (std::filesystem::temp_directory_path() / "h3rt-diff-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return IoError({.what = "cannot make a temporary folder", .where = folder});
  }
  side.temporary = folder;
  side.store.root = folder;
  const std::string archive = folder + "/side.tar";
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {"git", "-C", options.root, "archive", "--format=tar", "--output=" + archive,
            name + "^{tree}", "research", "benchmarks"},
           {"tar", "-xf", archive, "-C", folder}}) {
    H3RT_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(argv));
    if (result.ok()) continue;
    return NotFound({.what = "neither a folder nor a revision with a laboratory",
                     .got = name,
                     .where = result.err.substr(0, result.err.find('\n'))});
  }
  return absl::OkStatus();
}

absl::StatusOr<Outcome> Diff(const LabOptions& options, const Invocation& invocation,
                             const std::string& a, const std::string& b) {
  std::vector<std::string> lines;
  H3RT_ASSIGN_OR_RETURN(const lab::Lab laboratory, lab::OpenLab(options.store()));
  absl::StatusOr<std::vector<std::string>> evidence = lab::DiffEvidence(laboratory, a, b);
  if (evidence.ok()) {
    lines = *std::move(evidence);
  } else {
    Side left;
    Side right;
    H3RT_RETURN_IF_ERROR(OpenSide(options, a, left));
    H3RT_RETURN_IF_ERROR(OpenSide(options, b, right));
    H3RT_ASSIGN_OR_RETURN(lines, lab::DiffStores(left.store, right.store));
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  Say(options, invocation, lines.empty() ? "no difference\n" : text);
  return Outcome{.code = lines.empty() ? ExitCode::kDone : ExitCode::kAnswerIsNo,
                 .json = {{"differences", lines}}};
}

void AddLog(CLI::App& lab, LabOptions& options, Invocation& invocation) {
  CLI::App* log = lab.add_subcommand("log", "The append-only log");
  log->require_subcommand(1);
  auto against = std::make_shared<std::string>();
  CLI::App* command =
      AddLabCommand(*log, "verify", "Check the chain and HEAD", options, invocation);
  command->add_option("--against", *against,
                      "A HEAD file or a git revision whose log must be a prefix of this one");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] {
      return LogVerify(options, invocation, *against);
    };
  });
  auto last = std::make_shared<int64_t>(20);
  command = AddLabCommand(*log, "show", "The newest entries", options, invocation);
  command->add_option("--last", *last, "How many")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return LogShow(options, invocation, *last); };
  });
  auto file = std::make_shared<std::string>();
  command = AddLabCommand(
      *log, "append", "Append an entry in words: a JSON object with title, decision, actions, ...",
      options, invocation);
  command->add_option("file", *file, "Its file, or - for standard input")->required();
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return LogAppend(options, invocation, *file); };
  });
  command = AddLabCommand(*log, "anchor", "Append an entry that names the commit of the repository",
                          options, invocation);
  command->callback([&options, &invocation] {
    invocation.run = [&options, &invocation] { return LogAnchor(options, invocation); };
  });
  command = AddLabCommand(*log, "repair", "Move a torn last line aside and say so in the log",
                          options, invocation);
  command->callback([&options, &invocation] {
    invocation.run = [&options, &invocation]() -> absl::StatusOr<Outcome> {
      H3RT_ASSIGN_OR_RETURN(const std::string done, lab::RepairLog(options.store(), options.now));
      Say(options, invocation, done.empty() ? "nothing to repair\n" : done + "\n");
      return Outcome{.json = {{"done", done}}};
    };
  });
  for (CLI::App* part : log->get_subcommands({})) RefuseEmptyValues(*part);
}

}  // namespace

void AddLabFiles(CLI::App& lab, LabOptions& options, Invocation& invocation) {
  auto import = std::make_shared<ImportOptions>();
  CLI::App* command =
      AddLabCommand(lab, "import", "Take in what comes from elsewhere", options, invocation);
  command
      ->add_option("form", import->form,
                   "bundle, seed-md, seed-log, inventory, fixture, inspection, ptxas-log, "
                   "sanitizer-log or ncu-csv")
      ->required()
      ->check(CLI::IsMember({"bundle", "seed-md", "seed-log", "inventory", "fixture", "inspection",
                             "ptxas-log", "sanitizer-log", "ncu-csv"}));
  command
      ->add_option("file", import->file,
                   "The file; a folder for inventory and fixture; a path relative to the root for "
                   "inspection")
      ->required();
  command->add_option("--experiment", import->experiment,
                      "The record that a log, fixture or inspection belongs to");
  command->add_option("--rule", import->rule,
                      "inspection: the rule that the document finds broken");
  command->add_option("--boundary", import->boundary, "inspection: the boundary that is crossed");
  command->add_flag("--check", import->check, "Import nothing; say what is wrong with it");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Import(options, invocation, *import); };
  });

  AddLog(lab, options, invocation);

  auto verify = std::make_shared<VerifyOptions>();
  command = AddLabCommand(lab, "verify",
                          "Compare bytes with digests: every piece of evidence and every blob",
                          options, invocation);
  command->add_flag("--recompute", verify->recompute, "Also every derived number with its samples");
  command->add_option("--inventory", verify->inventory,
                      "Also the files of a folder with benchmarks/reference_inventory.json");
  command->add_option("ids", verify->ids, "Only evidence of these experiments");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Verify(options, invocation, *verify); };
  });

  auto a = std::make_shared<std::string>();
  auto b = std::make_shared<std::string>();
  command = AddLabCommand(
      lab, "diff",
      "What changed between two folders or revisions, or differs between two pieces of evidence",
      options, invocation);
  command->add_option("a", *a, "A folder, a git revision or the first digits of a digest")
      ->required();
  command->add_option("b", *b, "The other")->required();
  command->footer("Exit 0 without a difference, 1 with some.");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Diff(options, invocation, *a, *b); };
  });
}

}  // namespace h3rt::cli
