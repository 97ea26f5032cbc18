// h3rt: parse the command line, call the library, map errors to exit codes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "apps/h3rt/cli.h"
#include "h3rt/base/env.h"
#include "h3rt/base/exceptions.h"
#include "h3rt/base/log.h"
#include "h3rt/base/version.h"

namespace h3rt::cli {

static constexpr char kFooter[] = R"(Exit codes:
  0 done   1 it ran and the answer is no   2 invalid argument   3 not found or I/O
  4 failed precondition (device, driver, tool)   5 unimplemented   6 memory or disk exhausted
  7 data loss (corrupt file)   8 cancelled   9 inconclusive   10 nothing compared or measured
  11 locked   12 refused: closed work   70 internal error)";

static std::string EnvironmentHelp() {
  std::string text = "Environment (a flag wins over it):\n";
  for (const EnvEntry& entry : EnvTable()) {
    text += "  " + std::string(entry.name) + ": " + entry.help + "\n";
  }
  return text;
}

static absl::Status SetLogLevelFromEnvironment() {
  const std::string text = GetEnv(EnvVar::kLog).value_or("info");
  const std::pair<const char*, LogLevel> levels[] = {{"debug", LogLevel::kDebug},
                                                     {"info", LogLevel::kInfo},
                                                     {"warning", LogLevel::kWarning},
                                                     {"error", LogLevel::kError},
                                                     {"silent", LogLevel::kSilent}};
  for (const auto& [name, level] : levels) {
    if (text != name) continue;
    SetLogLevel(level);
    return absl::OkStatus();
  }
  return InvalidArgument({.what = "environment variable H3RT_LOG",
                          .got = text,
                          .wanted = "debug, info, warning, error or silent"});
}

static int Report(const absl::Status& status, bool json) {
  const ExitCode code = ExitCodeOf(status);
  std::fprintf(stderr, "h3rt: %s\n", MessageOf(status).c_str());
  if (json) {
    const Json object = {
        {"ok", false}, {"exit_code", static_cast<int>(code)}, {"error", MessageOf(status)}};
    std::cout << object.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return static_cast<int>(code);
}

static bool WantsJson(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
}

static int Run(int argc, char** argv) {
  InstallSignalHandler();
  CLI::App app{"MiniMax-H3 video with sound, natively", "h3rt"};
  app.set_version_flag("--version", std::string("h3rt ") + kVersion);
  app.require_subcommand(1);
  app.footer(EnvironmentHelp() + "\n" + kFooter);
  Invocation invocation;
  AddCommands(app, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    const int code = app.exit(success, std::cout, std::cerr);
    std::cout << std::flush;
    if (std::cout) return code;
    return Report(IoError({.what = "cannot write the result to standard output"}), false);
  } catch (const CLI::ParseError& error) {
    return Report(InvalidArgument({.what = error.what(), .where = "h3rt --help lists the flags"}),
                  WantsJson(argc, argv));
  }
  if (const absl::Status status = SetLogLevelFromEnvironment(); !status.ok()) {
    return Report(status, invocation.json);
  }
  const absl::StatusOr<Outcome> outcome = invocation.run();
  if (!outcome.ok()) return Report(outcome.status(), invocation.json);
  if (invocation.json) {
    std::cout << outcome->json.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Report(IoError({.what = "cannot write the result to standard output"}), false);
  }
  return static_cast<int>(outcome->code);
}

}  // namespace h3rt::cli

int main(int argc, char** argv) {
  // Nothing of ours throws; what a library throws in a place we did not foresee ends here.
  try {
    return h3rt::cli::Run(argc, argv);
  } catch (...) {
    return h3rt::cli::Report(h3rt::StatusOfException("h3rt"), h3rt::cli::WantsJson(argc, argv));
  }
}
