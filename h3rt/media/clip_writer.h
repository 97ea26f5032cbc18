// Writes clips: MP4 through the FFmpeg part, or Y4M and WAV where there is none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/status.h"
#include "h3rt/media/clip_metadata.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

inline constexpr int64_t kClipFps = 24;
inline constexpr int64_t kClipSampleRate = 32000;  // Hz

// Samples a channel of a clip of `frames` pictures: round(frames * 32000 / 24), so that sound and
// pictures differ by less than one sample. 124 frames: 165,333; 328 frames: 437,333.
int64_t ClipSamples(int64_t frames);

struct ClipOptions {
  int64_t width = 0;   // even, 16 to 16384
  int64_t height = 0;  // even, 16 to 16384; width * height at most H.264's 35,651,584
  int64_t frames = 0;  // exactly this many must come
  bool audio = true;   // false: a silent file without a sound track
  int crf = 18;        // x264's constant quality, 0 (lossless, best) to 51
  ClipMetadata metadata = {};
  std::string video_encoder = {};       // FFmpeg's name; empty: libx264, else any for H.264
  const CancelToken* cancel = nullptr;  // checked between frames; must outlive the writer
};

struct WrittenClip {
  std::vector<std::string> files;  // the MP4, or the Y4M and the WAV
  bool fallback = false;
  std::string note;  // why the fallback was taken, for the user; empty otherwise
};

// Takes a clip piece by piece, pictures and sound in any order and any portions.
//
// A path that ends in .mp4, .m4v or .mov (in any case) gives an MP4: H.264 (x264 at constant
// quality, yuv420p, BT.709 in limited range, exactly 24 frames a second, one encoder thread),
// AAC-LC stereo 32 kHz at 192 kbit/s, index in front. The same input gives the same bytes for one
// build of FFmpeg on one kind of CPU, whatever the number of threads of the program. Where the
// FFmpeg part is absent, or when the path ends in .y4m, it gives NAME.y4m (24:1, C420mpeg2, limited
// range, BT.709) and NAME.wav (16-bit PCM, metadata as JSON in a chunk "h3rt").
//
// Sound is cut or filled with silence to ClipSamples(frames), since the audio VAE makes whole
// latents of 800 samples. Samples outside [-1, 1] are clamped.
//
// Nothing appears under the final name before Finish() returns OK; any error, a cancellation or the
// destructor leaves no file behind. After an error every call returns that error.
//
// Errors: kInvalidArgument (size, count, shape, extension, metadata), kDataLoss (NaN or infinity,
// with the frame or sample), kCancelled, kResourceExhausted (disk full), kNotFound or kUnavailable
// (folder missing or not writable), kFailedPrecondition (no H.264 encoder in FFmpeg).
class ClipWriter {
 public:
  static absl::StatusOr<ClipWriter> Create(const std::string& path, const ClipOptions& options);
  ClipWriter(ClipWriter&&) noexcept;
  ClipWriter& operator=(ClipWriter&&) noexcept;
  ~ClipWriter();

  // F32 [3, n, height, width] in [0, 1], any strides.
  absl::Status AddFrames(const ConstTensorView& frames);
  // One frame, height * width * 3 bytes of RGB.
  absl::Status AddFrame(std::span<const uint8_t> rgb);
  // F32 [2, n] in [-1, 1] at 32 kHz, any strides; row 0 is the left channel.
  absl::Status AddAudio(const ConstTensorView& samples);
  // kInvalidArgument when fewer frames came than promised. Ends the writer.
  absl::StatusOr<WrittenClip> Finish();

 private:
  struct State;
  explicit ClipWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A whole clip: video F32 [3, F, H, W]; audio F32 [2, n], or a null view for none. Width, height,
// frames and audio of `options` are taken from the views.
absl::StatusOr<WrittenClip> WriteClip(const std::string& path, const ConstTensorView& video,
                                      const ConstTensorView& audio, ClipOptions options);

// What ClipWriter::Create would say, without writing: so that the end of long work holds no
// surprise (extension, size, metadata, encoder, folder).
absl::Status CheckClipTarget(const std::string& path, const ClipOptions& options);

// The files that a clip of this name becomes on this machine: itself, or the Y4M and the WAV.
std::vector<std::string> ClipFiles(const std::string& path);

}  // namespace h3rt
