#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "apps/h3rt/cli.h"
#include "h3rt/base/log.h"
#include "h3rt/base/units.h"
#include "h3rt/base/version.h"
#include "h3rt/model/packing/packing.h"
#include "h3rt/runtime/clip_job.h"
#include "h3rt/runtime/dispatch.h"
#include "h3rt/runtime/memory.h"
#include "h3rt/runtime/request_files.h"

namespace h3rt::cli {
namespace {

struct Options {
  std::string model;
  std::string prompt;
  std::string prompt_embeds;
  std::string first;
  std::string last;
  std::string size;
  std::optional<int64_t> frames;
  std::optional<double> seconds;
  std::optional<int64_t> forwards;
  uint64_t seed = 42;
  std::string latents_in;
  std::string precision = "fp32";
  std::string layout;
  std::string transformer;
  std::string video_vae;
  std::string audio_vae;
  bool plan_only = false;
  ClipOutputs outputs;
  ComputeOptions compute;
};

constexpr char kFooter[] =
    R"(Frames are 17k+5 (5, 22, 39, ... 124, ... 345), sizes multiples of 32 from 32 up; anything
else exits 2 and names the nearest legal values. --seconds takes the next legal length that is long
enough and says so. Released models were made for 124 to 345 frames; other lengths are a note.

--forwards counts model evaluations. Other tools count the points of the sigma grid, which is one
more: their 50 steps are 49 forwards. --forwards 0 with --latents-in only decodes.

Files: --prompt-embeds holds prompt_embeds [N, text_dim]; --latents-in and --save-latents hold
latents [24, T, h, w] and audio_latents [2, 32, A], normalised (safetensors); of --latents-in one may
be missing, and is then drawn. A leading extent of 1 is taken as a batch.

The same request gives the same bytes for any number of threads. Ctrl-C stops within a moment and
leaves no partial file. Without FFmpeg the clip is written as .y4m and .wav.)";

constexpr std::pair<const char*, CheckpointLayout> kLayouts[] = {
    {"diffusers", CheckpointLayout::kDiffusers},
    {"contiguous", CheckpointLayout::kOriginalContiguous},
    {"interleaved", CheckpointLayout::kOriginalInterleaved}};

// Everything of the geometry that can be checked before a model is opened.
absl::Status ResolveGeometry(const Options& options, GenerateRequest& request) {
  if (!options.size.empty()) {
    H3RT_RETURN_IF_ERROR(ParseSize(options.size, request.width, request.height));
    H3RT_RETURN_IF_ERROR(CheckCanvas(request.width, request.height));
  }
  if (options.frames) {
    request.frames = *options.frames;
    H3RT_RETURN_IF_ERROR(CheckFrames(request.frames));
  }
  if (options.seconds) {
    H3RT_ASSIGN_OR_RETURN(request.frames, FramesOfSeconds(*options.seconds));
    LogInfo(fmt::format("{} s becomes {} frames, {:.3f} s", *options.seconds, request.frames,
                        static_cast<double>(request.frames) / kFramesPerSecond));
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionOptions> ResolveSession(const Options& options) {
  SessionOptions session;
  H3RT_RETURN_IF_ERROR(CheckDevice(options.compute));
  H3RT_ASSIGN_OR_RETURN(session.threads, ResolveThreads(options.compute));
  H3RT_ASSIGN_OR_RETURN(session.impls, ParseImplChoice(options.compute.impls));
  session.precision = options.precision == "bf16" ? Precision::kBf16 : Precision::kFp32;
  session.load.dequantized = options.precision == "bf16" ? DType::kBF16 : DType::kF32;
  for (const auto& [name, layout] : kLayouts) {
    if (options.layout == name) session.load.layout = layout;
  }
  session.transformer = options.transformer;
  session.video_vae = options.video_vae;
  session.audio_vae = options.audio_vae;
  return session;
}

// One line that is rewritten on a terminal; elsewhere a line a second at most, and each new stage.
class ProgressPrinter {
 public:
  void operator()(const ProgressEvent& event) {
    const bool done = event.step == event.steps;
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ && !done && event.stage == stage_ && now - last_ < std::chrono::seconds(1))
      return;
    stage_ = event.stage;
    last_ = now;
    const std::string text = FormatProgress(event);
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
    if (terminal_ && done) std::fputc('\n', stderr);
    std::fflush(stderr);
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::string stage_;
  std::chrono::steady_clock::time_point last_{};
};

void AddNotes(const Session& session, const GenerateRequest& request) {
  const bool released = session.dit_config().layers >= 50;
  if (released && (request.frames < 124 || request.frames > 345)) {
    LogInfo(fmt::format("{} frames: released models were made for 124 to 345", request.frames));
  }
}

Json JsonOf(const Session& session, const GenerateRequest& request, const MemoryPlan& plan,
            const ClipJobResult& job, uint64_t peak_bytes) {
  Json stages = Json::array();
  for (const StageTime& stage : job.stages) {
    stages.push_back({{"stage", stage.stage}, {"seconds", stage.seconds}});
  }
  return {{"ok", true},
          {"version", kVersion},
          {"files", job.files},
          {"notes", job.notes},
          {"width", request.width},
          {"height", request.height},
          {"frames", request.frames},
          {"forwards", request.forwards},
          {"seed", request.seed},
          {"threads", session.threads()},
          {"model_hash", session.model_hash()},
          {"stages", std::move(stages)},
          {"plan", plan.ToJson()},
          {"measured_peak_bytes", peak_bytes}};
}

absl::Status FillRequest(const Options& options, const Session& session, GenerateRequest& request) {
  const ModelDefaults& defaults = session.defaults();
  if (request.width == 0) {
    request.width = defaults.width;
    request.height = defaults.height;
  }
  if (request.frames == 0) request.frames = defaults.frames;
  request.forwards = options.forwards.value_or(defaults.forwards);
  request.seed = options.seed;
  request.prompt = options.prompt;
  if (!options.prompt_embeds.empty()) {
    H3RT_RETURN_IF_ERROR(ReadPromptEmbeds(options.prompt_embeds, request));
  }
  if (!options.latents_in.empty()) {
    H3RT_RETURN_IF_ERROR(ReadLatents(options.latents_in, request));
  }
  return ReadKeyframes(options.first, options.last, request);
}

absl::StatusOr<Outcome> Run(const Options& options, bool json) {
  GenerateRequest request;
  H3RT_RETURN_IF_ERROR(ResolveGeometry(options, request));
  H3RT_ASSIGN_OR_RETURN(const SessionOptions session_options, ResolveSession(options));
  const uint64_t before = ResidentBytes();
  ResetPeakResident();
  H3RT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(options.model, session_options));
  H3RT_RETURN_IF_ERROR(FillRequest(options, *session, request));
  H3RT_RETURN_IF_ERROR(session->Check(request));
  ClipOutputs outputs = options.outputs;
  outputs.inputs = {options.model,      options.first,        options.last,
                    options.latents_in, options.transformer,  options.video_vae,
                    options.audio_vae,  options.prompt_embeds};
  H3RT_RETURN_IF_ERROR(CheckOutputs(outputs, request));
  AddNotes(*session, request);
  H3RT_ASSIGN_OR_RETURN(const MemoryPlan plan, session->Plan(request));
  std::fprintf(stderr, "%dx%d, %lld frames, %lld forwards, seed %llu, %d threads\n%s\n",
               static_cast<int>(request.width), static_cast<int>(request.height),
               static_cast<long long>(request.frames), static_cast<long long>(request.forwards),
               static_cast<unsigned long long>(request.seed), session->threads(),
               plan.ToText().c_str());
  if (options.plan_only) {
    H3RT_ASSIGN_OR_RETURN(const uint64_t available, AvailableMemory());
    H3RT_RETURN_IF_ERROR(plan.CheckFits(available));
    return Outcome{.code = ExitCode::kDone, .json = {{"ok", true}, {"plan", plan.ToJson()}}};
  }
  H3RT_ASSIGN_OR_RETURN(const ClipJobResult job,
                        RunClipJob(*session, request, outputs, ProgressPrinter(), &GlobalCancel()));
  const uint64_t peak = PeakResidentBytes() - before;
  for (const std::string& note : job.notes) LogWarning(note);
  LogInfo(
      fmt::format("highest memory {}, planned {}", FormatBytes(peak), FormatBytes(plan.peak())));
  if (!json) {
    for (const std::string& file : job.files) std::printf("%s\n", file.c_str());
  }
  return Outcome{.code = ExitCode::kDone, .json = JsonOf(*session, request, plan, job, peak)};
}

void AddRequestFlags(CLI::App& command, Options& o) {
  command.add_option("--model", o.model, "Model folder (diffusers or MiniMax layout)")->required();
  auto* prompt = command.add_option("--prompt", o.prompt, "What to show and to let be heard");
  auto* embeds = command.add_option("--prompt-embeds", o.prompt_embeds,
                                    "Safetensors file of prompt_embeds instead of a prompt");
  prompt->excludes(embeds);
  command.add_option("--first", o.first, "First frame: PNG, JPEG or WebP");
  command.add_option("--last", o.last, "Last frame");
  command.add_option("--size", o.size, "WIDTHxHEIGHT in pixels. Default: the model's");
  auto* frames =
      command.add_option("--frames", o.frames, "Length in frames, 17k+5")->check(Integer());
  auto* seconds = command.add_option("--seconds", o.seconds, "Length in seconds, rounded up");
  frames->excludes(seconds);
  command.add_option("--forwards", o.forwards, "Model evaluations. Default: the model's")
      ->check(Unsigned());
  command.add_option("--seed", o.seed, "Seed of the noise; torch's CPU generator")
      ->check(Unsigned())
      ->capture_default_str();
  command.add_option("--latents-in", o.latents_in, "Start from these latents instead of noise");
  command.add_option("--precision", o.precision, "fp32, or bf16 as the released model was run")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
}

void AddFileFlags(CLI::App& command, Options& o) {
  o.outputs.clip = "clip.mp4";
  command.add_option("--out", o.outputs.clip, "The clip: .mp4 (also .m4v, .mov, .y4m)")
      ->capture_default_str();
  command.add_option("--sheet", o.outputs.sheet, "Also a contact sheet (PNG)");
  command.add_option("--png", o.outputs.frames, "Also every frame, into this folder (PNG)");
  command.add_option("--wav", o.outputs.wav, "Also the sound alone (WAV)");
  command.add_option("--save-latents", o.outputs.latents, "Also the latents (safetensors)");
  command.add_option("--transformer", o.transformer,
                     "Another transformer than the folder's: a file (ComfyUI and other single "
                     "files) or a folder");
  command.add_option("--vae", o.video_vae, "Another video VAE");
  command.add_option("--audio-vae", o.audio_vae, "Another audio VAE");
  std::vector<std::string> layouts;
  for (const auto& [name, layout] : kLayouts) layouts.emplace_back(name);
  command
      .add_option("--layout", o.layout,
                  "Key layout of the networks instead of the detected one; the last two are the "
                  "original names with qkv rows in thirds (single files) or head by head (shards)")
      ->check(CLI::IsMember(layouts));
  command.add_flag("--plan", o.plan_only, "Print the memory plan, say whether it fits, and stop");
}

}  // namespace

void AddGenerate(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("generate", "Make a clip with sound from a prompt and keyframes");
  AddRequestFlags(*command, *options);
  AddFileFlags(*command, *options);
  AddComputeFlags(*command, options->compute);
  AddJsonFlag(*command, invocation);
  RefuseEmptyValues(*command);
  command->footer(kFooter);
  command->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return Run(*options, invocation.json); };
  });
}

}  // namespace h3rt::cli
