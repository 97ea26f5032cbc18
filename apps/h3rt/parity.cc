#include "h3rt/parity/parity.h"

#include <cstdio>

#include "apps/h3rt/cli.h"
#include "h3rt/runtime/dispatch.h"

namespace h3rt::cli {
namespace {

struct Options {
  std::string dir;
  ComputeOptions compute;
};

absl::StatusOr<Outcome> Run(const Options& options, bool json) {
  H3RT_RETURN_IF_ERROR(CheckDevice(options.compute));
  H3RT_ASSIGN_OR_RETURN(const ImplChoice impls, ParseImplChoice(options.compute.impls));
  H3RT_ASSIGN_OR_RETURN(const int threads, ResolveThreads(options.compute));
  ThreadPool pool(threads);
  const ExecContext context = {.pool = &pool, .cancel = &GlobalCancel(), .impls = &impls};
  std::function<void(const ParityRow&)> on_row;
  if (!json) {
    on_row = [](const ParityRow& row) {
      std::printf("%s\n", FormatRow(row).c_str());
      std::fflush(stdout);
    };
  }
  H3RT_ASSIGN_OR_RETURN(const ParityReport report, RunParity(options.dir, context, on_row));
  const int64_t failures = report.failures();
  if (!json) {
    for (const std::string& name : report.absent) std::printf("absent  %s\n", name.c_str());
    std::printf("%zu compared, %lld failed\n", report.rows.size(),
                static_cast<long long>(failures));
  }
  Outcome outcome{.code = ExitCode::kDone, .json = report.ToJson()};
  if (failures > 0) outcome.code = ExitCode::kAnswerIsNo;
  if (report.rows.empty()) {
    outcome.code = ExitCode::kNothingCompared;
    std::fprintf(stderr, "h3rt: nothing was compared: %s holds no file of the fixture form\n",
                 options.dir.c_str());
  }
  return outcome;
}

}  // namespace

void AddParity(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("parity", "Compare with recorded tensors of the public implementation");
  command
      ->add_option("dir", options->dir,
                   "Folder of fixtures: one model, or several with rng and formats")
      ->required();
  AddComputeFlags(*command, options->compute);
  AddJsonFlag(*command, invocation);
  RefuseEmptyValues(*command);
  command->footer(
      "A row a tensor: ok or FAIL, name, shape, metric (bits: elements that differ; rel_l2;\n"
      "max_abs), value, bound, worst index. Exit 1 when a row fails, 10 when there was nothing to\n"
      "compare.");
  command->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return Run(*options, invocation.json); };
  });
}

}  // namespace h3rt::cli
