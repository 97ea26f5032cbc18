#include "apps/h3rt/lab.h"

namespace h3rt::cli {

void AddCommands(CLI::App& app, Invocation& invocation) { AddLab(app, invocation); }

lab::HostAttention CpuAttention() { return nullptr; }

}  // namespace h3rt::cli
