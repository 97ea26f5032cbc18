#include <fmt/format.h>

#include <cstdio>

#include "apps/h3rt/cli.h"
#include "h3rt/base/units.h"
#include "h3rt/io/random_checkpoint.h"

namespace h3rt::cli {
namespace {

struct Options {
  std::string dir;
  std::string config = "tiny";
  uint64_t seed = 0;
};

// Small models are for small clips.
Json DefaultsOf(const std::string& config) {
  if (config == "released-shape") return nullptr;
  return {{"width", 128}, {"height", 128}, {"frames", 56}, {"forwards", 8}};
}

absl::StatusOr<Outcome> Run(const Options& options, bool json) {
  H3RT_ASSIGN_OR_RETURN(const ModelConfigs configs, ConfigsByName(options.config));
  uint64_t bytes = 0;
  int percent = -1;
  const auto progress = [&](uint64_t done, uint64_t total) -> absl::Status {
    if (GlobalCancel().cancelled()) return Cancelled("make-model");
    bytes = total;
    const int now =
        total == 0
            ? 100
            : static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
    if (now / 10 != percent / 10 || percent < 0) {
      std::fprintf(stderr, "%s of %s\n", FormatBytes(done).c_str(), FormatBytes(total).c_str());
      percent = now;
    }
    return absl::OkStatus();
  };
  H3RT_RETURN_IF_ERROR(WriteRandomModel(options.dir, configs,
                                        {.seed = options.seed,
                                         .name = "h3-" + options.config,
                                         .defaults = DefaultsOf(options.config),
                                         .progress = progress}));
  if (!json) std::printf("%s\n", options.dir.c_str());
  return Outcome{.code = ExitCode::kDone,
                 .json = {{"ok", true},
                          {"folder", options.dir},
                          {"config", options.config},
                          {"seed", options.seed},
                          {"bytes", bytes}}};
}

}  // namespace

void AddMakeModel(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "make-model",
      "Write a model with random weights in the released layout, for tests and benchmarks");
  command->add_option("dir", options->dir, "Folder to make; new or empty")->required();
  command->add_option("--config", options->config, "Sizes of the networks")
      ->check(CLI::IsMember({"tiny", "mini", "released-shape"}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the weights; the same seed, the same bytes")
      ->check(Unsigned())
      ->capture_default_str();
  AddJsonFlag(*command, invocation);
  RefuseEmptyValues(*command);
  command->footer("released-shape writes 77 GB.");
  command->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return Run(*options, invocation.json); };
  });
}

}  // namespace h3rt::cli
