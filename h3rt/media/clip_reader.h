// Reads clips and sound files through the FFmpeg part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/status.h"
#include "h3rt/media/clip_metadata.h"
#include "h3rt/media/pixels.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

struct ClipReadOptions {
  bool video = true;  // false: skip the pictures
  bool audio = true;
  int64_t sample_rate = 32000;           // Hz that sound is resampled to
  int64_t max_frames = 0;                // 0: all; otherwise the rest is not kept
  int64_t max_bytes = int64_t{8} << 30;  // of pictures and sound together
  const CancelToken* cancel = nullptr;
};

struct Clip {
  bool has_video = false;
  bool has_audio = false;
  int64_t width = 0;
  int64_t height = 0;
  int64_t fps_num = 0;  // average rate that the file states, a fraction
  int64_t fps_den = 1;
  int64_t declared_frames = 0;  // 0 when the file does not say
  double video_duration_s = 0;
  double audio_duration_s = 0;
  int64_t source_sample_rate = 0;  // Hz, before resampling
  int64_t source_channels = 0;
  std::string container;
  std::string video_codec;
  std::string pixel_format;
  std::string color_space;
  std::string color_range;
  std::string audio_codec;
  std::string audio_profile;
  ClipTags tags;

  std::vector<RgbImage> frames;
  std::vector<double> frame_times_s;  // presentation time, -1 when the file does not say
  Tensor audio;                       // F32 [2, n] at the rate asked for, empty without sound
};

// Decodes the best video and the best sound stream of a local file (any that FFmpeg reads; pictures
// and rotation as stored, no scaling). Sound comes as stereo; a mono source is repeated in both
// channels, more than two are mixed down by FFmpeg's rule.
// Errors: kFailedPrecondition without FFmpeg; kNotFound or kUnavailable; kDataLoss for what is not
// a clip or is damaged; kUnimplemented for a codec that FFmpeg lacks; kResourceExhausted past
// max_bytes; kCancelled.
absl::StatusOr<Clip> ReadClip(const std::string& path, const ClipReadOptions& options);

// What the clip says about itself: of an MP4 through the FFmpeg part, of a .wav of the fallback
// without it. kNotFound when the file is no clip by h3rt.
absl::StatusOr<ClipMetadata> ReadClipMetadata(const std::string& path);

}  // namespace h3rt
