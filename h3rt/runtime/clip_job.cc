#include "h3rt/runtime/clip_job.h"

#include <algorithm>
#include <filesystem>

#include "h3rt/base/file.h"
#include "h3rt/base/version.h"
#include "h3rt/media/clip_writer.h"
#include "h3rt/media/contact_sheet.h"
#include "h3rt/media/image.h"
#include "h3rt/media/wav.h"
#include "h3rt/runtime/request_files.h"

namespace h3rt {
namespace {

// Links followed as far as the path exists, so that two names of one place are equal.
std::filesystem::path RealPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(std::filesystem::absolute(FollowLinks(path), error), error);
  return error ? std::filesystem::path(path) : real;
}

bool IsSameOrInside(const std::string& path, const std::string& root) {
  if (root.empty()) return false;
  const std::filesystem::path inner = RealPath(path);
  const std::filesystem::path outer = RealPath(root);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

ClipOptions OptionsOf(const Session& session, const GenerateRequest& request,
                      const CancelToken* cancel) {
  ClipOptions options;
  options.width = request.width;
  options.height = request.height;
  options.frames = request.frames;
  options.cancel = cancel;
  options.metadata.prompt = request.prompt;
  options.metadata.seed = request.seed;
  options.metadata.forwards = request.forwards;
  options.metadata.model_hash = session.model_hash();
  options.metadata.h3rt_version = kVersion;
  return options;
}

absl::Status WriteOutputs(const Session& session, const GenerateRequest& request,
                          const ClipOutputs& outputs, const GenerateResult& result,
                          const CancelToken* cancel, ClipJobResult& job) {
  // Latents first: they are small, and from them everything else can be made again.
  if (!outputs.latents.empty()) {
    H3RT_RETURN_IF_ERROR(WriteLatents(outputs.latents, result));
    job.files.push_back(outputs.latents);
  }
  if (!outputs.clip.empty()) {
    H3RT_ASSIGN_OR_RETURN(WrittenClip written,
                          WriteClip(outputs.clip, result.frames.view(), result.samples.view(),
                                    OptionsOf(session, request, cancel)));
    job.files.insert(job.files.end(), written.files.begin(), written.files.end());
    if (written.fallback) job.notes.push_back(written.note);
  }
  if (!outputs.wav.empty()) {
    H3RT_RETURN_IF_ERROR(
        WriteWav(outputs.wav, result.samples.view(), kClipSampleRate, WavFormat::kPcm16));
    job.files.push_back(outputs.wav);
  }
  if (!outputs.sheet.empty()) {
    H3RT_ASSIGN_OR_RETURN(const RgbImage sheet, MakeContactSheet(result.frames.view(), {}));
    const absl::Status status = WritePng(outputs.sheet, sheet);
    if (absl::IsFailedPrecondition(status)) {  // no FFmpeg: the clip is what matters
      job.notes.push_back("no contact sheet: " + MessageOf(status));
    } else {
      H3RT_RETURN_IF_ERROR(status);
      job.files.push_back(outputs.sheet);
    }
  }
  if (!outputs.frames.empty()) {
    H3RT_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                          WritePngFrames(outputs.frames, result.frames.view(), cancel));
    job.files.insert(job.files.end(), paths.begin(), paths.end());
  }
  return absl::OkStatus();
}

absl::Status CheckExtension(const std::string& path, std::string_view wanted,
                            const std::string& what) {
  if (path.empty()) return absl::OkStatus();
  std::string end = path.substr(path.size() - std::min(path.size(), wanted.size()));
  for (char& c : end) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (end == wanted && path.size() > wanted.size()) return absl::OkStatus();
  return InvalidArgument({.what = "name of the " + what,
                          .got = path,
                          .wanted = "a file that ends in " + std::string(wanted)});
}

}  // namespace

absl::Status CheckOutputs(const ClipOutputs& outputs, const GenerateRequest& request) {
  // A picture viewer goes by the name, so the name must say what is inside.
  H3RT_RETURN_IF_ERROR(CheckExtension(outputs.sheet, ".png", "contact sheet"));
  H3RT_RETURN_IF_ERROR(CheckExtension(outputs.wav, ".wav", "sound"));
  std::vector<std::string> written;
  if (!outputs.clip.empty()) {
    ClipOptions options;
    options.width = request.width;
    options.height = request.height;
    options.frames = request.frames;
    H3RT_RETURN_IF_ERROR(CheckClipTarget(outputs.clip, options));
    written = ClipFiles(outputs.clip);
  }
  if (!outputs.frames.empty()) {
    H3RT_RETURN_IF_ERROR(CheckPngFolder(outputs.frames));
    written.push_back(outputs.frames);
  }
  for (const std::string* path : {&outputs.sheet, &outputs.wav, &outputs.latents}) {
    if (path->empty()) continue;
    // Makes and discards a temporary file: long work must not end at a folder that was never there.
    const absl::StatusOr<PendingFile> probe = PendingFile::Create(*path);
    if (!probe.ok()) return WithContext(probe.status(), *path);
    written.push_back(*path);
  }
  for (size_t i = 0; i < written.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (RealPath(written[i]) != RealPath(written[j])) continue;
      return InvalidArgument({.what = "two outputs have one name", .got = written[i]});
    }
    for (const std::string& input : outputs.inputs) {
      if (!IsSameOrInside(written[i], input)) continue;
      return InvalidArgument({.what = "an output would replace an input or lie inside the model",
                              .got = written[i],
                              .where = input});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ClipJobResult> RunClipJob(Session& session, const GenerateRequest& request,
                                         const ClipOutputs& outputs, const ProgressSink& progress,
                                         const CancelToken* cancel) {
  H3RT_RETURN_IF_ERROR(CheckOutputs(outputs, request));
  ClipJobResult job;
  H3RT_ASSIGN_OR_RETURN(const GenerateResult result, session.Generate(request, progress, cancel));
  job.stages = result.stages;
  ProgressMeter meter("write", 1, progress);
  const absl::Status written = WriteOutputs(session, request, outputs, result, cancel, job);
  if (!written.ok() && !job.files.empty()) {
    std::string kept;
    for (const std::string& file : job.files) kept += (kept.empty() ? "" : ", ") + file;
    return WithContext(written, "complete and kept: " + kept);
  }
  H3RT_RETURN_IF_ERROR(written);
  meter.Step(1);
  job.stages.push_back({"write", meter.seconds()});
  return job;
}

}  // namespace h3rt
