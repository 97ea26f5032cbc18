// h3rt lab: the commands that read.
#include "apps/h3rt/lab.h"

#include <fmt/format.h>

#include <cstdio>

#include "h3rt/base/utc.h"
#include "h3rt/harness/compile.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/schema.h"
#include "h3rt/pages/report.h"
#include "h3rt/pages/view.h"

namespace h3rt::cli {
namespace {

constexpr char kLabFooter[] =
    "The laboratory's files lie under --root (default: this folder): research/ holds the registry, "
    "the\n"
    "policy and the log, benchmarks/ the evidence. Findings are one line each: code, "
    "file:line:column,\n"
    "JSON pointer, message, how to mend.";

absl::StatusOr<Outcome> Validate(const LabOptions& options, const Invocation& invocation,
                                 const lab::ValidateOptions& validate, bool strict,
                                 int64_t max_errors) {
  lab::Findings findings(static_cast<size_t>(max_errors));
  findings.SetStrict(strict);
  // A log that cannot be recovered is among the findings, with all the others.
  const absl::Status recovered = lab::Recover(options.store()).status();
  if (absl::IsAborted(recovered)) return recovered;
  if (!options.now.empty() && !ParseUtc(options.now)) {
    return InvalidArgument({.what = "--now",
                            .got = options.now,
                            .wanted = "a time as 2026-08-26T14:03:22.123456789Z"});
  }
  lab::Validate(options.store(), validate, findings);
  return OutcomeOf(findings, options, invocation, "validate");
}

absl::StatusOr<Outcome> Status(const LabOptions& options, const Invocation& invocation,
                               const std::string& by) {
  H3RT_ASSIGN_OR_RETURN(const lab::Lab laboratory,
                        lab::OpenLab(options.store(), lab::LocalToolchain(options.store())));
  Say(options, invocation, lab::ShowStatus(laboratory, by));
  return Outcome{.json = ToJson(lab::ShowStatusDoc(laboratory))};
}

struct ShowOptions {
  std::string id;
  bool evidence = false;
  bool history = false;
  bool why = false;
};

absl::StatusOr<Outcome> Show(const LabOptions& options, const Invocation& invocation,
                             const ShowOptions& show) {
  H3RT_ASSIGN_OR_RETURN(const lab::Lab laboratory,
                        lab::OpenLab(options.store(), lab::LocalToolchain(options.store())));
  H3RT_ASSIGN_OR_RETURN(const lab::Record* record, lab::RecordOf(laboratory.registry, show.id));
  Say(options, invocation,
      lab::ShowRecord(laboratory, *record, show.evidence, show.history, show.why));
  return Outcome{.json = ToJson(lab::ShowRecordDoc(laboratory, *record))};
}

absl::StatusOr<Outcome> Report(const LabOptions& options, const Invocation& invocation,
                               bool check) {
  if (check) {
    lab::Findings findings;
    lab::CheckPages(options.store(), findings);
    return OutcomeOf(findings, options, invocation, "report --check");
  }
  H3RT_RETURN_IF_ERROR(lab::Recover(options.store()).status());
  H3RT_ASSIGN_OR_RETURN(const std::vector<std::string> written, lab::WritePages(options.store()));
  std::string text;
  for (const std::string& path : written) text += "wrote " + path + "\n";
  Say(options, invocation, text.empty() ? "every page is as it was\n" : text);
  return Outcome{.json = {{"written", written}}};
}

void AddReaders(CLI::App& lab, LabOptions& options, Invocation& invocation) {
  auto validate = std::make_shared<lab::ValidateOptions>();
  auto no_fs = std::make_shared<bool>(false);
  auto strict = std::make_shared<bool>(false);
  auto max_errors = std::make_shared<int64_t>(1000);
  CLI::App* command =
      AddLabCommand(lab, "validate", "Check every rule over the registry, the evidence and the log",
                    options, invocation);
  command->add_flag("--strict", *strict,
                    "Stale evidence of accepted records and loose numbers in texts are errors");
  command->add_flag("--no-fs", *no_fs, "Open neither artifacts nor evidence nor sources");
  command->add_option("--group", validate->group, "Only findings of records of this group");
  command
      ->add_option("--max-errors", *max_errors,
                   "Print at most so many findings; the counts stay exact")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] {
      validate->filesystem = !*no_fs;
      validate->now = options.now;
      validate->toolchain = lab::LocalToolchain(options.store());
      return Validate(options, invocation, *validate, *strict, *max_errors);
    };
  });

  auto by = std::make_shared<std::string>("status");
  command = AddLabCommand(lab, "status", "Counts over the registry, and what is stale", options,
                          invocation);
  command->add_option("--by", *by, "status, group, gate or fresh")
      ->check(CLI::IsMember({"status", "group", "gate", "fresh"}))
      ->capture_default_str();
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Status(options, invocation, *by); };
  });

  auto show = std::make_shared<ShowOptions>();
  command = AddLabCommand(lab, "show", "One record", options, invocation);
  command->add_option("id", show->id, "Its id")->required();
  command->add_flag("--evidence", show->evidence, "Also its evidence, with freshness");
  command->add_flag("--history", show->history, "Also the log entries that name it");
  command->add_flag(
      "--why", show->why,
      "Also, for each status, the first missing predicate; and the arithmetic of each gate");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Show(options, invocation, *show); };
  });

  auto check = std::make_shared<bool>(false);
  command = AddLabCommand(lab, "report",
                          "Write the generated pages: EXPERIMENT_REGISTRY.md, index.html, "
                          "EXPERIMENT_LOG.md, production_manifest.json",
                          options, invocation);
  command->add_flag("--check", *check, "Write nothing; compare bytes");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Report(options, invocation, *check); };
  });

  command = AddLabCommand(lab, "schema",
                          "JSON Schema of every document, made from the validator's tables",
                          options, invocation);
  command->callback([&options, &invocation] {
    invocation.run = [&options, &invocation]() -> absl::StatusOr<Outcome> {
      const lab::Doc schema = lab::SchemaOf();
      Say(options, invocation, schema.dump(2) + "\n");
      return Outcome{.json = ToJson(schema)};
    };
  });
}

}  // namespace

CLI::App* AddLabCommand(CLI::App& lab, const std::string& name, const std::string& help,
                        LabOptions& options, Invocation& invocation) {
  CLI::App* command = lab.add_subcommand(name, help);
  command->add_option("--root", options.root, "Folder with research/ and benchmarks/")
      ->capture_default_str();
  command->add_option("--now", options.now,
                      "The time to write or to check with, 2026-08-26T14:03:22.123456789Z");
  command->add_flag("--quiet", options.quiet, "Say nothing on standard output");
  AddJsonFlag(*command, invocation);
  return command;
}

void Say(const LabOptions& options, const Invocation& invocation, const std::string& text) {
  if (!options.quiet && !invocation.json) std::fputs(text.c_str(), stdout);
}

Json ToJson(const lab::Doc& document) { return Json(document); }

Outcome OutcomeOf(const lab::Findings& findings, const LabOptions& options,
                  const Invocation& invocation, const std::string& summary) {
  std::string text;
  for (const lab::Finding& finding : findings.Sorted()) {
    text += lab::Findings::ToText(finding) + "\n";
  }
  text +=
      fmt::format("{}: {} errors, {} warnings\n", summary, findings.errors(), findings.warnings());
  Say(options, invocation, text);
  Outcome outcome{.code = findings.exit_code()};
  outcome.json = {{"errors", findings.errors()},
                  {"findings", findings.ToJson()},
                  {"ok", findings.errors() == 0},
                  {"warnings", findings.warnings()}};
  return outcome;
}

void AddLab(CLI::App& app, Invocation& invocation) {
  CLI::App* lab =
      app.add_subcommand("lab", "The laboratory: experiments, evidence, gates and the log");
  lab->require_subcommand(1);
  lab->footer(kLabFooter);
  static LabOptions options;
  AddReaders(*lab, options, invocation);
  AddLabActions(*lab, options, invocation);
  AddLabFiles(*lab, options, invocation);
  AddLabAttention(*lab, options, invocation);
  for (CLI::App* command : lab->get_subcommands({})) RefuseEmptyValues(*command);
}

}  // namespace h3rt::cli
