// h3rt lab: the commands that plan, run, judge and decide.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "apps/h3rt/lab.h"
#include "h3rt/base/file.h"
#include "h3rt/base/log.h"
#include "h3rt/harness/closed.h"
#include "h3rt/harness/harness.h"
#include "h3rt/imports/import.h"

namespace h3rt::cli {
namespace {

absl::StatusOr<Outcome> Plan(const LabOptions& options, const Invocation& invocation,
                             const lab::PlanRequest& request) {
  H3RT_ASSIGN_OR_RETURN(const int64_t seq, lab::WritePlan(options.store(), request, options.now));
  Say(options, invocation,
      fmt::format("plan of {} {}: log entry {}, {} processes of {} quads\n", request.id,
                  request.gate, seq, request.processes, request.quads));
  return Outcome{.json = {{"log_seq", seq}}};
}

struct RunOptions {
  lab::RunRequest request;
  std::string bundle;
  std::string reopen;
  std::string because;
  int64_t log_seq = -1;
};

// Evidence goes into the store the same way, from here or from another machine: through a bundle.
absl::StatusOr<Outcome> Keep(const LabOptions& options, const Invocation& invocation,
                             const std::vector<lab::NewEvidence>& evidence) {
  lab::Findings findings;
  H3RT_ASSIGN_OR_RETURN(const std::string bytes, lab::PackBundle(evidence));
  const absl::StatusOr<lab::BundleResult> result =
      lab::ImportBundle(options.store(), bytes, "this run", findings, options.now);
  if (findings.errors() > 0) return OutcomeOf(findings, options, invocation, "run");
  H3RT_RETURN_IF_ERROR(result.status());
  std::string text;
  for (const std::string& digest : result->digests) text += digest + "\n";
  text +=
      fmt::format("{} pieces of evidence added, {} were there\n", result->added, result->present);
  Say(options, invocation, text);
  return Outcome{.json = {{"added", result->added},
                          {"digests", result->digests},
                          {"present", result->present}}};
}

absl::StatusOr<Outcome> Run(const LabOptions& options, const Invocation& invocation,
                            RunOptions run) {
  const lab::Store store = options.store();
  H3RT_ASSIGN_OR_RETURN(const lab::Lab laboratory, lab::OpenLab(store));
  H3RT_ASSIGN_OR_RETURN(const lab::Record* record,
                        lab::RecordOf(laboratory.registry, run.request.id));
  H3RT_RETURN_IF_ERROR(lab::CheckClosedWork(laboratory, *record, run.request.vid, run.reopen,
                                            run.because, run.log_seq));
  const bool times = run.request.gate.empty() || run.request.gate == "isolated";
  if (times && run.request.kind != "profile") {
    run.request.plan = lab::PlanOf(laboratory.log, run.request.id, "isolated");
  }
  if (run.request.plan.is_object()) {
    run.request.processes = lab::IntAt(run.request.plan, "processes");
    run.request.quads = lab::IntAt(run.request.plan, "quads");
  } else if (run.request.gate == "isolated" && run.request.kind != "profile" &&
             run.request.kind != "timing_single") {
    return FailedPrecondition({.what = "a timing needs a plan that was written before it",
                               .got = "none for " + run.request.id,
                               .wanted = "h3rt lab plan " + run.request.id + " --gate isolated",
                               .where = lab::kLogFile});
  }
  run.request.policy_digest = lab::DigestOf(laboratory.policy);
  H3RT_ASSIGN_OR_RETURN(const std::vector<lab::NewEvidence> evidence,
                        lab::RunExperiment(store, run.request, GlobalCancel()));
  if (evidence.empty()) {
    std::fprintf(stderr, "h3rt: nothing was measured\n");
    return Outcome{.code = ExitCode::kNothingCompared};
  }
  for (const lab::NewEvidence& piece : evidence) {
    LogInfo(fmt::format("{} {} {}", lab::TextAt(piece.envelope, "kind"),
                        lab::TextAt(piece.envelope, "word"),
                        lab::TextAt(piece.envelope, "target")));
  }
  if (run.bundle.empty()) return Keep(options, invocation, evidence);
  H3RT_RETURN_IF_ERROR(lab::WriteBundle(run.bundle, evidence));
  Say(options, invocation,
      fmt::format("{} pieces of evidence in {}\n", evidence.size(), run.bundle));
  return Outcome{.json = {{"bundle", run.bundle}, {"evidence", evidence.size()}}};
}

// pass 0, fail 1, inconclusive 9, nothing judged 10.
absl::StatusOr<Outcome> Gate(const LabOptions& options, const Invocation& invocation,
                             const std::string& id, const std::string& gate) {
  H3RT_ASSIGN_OR_RETURN(const lab::GateReport report,
                        lab::ApplyGates(options.store(), id, gate, options.now));
  std::string text;
  Outcome outcome;
  outcome.json = {{"log_seq", report.log_seq}, {"verdicts", Json::array()}};
  bool failed = false;
  bool inconclusive = false;
  for (const lab::GateResult& result : report.results) {
    for (const std::string& line : result.arithmetic) {
      text += (&line == &result.arithmetic.front() ? "" : "  ") + line + "\n";
    }
    text += "  " + lab::TextAt(result.verdict, "reason") + "\n";
    failed |= lab::TextAt(result.verdict, "verdict") == "fail";
    inconclusive |= lab::TextAt(result.verdict, "verdict") == "inconclusive";
    outcome.json["verdicts"].push_back(ToJson(result.verdict));
  }
  if (report.results.empty()) {
    std::fprintf(stderr, "h3rt: no gate of %s has evidence\n", id.c_str());
    outcome.code = ExitCode::kNothingCompared;
    return outcome;
  }
  text += report.log_seq >= 0 ? fmt::format("written with log entry {}\n", report.log_seq)
                              : std::string("every verdict is as it was\n");
  Say(options, invocation, text);
  outcome.code = failed         ? ExitCode::kAnswerIsNo
                 : inconclusive ? ExitCode::kInconclusive
                                : ExitCode::kDone;
  return outcome;
}

struct SetOptions {
  std::string id;
  std::string patch_file;
  std::string status;
  std::string text;
  std::string title;
  std::string because;
  std::string kind = "decision";
  std::string invalidate;
};

// A JSON file in the words of people. Nothing, with the findings, where it is no such document.
absl::StatusOr<std::optional<lab::Doc>> ReadWords(const std::string& file,
                                                  lab::Findings& findings) {
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, 1 << 20));
  return lab::ParseDocument(text, file, 1, findings);
}

absl::StatusOr<Outcome> Set(const LabOptions& options, const Invocation& invocation,
                            const SetOptions& set) {
  if (!set.invalidate.empty()) {
    if (!set.status.empty() || !set.text.empty() || !set.patch_file.empty()) {
      return InvalidArgument({.what = "--invalidate",
                              .got = "other changes beside it",
                              .wanted = "--because alone; change the record with another command"});
    }
    H3RT_ASSIGN_OR_RETURN(
        const int64_t seq,
        lab::InvalidateEvidence(options.store(), set.id, set.invalidate, set.because, options.now));
    Say(options, invocation, fmt::format("{}: log entry {}\n", set.id, seq));
    return Outcome{.json = {{"log_seq", seq}}};
  }
  lab::SetRequest request{
      .id = set.id, .title = set.title, .decision = set.because, .kind = set.kind};
  if (!set.patch_file.empty()) {
    lab::Findings findings;
    H3RT_ASSIGN_OR_RETURN(const std::optional<lab::Doc> patch, ReadWords(set.patch_file, findings));
    if (!patch) return OutcomeOf(findings, options, invocation, "set");
    request.patch = *patch;
  }
  if (!set.status.empty()) request.patch["status"] = set.status;
  if (!set.text.empty()) request.patch["decision"]["text"] = set.text;
  H3RT_ASSIGN_OR_RETURN(const int64_t seq, lab::SetRecord(options.store(), request, options.now));
  Say(options, invocation, fmt::format("{}: log entry {}\n", set.id, seq));
  return Outcome{.json = {{"log_seq", seq}}};
}

absl::StatusOr<Outcome> Add(const LabOptions& options, const Invocation& invocation,
                            lab::AddRequest request, const std::string& file) {
  lab::Findings findings;
  H3RT_ASSIGN_OR_RETURN(const std::optional<lab::Doc> words, ReadWords(file, findings));
  if (!words) return OutcomeOf(findings, options, invocation, "add");
  request.words = *words;
  H3RT_ASSIGN_OR_RETURN(const int64_t seq, lab::AddRecord(options.store(), request, options.now));
  Say(options, invocation, fmt::format("{}: a new record, log entry {}\n", request.id, seq));
  return Outcome{.json = {{"log_seq", seq}}};
}

absl::StatusOr<Outcome> Retry(const LabOptions& options, const Invocation& invocation) {
  H3RT_ASSIGN_OR_RETURN(const lab::Lab laboratory, lab::OpenLab(options.store()));
  const std::vector<std::string> due = lab::RetryDue(laboratory);
  std::string text;
  for (const std::string& line : due) text += line + "\n";
  Say(options, invocation, text + fmt::format("{} blocked records are due\n", due.size()));
  return Outcome{.json = {{"due", due}}};
}

void AddAdd(CLI::App& lab, LabOptions& options, Invocation& invocation) {
  auto add = std::make_shared<lab::AddRequest>();
  auto file = std::make_shared<std::string>();
  CLI::App* command =
      AddLabCommand(lab, "add", "Open a new record: incomplete, with what its file says of it",
                    options, invocation);
  command->add_option("id", add->id, "An id that the registry neither has nor retired")->required();
  command->add_option("--record", *file, "A JSON file with the fields of the record")->required();
  command->add_option("--because", add->decision, "Why, for the log")->required();
  command->add_option("--title", add->title, "Title of the log entry; default: one with the id");
  command->footer(
      "The file gives name, group and kind, and may give decision.text, relations, retention, "
      "scope "
      "and\n"
      "variants; other fields are refused. No gate has run, no source is named: `lab set` does "
      "that.");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Add(options, invocation, *add, *file); };
  });
}

void AddRun(CLI::App& lab, LabOptions& options, Invocation& invocation) {
  auto run = std::make_shared<RunOptions>();
  CLI::App* command = AddLabCommand(
      lab, "run", "Run an experiment where it stands and keep what came out as evidence", options,
      invocation);
  command->add_option("id", run->request.id, "Its id in the registry")->required();
  command->add_option("--vid", run->request.vid, "A variant; default: the candidate");
  command
      ->add_option("--gate", run->request.gate,
                   "build, correct or isolated; default: all that can run here")
      ->check(CLI::IsMember({"build", "correct", "isolated"}));
  command->add_option("--kind", run->request.kind, "Only this kind of evidence");
  command->add_option("--target", run->request.target, "Only this architecture, as sm_121a");
  command->add_option(
      "--bundle", run->bundle,
      "Write one file to carry elsewhere (`lab import bundle`) and leave the store as it is");
  command->add_option("--reopen", run->reopen, "The id of closed work that this run reopens");
  command->add_option("--because", run->because, "The reopening condition that holds");
  command->add_option("--log", run->log_seq, "The log entry that names condition and change")
      ->check(Integer());
  command->footer(
      "Compile experiments need nvcc 13 and no GPU; the gates correct and isolated need a GPU, "
      "and\n"
      "compute-sanitizer and ncu beside it. The isolated gate needs a plan (`lab plan`) and runs "
      "as many\n"
      "processes as that says. Exit 4 without the device or tool, 10 when nothing was measured, 12 "
      "when\n"
      "the work is closed.");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Run(options, invocation, *run); };
  });

  auto file = std::make_shared<std::string>();
  command = AddLabCommand(lab, "child", "", options, invocation);
  command->group("");  // not listed: a run starts its own processes with it
  command->add_option("file", *file)->required();
  command->callback([=, &invocation] {
    invocation.run = [=]() -> absl::StatusOr<Outcome> {
      H3RT_RETURN_IF_ERROR(lab::RunChild(*file));
      return Outcome{};
    };
  });
}

}  // namespace

void AddLabActions(CLI::App& lab, LabOptions& options, Invocation& invocation) {
  auto plan = std::make_shared<lab::PlanRequest>();
  CLI::App* command =
      AddLabCommand(lab, "plan", "Fix hypothesis, sizes and thresholds of a timing before it runs",
                    options, invocation);
  command->add_option("id", plan->id, "The experiment")->required();
  command->add_option("--gate", plan->gate, "isolated, block, trajectory or deployment")
      ->required();
  command->add_option("--hypothesis", plan->hypothesis, "What is expected and why")->required();
  command->add_option("--processes", plan->processes, "Separate processes")
      ->check(Integer())
      ->capture_default_str();
  command->add_option("--quads", plan->quads, "Quads A B B A in each")
      ->check(Integer())
      ->capture_default_str();
  command
      ->add_option("--predicted-low-ns", plan->predicted_low_ns,
                   "Predicted time of a call, low end")
      ->check(Integer());
  command->add_option("--predicted-high-ns", plan->predicted_high_ns, "and high end")
      ->check(Integer());
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Plan(options, invocation, *plan); };
  });

  AddRun(lab, options, invocation);

  auto id = std::make_shared<std::string>();
  auto gate = std::make_shared<std::string>();
  command = AddLabCommand(
      lab, "gate", "Judge the evidence of a record by the policy; verdicts that change are written",
      options, invocation);
  command->add_option("id", *id, "The record")->required();
  command->add_option("--gate", *gate, "Only this gate");
  command->footer(
      "Prints the arithmetic. Exit 0 when every judged gate passes, 1 when one fails, 9 when one "
      "is\ninconclusive, 10 when there is nothing to judge.");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Gate(options, invocation, *id, *gate); };
  });

  AddAdd(lab, options, invocation);

  auto set = std::make_shared<SetOptions>();
  command = AddLabCommand(lab, "set",
                          "Decide something about a record; the evidence has to permit its status",
                          options, invocation);
  command->add_option("id", set->id, "The record")->required();
  command->add_option("--status", set->status, "Its new status");
  command->add_option("--text", set->text,
                      "Its decision, at most 280 characters; numbers as {ev:DIGEST/pointer}");
  command->add_option("--patch", set->patch_file,
                      "A JSON file with other fields to change (RFC 7396)");
  command->add_option(
      "--invalidate", set->invalidate,
      "Mark evidence of the record, by the first digits of its digest, as invalid; it "
      "stays where it is. Only with --because");
  command->add_option("--title", set->title, "Title of the log entry");
  command->add_option("--because", set->because, "Why, for the log")->required();
  command->add_option("--kind", set->kind, "Kind of the log entry")
      ->check(CLI::IsMember({"decision", "status", "close", "reopen", "supersede", "correction"}))
      ->capture_default_str();
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Set(options, invocation, *set); };
  });

  command = AddLabCommand(lab, "retry", "List blocked records whose retry condition now holds",
                          options, invocation);
  command->callback([&options, &invocation] {
    invocation.run = [&options, &invocation] { return Retry(options, invocation); };
  });
}

}  // namespace h3rt::cli
