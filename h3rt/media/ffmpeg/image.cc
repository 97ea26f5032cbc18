// Single pictures: PNG out, PNG, JPEG and WebP in; and decoded pictures to RGB.
#include <cerrno>
#include <cstring>

#include "h3rt/media/ffmpeg/ffmpeg_util.h"

namespace h3rt::ffmpeg {
namespace {

// How the samples of a packed picture become R, G and B: bytes a pixel and the place of each.
struct Packed {
  AVPixelFormat format;
  int step;
  int r;
  int g;
  int b;
};

// Big-endian 16-bit samples keep their first, high byte.
constexpr Packed kPacked[] = {
    {AV_PIX_FMT_RGB24, 3, 0, 1, 2},    {AV_PIX_FMT_BGR24, 3, 2, 1, 0},
    {AV_PIX_FMT_RGBA, 4, 0, 1, 2},     {AV_PIX_FMT_GRAY8, 1, 0, 0, 0},
    {AV_PIX_FMT_YA8, 2, 0, 0, 0},      {AV_PIX_FMT_GRAY16BE, 2, 0, 0, 0},
    {AV_PIX_FMT_YA16BE, 4, 0, 0, 0},   {AV_PIX_FMT_RGB48BE, 6, 0, 2, 4},
    {AV_PIX_FMT_RGBA64BE, 8, 0, 2, 4},
};

// The formats of PNG, copied rather than scaled: swscale would dither, or blend alpha.
bool CopyPacked(const AVFrame* frame, uint8_t* rgb, int row_bytes) {
  const Packed* packed = nullptr;
  for (const Packed& p : kPacked) {
    if (p.format == frame->format) packed = &p;
  }
  const bool palette = frame->format == AV_PIX_FMT_PAL8;
  const bool bits = frame->format == AV_PIX_FMT_MONOBLACK;
  if (packed == nullptr && !palette && !bits) return false;
  for (int y = 0; y < frame->height; ++y) {
    const uint8_t* from = frame->data[0] + static_cast<ptrdiff_t>(y) * frame->linesize[0];
    uint8_t* to = rgb + static_cast<ptrdiff_t>(y) * row_bytes;
    for (int x = 0; x < frame->width; ++x, to += 3) {
      if (palette) {
        uint32_t color = 0;  // native-endian ARGB
        std::memcpy(&color, frame->data[1] + 4 * from[x], sizeof(color));
        to[0] = static_cast<uint8_t>(color >> 16);
        to[1] = static_cast<uint8_t>(color >> 8);
        to[2] = static_cast<uint8_t>(color);
      } else if (bits) {
        to[0] = to[1] = to[2] = (from[x / 8] >> (7 - x % 8) & 1) != 0 ? 255 : 0;
      } else {
        const uint8_t* pixel = from + static_cast<ptrdiff_t>(x) * packed->step;
        to[0] = pixel[packed->r];
        to[1] = pixel[packed->g];
        to[2] = pixel[packed->b];
      }
    }
  }
  return true;
}

// The deprecated full-range formats by their plain names; swscale takes the range apart from them.
AVPixelFormat PlainFormat(AVPixelFormat format, bool* full_range) {
  *full_range = true;
  switch (format) {
    case AV_PIX_FMT_YUVJ420P:
      return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
      return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P:
      return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P:
      return AV_PIX_FMT_YUV440P;
    default:
      *full_range = false;
      return format;
  }
}

int MatrixOf(const AVFrame* frame, bool is_jpeg) {
  if (is_jpeg) return SWS_CS_ITU601;
  switch (frame->colorspace) {
    case AVCOL_SPC_BT709:
      return SWS_CS_ITU709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
      return SWS_CS_ITU601;
    case AVCOL_SPC_SMPTE240M:
      return SWS_CS_SMPTE240M;
    case AVCOL_SPC_FCC:
      return SWS_CS_FCC;
    case AVCOL_SPC_BT2020_NCL:
      return SWS_CS_BT2020;
    default:
      return frame->height >= 720 ? SWS_CS_ITU709 : SWS_CS_ITU601;
  }
}

const AVCodec* DecoderOf(int32_t kind) {
  switch (kind) {
    case H3RT_MEDIA_IMAGE_PNG:
      return avcodec_find_decoder(AV_CODEC_ID_PNG);
    case H3RT_MEDIA_IMAGE_JPEG:
      return avcodec_find_decoder(AV_CODEC_ID_MJPEG);
    case H3RT_MEDIA_IMAGE_WEBP:
      return avcodec_find_decoder(AV_CODEC_ID_WEBP);
    default:
      return nullptr;
  }
}

int32_t DecodeOne(AVCodecContext* codec, const uint8_t* data, int64_t bytes, AVFrame* frame,
                  H3rtMediaError* error) {
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr || av_new_packet(packet.get(), static_cast<int>(bytes)) < 0) {
    return OutOfMemory(error);
  }
  std::memcpy(packet->data, data, static_cast<size_t>(bytes));
  int result = avcodec_send_packet(codec, packet.get());
  if (result >= 0) result = avcodec_send_packet(codec, nullptr);
  if (result >= 0) result = avcodec_receive_frame(codec, frame);
  if (result < 0) return FailAv(error, result, "cannot decode the picture", H3RT_MEDIA_DATA_LOSS);
  if (frame->decode_error_flags != 0) {
    return Fail(error, H3RT_MEDIA_DATA_LOSS, "the picture is damaged");
  }
  return H3RT_MEDIA_OK;
}

}  // namespace

int32_t ToRgb(const AVFrame* frame, bool is_jpeg, SwsPtr* sws, uint8_t* rgb, int row_bytes,
              H3rtMediaError* error) {
  if (CopyPacked(frame, rgb, row_bytes)) return H3RT_MEDIA_OK;
  bool full_range = false;
  const AVPixelFormat format = PlainFormat(static_cast<AVPixelFormat>(frame->format), &full_range);
  full_range = full_range || is_jpeg || frame->color_range == AVCOL_RANGE_JPEG;
  constexpr int kFlags =
      SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT;
  sws->reset(sws_getCachedContext(sws->release(), frame->width, frame->height, format, frame->width,
                                  frame->height, AV_PIX_FMT_RGB24, kFlags, nullptr, nullptr,
                                  nullptr));
  if (*sws == nullptr) {
    const char* name = av_get_pix_fmt_name(format);
    return Fail(error, H3RT_MEDIA_UNIMPLEMENTED,
                std::string("no conversion to RGB from ") + (name == nullptr ? "?" : name));
  }
  const int* matrix = sws_getCoefficients(MatrixOf(frame, is_jpeg));
  sws_setColorspaceDetails(sws->get(), matrix, full_range ? 1 : 0, matrix, 1, 0, 1 << 16, 1 << 16);
  uint8_t* planes[4] = {rgb, nullptr, nullptr, nullptr};
  const int strides[4] = {row_bytes, 0, 0, 0};
  const int rows =
      sws_scale(sws->get(), frame->data, frame->linesize, 0, frame->height, planes, strides);
  return rows == frame->height ? H3RT_MEDIA_OK
                               : Fail(error, H3RT_MEDIA_INTERNAL, "cannot convert to RGB");
}

int32_t EncodePng(const uint8_t* rgb, int64_t width, int64_t height,
                  int32_t (*emit)(void* user, const uint8_t* data, int64_t bytes), void* user,
                  H3rtMediaError* error) {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
  if (codec == nullptr) {
    return Fail(error, H3RT_MEDIA_FAILED_PRECONDITION, "this FFmpeg has no PNG encoder");
  }
  CodecPtr context(avcodec_alloc_context3(codec));
  FramePtr frame(av_frame_alloc());
  PacketPtr packet(av_packet_alloc());
  if (context == nullptr || frame == nullptr || packet == nullptr) return OutOfMemory(error);
  context->width = static_cast<int>(width);
  context->height = static_cast<int>(height);
  context->pix_fmt = AV_PIX_FMT_RGB24;
  context->time_base = {1, 1};
  context->thread_count = 1;
  context->flags |= AV_CODEC_FLAG_BITEXACT;
  av_opt_set(context->priv_data, "pred", "mixed", 0);
  int result = avcodec_open2(context.get(), codec, nullptr);
  if (result < 0) return FailAv(error, result, "cannot open the PNG encoder");
  frame->format = AV_PIX_FMT_RGB24;
  frame->width = context->width;
  frame->height = context->height;
  frame->pts = 0;
  if (av_frame_get_buffer(frame.get(), 0) < 0) return OutOfMemory(error);
  for (int64_t y = 0; y < height; ++y) {
    std::memcpy(frame->data[0] + y * frame->linesize[0], rgb + y * width * 3,
                static_cast<size_t>(width * 3));
  }
  result = avcodec_send_frame(context.get(), frame.get());
  if (result >= 0) result = avcodec_send_frame(context.get(), nullptr);
  if (result >= 0) result = avcodec_receive_packet(context.get(), packet.get());
  if (result < 0) return FailAv(error, result, "cannot encode a PNG picture");
  const int32_t code = emit(user, packet->data, packet->size);
  return code == H3RT_MEDIA_OK ? code : Fail(error, code, "the caller stopped the write");
}

int32_t DecodeImage(int32_t kind, const uint8_t* data, int64_t bytes, int64_t max_pixels,
                    uint8_t* (*allocate)(void* user, int64_t width, int64_t height), void* user,
                    H3rtMediaError* error) {
  const AVCodec* codec = DecoderOf(kind);
  if (codec == nullptr) {
    return Fail(error, H3RT_MEDIA_FAILED_PRECONDITION,
                "this FFmpeg has no decoder for this kind of picture");
  }
  CodecPtr context(avcodec_alloc_context3(codec));
  FramePtr frame(av_frame_alloc());
  if (context == nullptr || frame == nullptr) return OutOfMemory(error);
  context->max_pixels = max_pixels;
  context->thread_count = 1;
  context->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK;
  int result = avcodec_open2(context.get(), codec, nullptr);
  if (result < 0) return FailAv(error, result, "cannot open the picture decoder");
  int32_t code = DecodeOne(context.get(), data, bytes, frame.get(), error);
  if (code != H3RT_MEDIA_OK) return code;
  const int row_bytes = (frame->width * 3 + 63) / 64 * 64;
  const BytesPtr rgb(static_cast<uint8_t*>(
      av_malloc(static_cast<size_t>(row_bytes) * static_cast<size_t>(frame->height) + 64)));
  if (rgb == nullptr) return OutOfMemory(error);
  SwsPtr sws;
  code = ToRgb(frame.get(), kind == H3RT_MEDIA_IMAGE_JPEG, &sws, rgb.get(), row_bytes, error);
  if (code != H3RT_MEDIA_OK) return code;
  uint8_t* to = allocate(user, frame->width, frame->height);
  if (to == nullptr) return Fail(error, H3RT_MEDIA_RESOURCE_EXHAUSTED, "no memory for the picture");
  for (int64_t y = 0; y < frame->height; ++y) {
    std::memcpy(to + y * frame->width * 3, rgb.get() + y * row_bytes,
                static_cast<size_t>(frame->width) * 3);
  }
  return H3RT_MEDIA_OK;
}

}  // namespace h3rt::ffmpeg
