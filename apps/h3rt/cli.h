// What the commands of the program share: options, output, errors, cancellation.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/exec.h"
#include "h3rt/base/exit_code.h"
#include "h3rt/base/json.h"
#include "h3rt/base/status.h"

namespace h3rt::cli {

// What a command leaves: an exit code, and with --json one object for standard output.
struct Outcome {
  ExitCode code = ExitCode::kDone;
  Json json = Json::object();
};

// Filled while the command line is parsed; `run` is that of the chosen command.
struct Invocation {
  bool json = false;
  std::function<absl::StatusOr<Outcome>()> run;
};

// Checks of numbers: decimal digits and nothing else, in the range of 64 bits. (What the parser
// takes by itself is laxer: "010" would be 8, "-1" a large unsigned number.)
CLI::Validator Unsigned();
CLI::Validator Integer();
// Every option of the command refuses an empty value, which is a mistake in a script and would
// otherwise count as not given.
void RefuseEmptyValues(CLI::App& command);

// Adds --json to a command.
void AddJsonFlag(CLI::App& command, Invocation& invocation);

// Options of every command that computes on the host.
struct ComputeOptions {
  int threads = 0;
  std::string device = "auto";
  std::vector<std::string> impls;  // OP=NAME
};
void AddComputeFlags(CLI::App& command, ComputeOptions& options);

// The number of threads: flag, then H3RT_THREADS, then all that the process may use.
absl::StatusOr<int> ResolveThreads(const ComputeOptions& options);
// Only "auto" and "cpu" run in this build: kUnimplemented or kFailedPrecondition for cuda with the
// reason, kInvalidArgument for anything else.
absl::Status CheckDevice(const ComputeOptions& options);
// "1344x768" of --size.
absl::Status ParseSize(const std::string& text, int64_t& width, int64_t& height);

// Set by SIGINT and SIGTERM once InstallSignalHandler has run; a second signal ends the process.
CancelToken& GlobalCancel();
void InstallSignalHandler();

// Every command of the program that is built: commands.cc for h3rt, commands_lab.cc for the
// laboratory alone (h3rt_lab_alone), which is what is carried to a machine with a GPU.
void AddCommands(CLI::App& app, Invocation& invocation);

void AddGenerate(CLI::App& app, Invocation& invocation);
void AddInspect(CLI::App& app, Invocation& invocation);
void AddParity(CLI::App& app, Invocation& invocation);
void AddExplain(CLI::App& app, Invocation& invocation);
void AddDoctor(CLI::App& app, Invocation& invocation);
void AddMakeModel(CLI::App& app, Invocation& invocation);
void AddLab(CLI::App& app, Invocation& invocation);

}  // namespace h3rt::cli
