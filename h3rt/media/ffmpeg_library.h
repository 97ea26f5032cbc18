// Finds and loads the module that holds FFmpeg (libh3rt_media.so), on first use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/media/media_abi.h"

namespace h3rt {

// The functions of the module, loaded once and kept for the life of the process. Searched in this
// order: the file that H3RT_MEDIA_LIBRARY names (then nothing else is tried; "none" means run
// without FFmpeg), beside the running program, in ../lib beside it and, for a program that lies
// inside the build folder, in the build folder's lib.
//
// Errors: kFailedPrecondition whose message can be shown to a person ("FFmpeg part not found:
// looked in ..."), also for a module that does not load or has another interface version. A failure
// is not remembered, so a later call tries again. Safe from any thread.
absl::StatusOr<const H3rtMediaApi*> FfmpegApi();

// One line with the versions of FFmpeg's libraries, or why there are none; for `doctor`.
absl::StatusOr<std::string> FfmpegVersion();

// The files that FfmpegApi tries, in order, for a program at `program_path`; `wanted` is the value
// of H3RT_MEDIA_LIBRARY. Apart for tests.
std::vector<std::string> FfmpegSearchPaths(std::string_view program_path, std::string_view wanted);

// The error of a call into the module as a status; `where` names the file.
absl::Status StatusOfModule(const H3rtMediaError& error, std::string_view where);

}  // namespace h3rt
