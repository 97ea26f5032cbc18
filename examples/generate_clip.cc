// A clip from a prompt with the library alone: open a session, run a request, write the files.
//   generate_clip MODEL_DIR OUT.mp4
#include <cstdio>

#include "h3rt/runtime/clip_job.h"
#include "h3rt/runtime/session.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: generate_clip MODEL_DIR OUT.mp4\n");
    return 2;
  }
  auto session = h3rt::Session::Open(argv[1], {});
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", h3rt::MessageOf(session.status()).c_str());
    return 1;
  }
  h3rt::GenerateRequest request;
  request.prompt = "a red circle moves left on a dark background";
  request.width = 64;
  request.height = 64;
  request.frames = 22;  // 17 k + 5
  request.forwards = 2;
  request.seed = 7;
  h3rt::ClipOutputs outputs;
  outputs.clip = argv[2];
  const auto progress = [](const h3rt::ProgressEvent& event) {
    std::fprintf(stderr, "%s\n", h3rt::FormatProgress(event).c_str());
  };
  const auto job = h3rt::RunClipJob(**session, request, outputs, progress, /*cancel=*/nullptr);
  if (!job.ok()) {
    std::fprintf(stderr, "%s\n", h3rt::MessageOf(job.status()).c_str());
    return 1;
  }
  for (const std::string& file : job->files) std::printf("%s\n", file.c_str());
  return 0;
}
