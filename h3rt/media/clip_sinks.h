// Where the pictures and sound of a ClipWriter go. Internal to the media library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "h3rt/base/status.h"
#include "h3rt/media/clip_writer.h"
#include "h3rt/media/media_abi.h"
#include "h3rt/media/pixels.h"

namespace h3rt {

// Gets exactly options.frames pictures and ClipSamples(frames) finite samples in [-1, 1]; then
// Finish. Destruction without Finish removes what was written.
class ClipSink {
 public:
  virtual ~ClipSink() = default;
  virtual absl::Status AddPicture(const Yuv420& picture) = 0;
  virtual absl::Status AddSound(const float* left, const float* right, int64_t samples) = 0;
  virtual absl::StatusOr<WrittenClip> Finish() = 0;
};

absl::StatusOr<std::unique_ptr<ClipSink>> MakeMp4Sink(const H3rtMediaApi* api,
                                                      const std::string& path,
                                                      const ClipOptions& options);
// `stem` is the path without its extension; `note` says why this sink was taken.
absl::StatusOr<std::unique_ptr<ClipSink>> MakeY4mSink(const std::string& stem,
                                                      const ClipOptions& options,
                                                      const std::string& note);

}  // namespace h3rt
