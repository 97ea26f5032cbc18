// The table of functions that the module exports, FFmpeg's log, and error texts.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "h3rt/media/ffmpeg/ffmpeg_util.h"

namespace h3rt::ffmpeg {
namespace {

std::atomic<void (*)(const char*)> log_function{nullptr};

// FFmpeg may hand over a line in pieces; the pieces of one thread belong together.
struct LogState {
  char line[1024] = {};
  size_t used = 0;
  int print_prefix = 1;
};

void OnLog(void* context, int level, const char* format, va_list arguments) {
  void (*log)(const char*) = log_function.load();
  if (log == nullptr || level > AV_LOG_INFO) return;
  thread_local LogState state;
  char piece[1024];
  av_log_format_line2(context, level, format, arguments, piece, sizeof(piece), &state.print_prefix);
  for (const char* c = piece; *c != '\0'; ++c) {
    if (*c != '\n' && state.used + 1 < sizeof(state.line)) state.line[state.used++] = *c;
    if (*c != '\n') continue;
    state.line[state.used] = '\0';
    if (state.used > 0) log(state.line);
    state.used = 0;
  }
}

void SetLog(void (*log)(const char* line)) {
  log_function.store(log);
  av_log_set_callback(&OnLog);
}

const char* Version() {
  static char text[160];
  static const int made =
      std::snprintf(text, sizeof(text), "FFmpeg %s, libavformat %u.%u, libavcodec %u.%u",
                    av_version_info(), avformat_version() >> 16, (avformat_version() >> 8) & 0xff,
                    avcodec_version() >> 16, (avcodec_version() >> 8) & 0xff);
  return made > 0 ? text : "FFmpeg";
}

}  // namespace

int32_t Fail(H3rtMediaError* error, int32_t code, const std::string& text) {
  error->code = code;
  std::snprintf(error->text, sizeof(error->text), "%s", text.c_str());
  return code;
}

int32_t FailAv(H3rtMediaError* error, int averror, const std::string& what, int32_t otherwise) {
  int32_t code = otherwise;
  if (averror == AVERROR(ENOMEM) || averror == AVERROR(ENOSPC) || averror == AVERROR(EDQUOT) ||
      averror == AVERROR(EFBIG)) {
    code = H3RT_MEDIA_RESOURCE_EXHAUSTED;
  } else if (averror == AVERROR(ENOENT)) {
    code = H3RT_MEDIA_NOT_FOUND;
  } else if (averror == AVERROR(EIO) || averror == AVERROR(EACCES) || averror == AVERROR(EISDIR)) {
    code = H3RT_MEDIA_UNAVAILABLE;
  } else if (averror == AVERROR_INVALIDDATA || averror == AVERROR_EOF) {
    code = H3RT_MEDIA_DATA_LOSS;
  } else if (averror == AVERROR_PATCHWELCOME) {
    code = H3RT_MEDIA_UNIMPLEMENTED;
  }
  char reason[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(averror, reason, sizeof(reason));
  return Fail(error, code, what + ": " + reason);
}

int32_t OutOfMemory(H3rtMediaError* error) {
  return Fail(error, H3RT_MEDIA_RESOURCE_EXHAUSTED, "out of memory in the FFmpeg part");
}

}  // namespace h3rt::ffmpeg

extern "C" __attribute__((visibility("default"))) const H3rtMediaApi* h3rt_media_get_api(
    uint32_t abi_version) {
  static const H3rtMediaApi api = {
      H3RT_MEDIA_ABI_VERSION,     sizeof(H3rtMediaApi),        &h3rt::ffmpeg::Version,
      &h3rt::ffmpeg::SetLog,      &h3rt::ffmpeg::WriterOpen,   &h3rt::ffmpeg::WriterVideo,
      &h3rt::ffmpeg::WriterAudio, &h3rt::ffmpeg::WriterFinish, &h3rt::ffmpeg::WriterFree,
      &h3rt::ffmpeg::ReadClip,    &h3rt::ffmpeg::EncodePng,    &h3rt::ffmpeg::DecodeImage};
  return abi_version == H3RT_MEDIA_ABI_VERSION ? &api : nullptr;
}
