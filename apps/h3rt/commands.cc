#include "apps/h3rt/cli.h"

namespace h3rt::cli {

void AddCommands(CLI::App& app, Invocation& invocation) {
  AddGenerate(app, invocation);
  AddInspect(app, invocation);
  AddParity(app, invocation);
  AddDoctor(app, invocation);
  AddExplain(app, invocation);
  AddMakeModel(app, invocation);
  AddLab(app, invocation);
}

}  // namespace h3rt::cli
