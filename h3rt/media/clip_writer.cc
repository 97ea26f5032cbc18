#include "h3rt/media/clip_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "h3rt/base/env.h"
#include "h3rt/media/clip_sinks.h"
#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/media/pixels.h"

namespace h3rt {
namespace {

constexpr int64_t kMinSide = 16;  // below one macroblock players give up
constexpr int64_t kMaxSide = 16384;
constexpr int64_t kMaxPixels = 139'264 * 256;  // H.264 level 6.2
constexpr int64_t kMaxFrames = int64_t{1} << 24;
constexpr int64_t kPiece = 4096;  // samples handed on at a time

absl::Status Validate(const std::string& path, const ClipOptions& o) {
  const auto bad_side = [](int64_t side) {
    return side < kMinSide || side > kMaxSide || side % 2 != 0;
  };
  if (bad_side(o.width) || bad_side(o.height) || o.width * o.height > kMaxPixels) {
    return InvalidArgument({.what = "clip size",
                            .got = std::to_string(o.width) + "x" + std::to_string(o.height),
                            .wanted = "even sides from " + std::to_string(kMinSide) + " to " +
                                      std::to_string(kMaxSide) + ", at most " +
                                      std::to_string(kMaxPixels) + " pixels",
                            .where = path});
  }
  if (o.frames < 1 || o.frames > kMaxFrames) {
    return InvalidArgument({.what = "number of frames",
                            .got = std::to_string(o.frames),
                            .wanted = "1 to " + std::to_string(kMaxFrames),
                            .where = path});
  }
  if (o.crf < 0 || o.crf > 51) {
    return InvalidArgument(
        {.what = "crf", .got = std::to_string(o.crf), .wanted = "0 to 51", .where = path});
  }
  return ValidateMetadata(o.metadata);
}

// Splits "folder/name.EXT" and lower-cases the extension; a dot that begins the name is none.
std::pair<std::string, std::string> SplitExtension(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= begin) return {path, ""};
  std::string extension = path.substr(dot);
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return {path.substr(0, dot), extension};
}

bool IsMp4(const std::string& extension) {
  return extension == ".mp4" || extension == ".m4v" || extension == ".mov";
}

}  // namespace

int64_t ClipSamples(int64_t frames) {
  return (2 * frames * kClipSampleRate + kClipFps) / (2 * kClipFps);
}

struct ClipWriter::State {
  std::string path;
  ClipOptions options;
  std::unique_ptr<ClipSink> sink;
  absl::Status status;  // the first error; sticks
  int64_t frames = 0;
  int64_t samples = 0;        // handed on
  int64_t samples_given = 0;  // by the caller, also those that were cut
  std::vector<uint8_t> rgb;
  std::vector<uint8_t> yuv;
  std::array<float, kPiece> left;
  std::array<float, kPiece> right;

  absl::Status Fail(absl::Status error) {
    status = WithContext(error, path);
    sink.reset();  // removes the temporary file at once
    return status;
  }
  absl::Status Picture(std::span<const uint8_t> bytes);
  absl::Status CheckFrame() const;
  absl::Status Sound(const ConstTensorView& view);
  absl::Status Silence();
};

absl::Status ClipWriter::State::CheckFrame() const {
  if (options.cancel != nullptr && options.cancel->cancelled()) return Cancelled("writing a clip");
  if (frames < options.frames) return absl::OkStatus();
  return InvalidArgument({.what = "too many frames",
                          .got = "frame number " + std::to_string(frames),
                          .wanted = std::to_string(options.frames) + " frames"});
}

absl::Status ClipWriter::State::Picture(std::span<const uint8_t> bytes) {
  const auto pixels = static_cast<size_t>(options.width * options.height);
  const std::span<uint8_t> all(yuv);
  const Yuv420 picture{all.subspan(0, pixels), all.subspan(pixels, pixels / 4),
                       all.subspan(pixels + pixels / 4, pixels / 4)};
  RgbToYuv420(bytes, options.width, options.height, picture);
  H3RT_RETURN_IF_ERROR(sink->AddPicture(picture));
  ++frames;
  return absl::OkStatus();
}

absl::Status ClipWriter::State::Sound(const ConstTensorView& view) {
  const float* data = view.dim(1) == 0 ? nullptr : view.as<float>();
  const int64_t total = ClipSamples(options.frames);
  for (int64_t begin = 0; begin < view.dim(1); begin += kPiece) {
    const int64_t n = std::min(kPiece, view.dim(1) - begin);
    for (int64_t c = 0; c < 2; ++c) {
      auto& to = c == 0 ? left : right;
      for (int64_t i = 0; i < n; ++i) {
        const float value = data[c * view.stride(0) + (begin + i) * view.stride(1)];
        if (!std::isfinite(value)) {
          return DataLoss({.what = "sound is not finite",
                           .got = std::isnan(value) ? "NaN" : "infinity",
                           .wanted = "values in [-1, 1]",
                           .where = "channel " + std::to_string(c) + ", sample " +
                                    std::to_string(samples_given + begin + i)});
        }
        to[static_cast<size_t>(i)] = std::clamp(value, -1.0f, 1.0f);
      }
    }
    const int64_t kept = std::min(n, total - samples);
    if (kept > 0) H3RT_RETURN_IF_ERROR(sink->AddSound(left.data(), right.data(), kept));
    samples += std::max<int64_t>(kept, 0);
  }
  samples_given += view.dim(1);
  return absl::OkStatus();
}

absl::Status ClipWriter::State::Silence() {
  left.fill(0.0f);
  right.fill(0.0f);
  for (int64_t missing = ClipSamples(options.frames) - samples; missing > 0;) {
    const int64_t n = std::min(kPiece, missing);
    H3RT_RETURN_IF_ERROR(sink->AddSound(left.data(), right.data(), n));
    missing -= n;
    samples += n;
  }
  return absl::OkStatus();
}

ClipWriter::ClipWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClipWriter::ClipWriter(ClipWriter&&) noexcept = default;
ClipWriter& ClipWriter::operator=(ClipWriter&&) noexcept = default;
ClipWriter::~ClipWriter() = default;

absl::Status CheckClipTarget(const std::string& path, const ClipOptions& options) {
  return ClipWriter::Create(path, options).status();
}

std::vector<std::string> ClipFiles(const std::string& path) {
  const auto [stem, extension] = SplitExtension(path);
  if (IsMp4(extension) && FfmpegApi().ok()) return {path};
  return {stem + ".y4m", stem + ".wav"};
}

absl::StatusOr<ClipWriter> ClipWriter::Create(const std::string& path, const ClipOptions& options) {
  H3RT_RETURN_IF_ERROR(Validate(path, options));
  const auto [stem, extension] = SplitExtension(path);
  const bool mp4 = IsMp4(extension);
  if (!mp4 && extension != ".y4m") {
    return InvalidArgument({.what = "name of a clip",
                            .got = path,
                            .wanted = "a name that ends in .mp4 (or .m4v, .mov, .y4m)"});
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  state->options.metadata.width = options.width;
  state->options.metadata.height = options.height;
  state->options.metadata.frames = options.frames;
  const auto pixels = static_cast<size_t>(options.width * options.height);
  state->rgb.resize(pixels * 3);
  state->yuv.resize(pixels + pixels / 2);
  if (mp4) {
    absl::StatusOr<const H3rtMediaApi*> api = FfmpegApi();
    if (api.ok()) {
      H3RT_ASSIGN_OR_RETURN(state->sink, MakeMp4Sink(*api, path, state->options));
      return ClipWriter(std::move(state));
    }
    // Who names a module wants that one; the fallback is for machines without FFmpeg.
    const std::string wanted = GetEnv(EnvVar::kMediaLibrary).value_or("none");
    if (wanted != "none") return api.status();
    H3RT_ASSIGN_OR_RETURN(state->sink, MakeY4mSink(stem, state->options, MessageOf(api.status())));
    return ClipWriter(std::move(state));
  }
  H3RT_ASSIGN_OR_RETURN(state->sink, MakeY4mSink(stem, state->options, "Y4M was asked for"));
  return ClipWriter(std::move(state));
}

absl::Status ClipWriter::AddFrames(const ConstTensorView& frames) {
  H3RT_RETURN_IF_ERROR(state_->status);
  const ClipOptions& o = state_->options;
  if (frames.dtype() != DType::kF32 || frames.rank() != 4 || frames.dim(0) != 3 ||
      frames.dim(2) != o.height || frames.dim(3) != o.width) {
    return state_->Fail(InvalidArgument(
        {.what = "frames",
         .got = std::string(NameOf(frames.dtype())) + " " + frames.shape().ToString(),
         .wanted =
             "F32 [3, n, " + std::to_string(o.height) + ", " + std::to_string(o.width) + "]"}));
  }
  for (int64_t i = 0; i < frames.dim(1); ++i) {
    absl::Status status = state_->CheckFrame();
    if (status.ok()) status = FrameToRgb(frames.Select(1, i), state_->frames, state_->rgb);
    if (status.ok()) status = state_->Picture(state_->rgb);
    if (!status.ok()) return state_->Fail(status);
  }
  return absl::OkStatus();
}

absl::Status ClipWriter::AddFrame(std::span<const uint8_t> rgb) {
  H3RT_RETURN_IF_ERROR(state_->status);
  absl::Status status = state_->CheckFrame();
  if (status.ok() && rgb.size() != state_->rgb.size()) {
    status = InvalidArgument({.what = "bytes of a frame",
                              .got = std::to_string(rgb.size()),
                              .wanted = std::to_string(state_->rgb.size())});
  }
  if (status.ok()) status = state_->Picture(rgb);
  return status.ok() ? status : state_->Fail(status);
}

absl::Status ClipWriter::AddAudio(const ConstTensorView& samples) {
  H3RT_RETURN_IF_ERROR(state_->status);
  if (!state_->options.audio || samples.dtype() != DType::kF32 || samples.rank() != 2 ||
      samples.dim(0) != 2) {
    return state_->Fail(InvalidArgument(
        {.what = "sound",
         .got = std::string(NameOf(samples.dtype())) + " " + samples.shape().ToString(),
         .wanted = state_->options.audio ? "F32 [2, n]" : "none, the clip was opened without"}));
  }
  const absl::Status status = state_->Sound(samples);
  return status.ok() ? status : state_->Fail(status);
}

absl::StatusOr<WrittenClip> ClipWriter::Finish() {
  H3RT_RETURN_IF_ERROR(state_->status);
  const ClipOptions& o = state_->options;
  if (o.cancel != nullptr && o.cancel->cancelled()) {
    return state_->Fail(Cancelled("writing a clip"));
  }
  if (state_->frames != o.frames) {
    return state_->Fail(InvalidArgument({.what = "clip is incomplete",
                                         .got = std::to_string(state_->frames) + " frames",
                                         .wanted = std::to_string(o.frames)}));
  }
  if (o.audio) {
    const absl::Status status = state_->Silence();
    if (!status.ok()) return state_->Fail(status);
  }
  absl::StatusOr<WrittenClip> clip = state_->sink->Finish();
  if (!clip.ok()) return state_->Fail(clip.status());
  state_->status = FailedPrecondition({.what = "the clip is finished", .where = state_->path});
  state_->sink.reset();
  return clip;
}

absl::StatusOr<WrittenClip> WriteClip(const std::string& path, const ConstTensorView& video,
                                      const ConstTensorView& audio, ClipOptions options) {
  if (video.rank() != 4) {
    return InvalidArgument({.what = "frames",
                            .got = video.shape().ToString(),
                            .wanted = "F32 [3, frames, height, width]",
                            .where = path});
  }
  options.frames = video.dim(1);
  options.height = video.dim(2);
  options.width = video.dim(3);
  options.audio = !audio.is_null();
  H3RT_ASSIGN_OR_RETURN(ClipWriter writer, ClipWriter::Create(path, options));
  if (options.audio) H3RT_RETURN_IF_ERROR(writer.AddAudio(audio));
  H3RT_RETURN_IF_ERROR(writer.AddFrames(video));
  return writer.Finish();
}

}  // namespace h3rt
