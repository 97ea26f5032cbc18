// What the files of `h3rt lab` share.
#pragma once

#include <string>

#include "apps/h3rt/cli.h"
#include "h3rt/harness/attention_golden.h"
#include "h3rt/lab/lab.h"

namespace h3rt::cli {

// Options of every lab command.
struct LabOptions {
  std::string root = ".";
  std::string now;
  bool quiet = false;
  lab::Store store() const { return {.root = root}; }
};

// A command of `h3rt lab` with the shared options.
CLI::App* AddLabCommand(CLI::App& lab, const std::string& name, const std::string& help,
                        LabOptions& options, Invocation& invocation);
// Text on standard output, unless --quiet or --json was given.
void Say(const LabOptions& options, const Invocation& invocation, const std::string& text);
// Findings as lines and JSON; the exit code of the gravest.
Outcome OutcomeOf(const lab::Findings& findings, const LabOptions& options,
                  const Invocation& invocation, const std::string& summary);
// The same document in the form that --json prints.
Json ToJson(const lab::Doc& document);

// The commands that run, judge or change something.
void AddLabActions(CLI::App& lab, LabOptions& options, Invocation& invocation);
// import, log, verify and diff.
void AddLabFiles(CLI::App& lab, LabOptions& options, Invocation& invocation);
// attention-golden.
void AddLabAttention(CLI::App& lab, LabOptions& options, Invocation& invocation);
// The op's own implementation on the host; null in the laboratory alone, which is built without it.
lab::HostAttention CpuAttention();

}  // namespace h3rt::cli
