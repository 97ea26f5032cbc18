// What the files of the module share: FFmpeg's headers, owners for its objects, error texts. Only
// the module includes this.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <string>

#include "h3rt/media/media_abi.h"

namespace h3rt::ffmpeg {

struct FreeCodec {
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
};
struct FreeFrame {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
};
struct FreePacket {
  void operator()(AVPacket* p) const { av_packet_free(&p); }
};
struct FreeInput {
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
};
struct FreeSws {
  void operator()(SwsContext* p) const { sws_freeContext(p); }
};
struct FreeSwr {
  void operator()(SwrContext* p) const { swr_free(&p); }
};
struct FreeAv {
  void operator()(void* p) const { av_free(p); }
};
using CodecPtr = std::unique_ptr<AVCodecContext, FreeCodec>;
using FramePtr = std::unique_ptr<AVFrame, FreeFrame>;
using PacketPtr = std::unique_ptr<AVPacket, FreePacket>;
using InputPtr = std::unique_ptr<AVFormatContext, FreeInput>;
using SwsPtr = std::unique_ptr<SwsContext, FreeSws>;
using SwrPtr = std::unique_ptr<SwrContext, FreeSwr>;
using BytesPtr = std::unique_ptr<uint8_t, FreeAv>;

// Fills `error` and returns its code.
int32_t Fail(H3rtMediaError* error, int32_t code, const std::string& text);

// The same for an error number of FFmpeg: memory and disk, missing files, bad data and missing
// codecs have codes of their own; the rest has `otherwise`.
int32_t FailAv(H3rtMediaError* error, int averror, const std::string& what,
               int32_t otherwise = H3RT_MEDIA_INTERNAL);

int32_t OutOfMemory(H3rtMediaError* error);

// Converts a decoded picture to RGB24 rows of `row_bytes`, which must be a multiple of 64 with 64
// bytes of room after the last row (swscale writes whole vectors). Alpha is dropped, 16-bit samples
// keep their high byte. `sws` is made on first use and kept while pictures stay alike. JPEG's own
// colour rule (BT.601, full range) applies with `is_jpeg`; otherwise what the picture says, and
// BT.709 from 720 rows up or BT.601 below when it says nothing.
int32_t ToRgb(const AVFrame* frame, bool is_jpeg, SwsPtr* sws, uint8_t* rgb, int row_bytes,
              H3rtMediaError* error);

int32_t WriterOpen(const H3rtMediaClipSpec* spec, const H3rtMediaIo* io, H3rtMediaWriter** writer,
                   H3rtMediaError* error);
int32_t WriterVideo(H3rtMediaWriter* writer, const H3rtMediaYuv* picture, H3rtMediaError* error);
int32_t WriterAudio(H3rtMediaWriter* writer, const float* left, const float* right, int64_t samples,
                    H3rtMediaError* error);
int32_t WriterFinish(H3rtMediaWriter* writer, H3rtMediaError* error);
void WriterFree(H3rtMediaWriter* writer);
int32_t ReadClip(const char* path, int32_t sample_rate, const H3rtMediaClipSink* sink,
                 H3rtMediaError* error);
int32_t EncodePng(const uint8_t* rgb, int64_t width, int64_t height,
                  int32_t (*emit)(void* user, const uint8_t* data, int64_t bytes), void* user,
                  H3rtMediaError* error);
int32_t DecodeImage(int32_t kind, const uint8_t* data, int64_t bytes, int64_t max_pixels,
                    uint8_t* (*allocate)(void* user, int64_t width, int64_t height), void* user,
                    H3rtMediaError* error);

}  // namespace h3rt::ffmpeg
