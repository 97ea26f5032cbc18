#include "apps/h3rt/cli.h"

namespace h3rt::cli {

void AddCommands(CLI::App& app, Invocation& invocation) { AddLab(app, invocation); }

}  // namespace h3rt::cli
