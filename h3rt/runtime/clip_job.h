// From a request to files: what `generate` and the service both run.
#pragma once

#include <string>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/runtime/progress.h"
#include "h3rt/runtime/request.h"
#include "h3rt/runtime/session.h"

namespace h3rt {

// Where results go; an empty path: not written.
struct ClipOutputs {
  std::string clip;     // .mp4, .m4v, .mov or .y4m
  std::string sheet;    // contact sheet, PNG
  std::string frames;   // folder of PNG frames
  std::string wav;      // the sound alone
  std::string latents;  // safetensors
  // Files and folders that must not be written to: what the request reads, and the model.
  std::vector<std::string> inputs = {};
};

// Everything that can be said of the outputs before the work: kinds of files, sizes, encoders,
// folders that are not there, two outputs of one name, an output that would replace an input or lie
// inside the model. Writes nothing.
absl::Status CheckOutputs(const ClipOutputs& outputs, const GenerateRequest& request);

struct ClipJobResult {
  std::vector<std::string> files;  // in the order in which they were written
  std::vector<std::string> notes;  // for the user: fallbacks taken
  std::vector<StageTime> stages;   // those of the session, then "write"
};

// Checks that every output can be written, runs the request, writes the outputs. Each file appears
// under its name only when it is complete; after an error or a cancellation those not yet complete
// are not there.
absl::StatusOr<ClipJobResult> RunClipJob(Session& session, const GenerateRequest& request,
                                         const ClipOutputs& outputs, const ProgressSink& progress,
                                         const CancelToken* cancel);

}  // namespace h3rt
