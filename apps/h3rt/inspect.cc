#include "h3rt/io/inspect.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/h3rt/cli.h"
#include "h3rt/base/units.h"
#include "h3rt/io/checksums.h"
#include "h3rt/model/packing/packing.h"
#include "h3rt/runtime/session.h"

namespace h3rt::cli {
namespace {

struct Options {
  std::string path;
  std::string size;
  int64_t frames = 124;
  bool verify = false;
};

void PrintKeys(const char* what, const std::vector<std::string>& keys) {
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(keys.size(), kShown); ++i) {
    std::printf("    %s: %s\n", what, keys[i].c_str());
  }
  if (keys.size() > kShown) std::printf("    ... and %zu more %s\n", keys.size() - kShown, what);
}

void PrintComponent(const ComponentReport& c) {
  std::printf("%s: %s%s%s%s%s, %lld tensors in %lld file(s), %s parameters, %s\n", c.name.c_str(),
              c.network.c_str(), c.layout.empty() ? "" : ", layout ", c.layout.c_str(),
              c.variant.empty() ? "" : ", ", c.variant.c_str(), static_cast<long long>(c.tensors),
              static_cast<long long>(c.files), fmt::format("{}", c.parameters).c_str(),
              FormatBytes(c.bytes).c_str());
  for (const auto& [dtype, count] : c.dtypes) {
    std::printf("    %-8s %6lld tensors %12s\n", dtype.c_str(),
                static_cast<long long>(count.tensors), FormatBytes(count.bytes).c_str());
  }
  for (const auto& [format, layers] : c.quant_formats) {
    std::printf("    quantised: %s, %lld layers\n", format.c_str(), static_cast<long long>(layers));
  }
  PrintKeys("missing", c.missing);
  PrintKeys("unknown", c.unknown);
  PrintKeys("wrong", c.wrong);
}

// The memory plan of a size, when the folder is a whole model.
absl::StatusOr<Json> PlanOf(const Options& options, bool json) {
  GenerateRequest request;
  H3RT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(options.path, {}));
  H3RT_RETURN_IF_ERROR(ParseSize(options.size, request.width, request.height));
  request.frames = options.frames;
  request.forwards = session->defaults().forwards;
  H3RT_ASSIGN_OR_RETURN(request.prompt_embeds,
                        Tensor::Zeros(DType::kF32, {128, session->dit_config().text_dim}));
  H3RT_RETURN_IF_ERROR(session->Check(request));
  H3RT_ASSIGN_OR_RETURN(const MemoryPlan plan, session->Plan(request));
  if (!json) {
    std::printf("to run %s, %lld frames, 128 rows of text:\n%s\n", options.size.c_str(),
                static_cast<long long>(options.frames), plan.ToText().c_str());
  }
  return plan.ToJson();
}

// Compares with SHA256SUMS; the report gets the result, the outcome its exit code.
absl::Status Verify(const Options& options, bool json, Outcome& outcome) {
  const auto stop = [](uint64_t, uint64_t) {
    return GlobalCancel().cancelled() ? Cancelled("inspect --verify") : absl::OkStatus();
  };
  H3RT_ASSIGN_OR_RETURN(const ChecksumReport sums, VerifyChecksums(options.path, UINT64_MAX, stop));
  Json mismatched = Json::array();
  for (const ChecksumReport::Mismatch& m : sums.mismatched) {
    mismatched.push_back({{"file", m.file}, {"got", m.got}, {"wanted", m.wanted}});
    if (!json) std::printf("    other content: %s\n", m.file.c_str());
  }
  outcome.json["verify"] = {
      {"listed", sums.listed}, {"checked", sums.checked}, {"mismatched", std::move(mismatched)}};
  if (!json) std::printf("SHA256SUMS: %zu files are as listed\n", sums.checked.size());
  if (!sums.listed) {
    std::fprintf(stderr, "h3rt: nothing to verify: the folder has no %s\n", kChecksumsFile);
    outcome.code = ExitCode::kNothingCompared;
  }
  if (!sums.mismatched.empty()) outcome.code = ExitCode::kDataLoss;
  return absl::OkStatus();
}

absl::StatusOr<Outcome> Run(const Options& options, bool json) {
  if (!options.size.empty()) {
    int64_t width = 0;
    int64_t height = 0;
    H3RT_RETURN_IF_ERROR(ParseSize(options.size, width, height));
    H3RT_RETURN_IF_ERROR(CheckCanvas(width, height));
    H3RT_RETURN_IF_ERROR(CheckFrames(options.frames));
  }
  H3RT_ASSIGN_OR_RETURN(const InspectReport report, Inspect(options.path));
  const bool whole = report.form == "diffusers model" || report.form == "original model";
  if (!options.size.empty() && !whole) {
    return InvalidArgument({.what = "--size needs a whole model",
                            .got = report.form,
                            .wanted = "a model folder",
                            .where = options.path});
  }
  Outcome outcome{.code = report.ok() ? ExitCode::kDone : ExitCode::kAnswerIsNo,
                  .json = report.ToJson()};
  if (!json) {
    std::printf("%s: %s, id %s\n", report.path.c_str(), report.form.c_str(),
                report.model_id.c_str());
    for (const ComponentReport& component : report.components) PrintComponent(component);
    PrintKeys("missing part", report.missing_parts);
    if (!report.text_encoder.empty()) std::printf("text: %s\n", report.text_encoder.c_str());
    if (report.video_shift && report.audio_shift) {
      std::printf("schedules: shift %g video, %g audio\n", *report.video_shift,
                  *report.audio_shift);
    }
    std::printf(report.ok() ? "complete\n" : "NOT complete\n");
  }
  if (!options.size.empty()) {
    const absl::StatusOr<Json> plan = PlanOf(options, json);
    if (plan.ok()) {
      outcome.json["plan"] = *plan;
    } else {  // the report stands; the plan has its own reason
      outcome.code = ExitCodeOf(plan.status());
      outcome.json["plan_error"] = MessageOf(plan.status());
      std::fprintf(stderr, "h3rt: %s\n", MessageOf(plan.status()).c_str());
    }
  }
  if (options.verify) H3RT_RETURN_IF_ERROR(Verify(options, json, outcome));
  return outcome;
}

}  // namespace

void AddInspect(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("inspect", "Say what a checkpoint file or a model folder holds");
  command->add_option("path", options->path, "Model folder, folder with weights, or .safetensors")
      ->required();
  command->add_option("--size", options->size,
                      "Also what a clip of this WIDTHxHEIGHT would need (model folders)");
  command->add_option("--frames", options->frames, "Length for --size")
      ->check(Integer())
      ->capture_default_str();
  command->add_flag("--verify", options->verify,
                    "Also read every file that the folder's SHA256SUMS lists and compare");
  AddJsonFlag(*command, invocation);
  RefuseEmptyValues(*command);
  command->footer(
      "Reads headers only: a file of 66 GB takes no longer than a small one. Exit 1 when keys are\n"
      "missing, unknown or wrong (all are listed), 7 when a file is corrupt.");
  command->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return Run(*options, invocation.json); };
  });
}

}  // namespace h3rt::cli
