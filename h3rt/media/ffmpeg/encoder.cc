// MP4: H.264 and AAC-LC, written through the caller's file.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "h3rt/media/ffmpeg/ffmpeg_util.h"

#if LIBAVFORMAT_VERSION_MAJOR >= 61
using IoByte = const uint8_t;  // FFmpeg 7 made the data of a write callback const
#else
using IoByte = uint8_t;
#endif

struct H3rtMediaWriter {
  H3rtMediaIo io = {};
  int64_t position = 0;
  int64_t size = 0;
  int64_t read_position = 0;
  AVFormatContext* format = nullptr;
  h3rt::ffmpeg::CodecPtr video;
  h3rt::ffmpeg::CodecPtr audio;
  AVStream* video_stream = nullptr;
  AVStream* audio_stream = nullptr;
  h3rt::ffmpeg::FramePtr picture;
  h3rt::ffmpeg::FramePtr sound;  // filled up to sound_used samples
  h3rt::ffmpeg::PacketPtr packet;
  int sound_used = 0;
  int64_t frames = 0;
  int64_t samples = 0;
};

namespace h3rt::ffmpeg {
namespace {

constexpr int kIoBytes = 1 << 18;

int OnWrite(void* opaque, IoByte* data, int bytes) {
  auto* writer = static_cast<H3rtMediaWriter*>(opaque);
  const int64_t n = writer->io.write_at(writer->io.user, writer->position, data, bytes);
  if (n < 0) return AVERROR(static_cast<int>(-n));
  writer->position += n;
  writer->size = std::max(writer->size, writer->position);
  return static_cast<int>(n);
}

int OnRead(void* opaque, uint8_t* data, int bytes) {
  auto* writer = static_cast<H3rtMediaWriter*>(opaque);
  const int64_t n = writer->io.read_at(writer->io.user, writer->read_position, data, bytes);
  if (n < 0) return AVERROR(static_cast<int>(-n));
  if (n == 0) return AVERROR_EOF;
  writer->read_position += n;
  return static_cast<int>(n);
}

int64_t Seek(int64_t* position, int64_t size, int64_t offset, int whence) {
  switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
      return size;
    case SEEK_SET:
      return *position = offset;
    case SEEK_CUR:
      return *position += offset;
    case SEEK_END:
      return *position = size + offset;
    default:
      return AVERROR(EINVAL);
  }
}

int64_t OnWriteSeek(void* opaque, int64_t offset, int whence) {
  auto* writer = static_cast<H3rtMediaWriter*>(opaque);
  return Seek(&writer->position, writer->size, offset, whence);
}

int64_t OnReadSeek(void* opaque, int64_t offset, int whence) {
  auto* writer = static_cast<H3rtMediaWriter*>(opaque);
  return Seek(&writer->read_position, writer->size, offset, whence);
}

AVIOContext* MakeIo(H3rtMediaWriter* writer, bool write) {
  auto* buffer = static_cast<uint8_t*>(av_malloc(kIoBytes));
  if (buffer == nullptr) return nullptr;
  AVIOContext* io =
      avio_alloc_context(buffer, kIoBytes, write ? 1 : 0, writer, write ? nullptr : &OnRead,
                         write ? &OnWrite : nullptr, write ? &OnWriteSeek : &OnReadSeek);
  if (io == nullptr) av_free(buffer);
  return io;
}

void FreeIo(AVIOContext* io) {
  if (io == nullptr) return;
  av_freep(&io->buffer);
  avio_context_free(&io);
}

// Moving the index to the front reads the file back while it is still being written.
int OnIoOpen(AVFormatContext* format, AVIOContext** io, const char* /*url*/, int flags,
             AVDictionary** /*options*/) {
  if ((flags & AVIO_FLAG_WRITE) != 0) return AVERROR(ENOSYS);
  auto* writer = static_cast<H3rtMediaWriter*>(format->opaque);
  writer->read_position = 0;
  *io = MakeIo(writer, /*write=*/false);
  return *io == nullptr ? AVERROR(ENOMEM) : 0;
}

int OnIoClose(AVFormatContext* /*format*/, AVIOContext* io) {
  FreeIo(io);
  return 0;
}

const AVCodec* FindVideoEncoder(const char* asked) {
  if (asked != nullptr) return avcodec_find_encoder_by_name(asked);
  for (const char* name : {"libx264", "libopenh264"}) {
    if (const AVCodec* codec = avcodec_find_encoder_by_name(name); codec != nullptr) return codec;
  }
  return avcodec_find_encoder(AV_CODEC_ID_H264);
}

int32_t OpenVideo(H3rtMediaWriter* writer, const H3rtMediaClipSpec& spec, H3rtMediaError* error) {
  const AVCodec* codec = FindVideoEncoder(spec.video_encoder);
  if (codec == nullptr || codec->id != AV_CODEC_ID_H264) {
    return Fail(error, H3RT_MEDIA_FAILED_PRECONDITION,
                "this FFmpeg has no H.264 encoder " + std::string(spec.video_encoder == nullptr
                                                                      ? "(libx264 is the usual one)"
                                                                      : spec.video_encoder));
  }
  writer->video.reset(avcodec_alloc_context3(codec));
  AVCodecContext* video = writer->video.get();
  if (video == nullptr) return OutOfMemory(error);
  video->width = spec.width;
  video->height = spec.height;
  video->pix_fmt = AV_PIX_FMT_YUV420P;
  video->time_base = {spec.fps_den, spec.fps_num};
  video->framerate = {spec.fps_num, spec.fps_den};
  video->gop_size = 2 * spec.fps_num / spec.fps_den;  // two seconds, so that players seek well
  video->color_range = AVCOL_RANGE_MPEG;
  video->color_primaries = AVCOL_PRI_BT709;
  video->color_trc = AVCOL_TRC_BT709;
  video->colorspace = AVCOL_SPC_BT709;
  video->chroma_sample_location = AVCHROMA_LOC_LEFT;
  video->sample_aspect_ratio = {1, 1};
  // One thread: the rate control of several looks ahead differently, which changes bytes.
  video->thread_count = 1;
  video->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
  if (std::strcmp(codec->name, "libx264") == 0) {
    av_opt_set(video->priv_data, "preset", "medium", 0);
    av_opt_set(video->priv_data, "crf", std::to_string(spec.crf).c_str(), 0);
  } else {
    // Encoders without a constant-quality mode: a fifth of a bit a pixel.
    video->bit_rate =
        static_cast<int64_t>(spec.width) * spec.height * spec.fps_num / spec.fps_den / 5;
  }
  if (const int result = avcodec_open2(video, codec, nullptr); result < 0) {
    return FailAv(error, result, "cannot open the H.264 encoder " + std::string(codec->name),
                  H3RT_MEDIA_FAILED_PRECONDITION);
  }
  return H3RT_MEDIA_OK;
}

int32_t OpenAudio(H3rtMediaWriter* writer, const H3rtMediaClipSpec& spec, H3rtMediaError* error) {
  const AVCodec* codec = avcodec_find_encoder_by_name("aac");
  if (codec == nullptr) {
    return Fail(error, H3RT_MEDIA_FAILED_PRECONDITION, "this FFmpeg has no AAC encoder (aac)");
  }
  writer->audio.reset(avcodec_alloc_context3(codec));
  AVCodecContext* audio = writer->audio.get();
  if (audio == nullptr) return OutOfMemory(error);
  av_channel_layout_default(&audio->ch_layout, 2);
  audio->sample_fmt = AV_SAMPLE_FMT_FLTP;
  audio->sample_rate = spec.sample_rate;
  audio->bit_rate = spec.audio_bits_per_second;
  audio->time_base = {1, spec.sample_rate};
  audio->profile = 1;  // AAC-LC; the constant's name changed between versions
  audio->thread_count = 1;
  audio->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
  if (const int result = avcodec_open2(audio, codec, nullptr); result < 0) {
    return FailAv(error, result, "cannot open the AAC encoder", H3RT_MEDIA_FAILED_PRECONDITION);
  }
  writer->sound.reset(av_frame_alloc());
  AVFrame* sound = writer->sound.get();
  if (sound == nullptr) return OutOfMemory(error);
  sound->format = audio->sample_fmt;
  sound->sample_rate = audio->sample_rate;
  sound->nb_samples = audio->frame_size;
  if (av_channel_layout_copy(&sound->ch_layout, &audio->ch_layout) < 0 ||
      av_frame_get_buffer(sound, 0) < 0) {
    return OutOfMemory(error);
  }
  return H3RT_MEDIA_OK;
}

AVStream* AddStream(AVFormatContext* format, const AVCodecContext* codec) {
  AVStream* stream = avformat_new_stream(format, nullptr);
  if (stream == nullptr) return nullptr;
  stream->time_base = codec->time_base;
  if (codec->codec_type == AVMEDIA_TYPE_VIDEO) {
    stream->avg_frame_rate = codec->framerate;
    stream->r_frame_rate = codec->framerate;
    stream->sample_aspect_ratio = codec->sample_aspect_ratio;
  }
  return avcodec_parameters_from_context(stream->codecpar, codec) < 0 ? nullptr : stream;
}

int32_t OpenFile(H3rtMediaWriter* writer, const H3rtMediaClipSpec& spec, H3rtMediaError* error) {
  int result = avformat_alloc_output_context2(&writer->format, nullptr, "mp4", "clip.mp4");
  if (result < 0) {
    return FailAv(error, result, "this FFmpeg cannot write MP4", H3RT_MEDIA_FAILED_PRECONDITION);
  }
  AVFormatContext* format = writer->format;
  format->opaque = writer;
  format->io_open = &OnIoOpen;
  format->io_close2 = &OnIoClose;
  format->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
  // Sound may come after all pictures; packets wait as long as it takes to interleave them.
  format->max_interleave_delta = 0;
  format->pb = MakeIo(writer, /*write=*/true);
  writer->packet.reset(av_packet_alloc());
  if (format->pb == nullptr || writer->packet == nullptr) return OutOfMemory(error);
  writer->video_stream = AddStream(format, writer->video.get());
  if (writer->audio != nullptr) writer->audio_stream = AddStream(format, writer->audio.get());
  if (writer->video_stream == nullptr ||
      (writer->audio != nullptr && writer->audio_stream == nullptr)) {
    return OutOfMemory(error);
  }
  for (int64_t i = 0; i < spec.tag_count; ++i) {
    if (av_dict_set(&format->metadata, spec.tags[i].key, spec.tags[i].value, 0) < 0) {
      return OutOfMemory(error);
    }
  }
  AVDictionary* options = nullptr;
  // A common multiple of 24 and 32,000, so that neither duration is rounded; the default counts
  // milliseconds.
  av_dict_set(&options, "movie_timescale", "96000", 0);
  av_dict_set(&options, "movflags", "+faststart+use_metadata_tags", 0);
  result = avformat_write_header(format, &options);
  av_dict_free(&options);
  return result < 0 ? FailAv(error, result, "cannot begin the MP4 file") : H3RT_MEDIA_OK;
}

// Sends a frame (null: the end) and writes the packets that are ready.
int32_t Encode(H3rtMediaWriter* writer, AVCodecContext* codec, AVStream* stream, AVFrame* frame,
               H3rtMediaError* error) {
  const char* what =
      codec->codec_type == AVMEDIA_TYPE_VIDEO ? "cannot encode video" : "cannot encode audio";
  int result = avcodec_send_frame(codec, frame);
  if (result < 0) return FailAv(error, result, what);
  for (;;) {
    result = avcodec_receive_packet(codec, writer->packet.get());
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return H3RT_MEDIA_OK;
    if (result < 0) return FailAv(error, result, what);
    AVPacket* packet = writer->packet.get();
    packet->stream_index = stream->index;
    // An encoder without durations would leave the length of the last picture open.
    if (packet->duration == 0 && codec->codec_type == AVMEDIA_TYPE_VIDEO) packet->duration = 1;
    av_packet_rescale_ts(packet, codec->time_base, stream->time_base);
    result = av_interleaved_write_frame(writer->format, packet);
    if (result < 0) return FailAv(error, result, "cannot write the MP4 file");
  }
}

int32_t EncodeSound(H3rtMediaWriter* writer, H3rtMediaError* error) {
  AVFrame* sound = writer->sound.get();
  sound->nb_samples = writer->sound_used;
  sound->pts = writer->samples;
  writer->samples += writer->sound_used;
  writer->sound_used = 0;
  return Encode(writer, writer->audio.get(), writer->audio_stream, sound, error);
}

void CopyPlane(AVFrame* frame, int plane, const uint8_t* from, int width, int height) {
  for (int y = 0; y < height; ++y) {
    std::memcpy(frame->data[plane] + static_cast<ptrdiff_t>(y) * frame->linesize[plane],
                from + static_cast<ptrdiff_t>(y) * width, static_cast<size_t>(width));
  }
}

}  // namespace

int32_t WriterOpen(const H3rtMediaClipSpec* spec, const H3rtMediaIo* io, H3rtMediaWriter** out,
                   H3rtMediaError* error) {
  *out = nullptr;
  auto* writer = new (std::nothrow) H3rtMediaWriter;
  if (writer == nullptr) return OutOfMemory(error);
  writer->io = *io;
  int32_t code = OpenVideo(writer, *spec, error);
  if (code == H3RT_MEDIA_OK && spec->has_audio != 0) code = OpenAudio(writer, *spec, error);
  if (code == H3RT_MEDIA_OK) code = OpenFile(writer, *spec, error);
  if (code == H3RT_MEDIA_OK) {
    writer->picture.reset(av_frame_alloc());
    AVFrame* picture = writer->picture.get();
    if (picture == nullptr) code = OutOfMemory(error);
    if (picture != nullptr) {
      const AVCodecContext* video = writer->video.get();
      picture->format = video->pix_fmt;
      picture->width = video->width;
      picture->height = video->height;
      picture->color_range = video->color_range;
      picture->color_primaries = video->color_primaries;
      picture->color_trc = video->color_trc;
      picture->colorspace = video->colorspace;
      picture->chroma_location = video->chroma_sample_location;
      if (av_frame_get_buffer(picture, 0) < 0) code = OutOfMemory(error);
    }
  }
  if (code != H3RT_MEDIA_OK) {
    WriterFree(writer);
    return code;
  }
  *out = writer;
  return H3RT_MEDIA_OK;
}

int32_t WriterVideo(H3rtMediaWriter* writer, const H3rtMediaYuv* yuv, H3rtMediaError* error) {
  AVFrame* picture = writer->picture.get();
  if (av_frame_make_writable(picture) < 0) return OutOfMemory(error);
  CopyPlane(picture, 0, yuv->y, picture->width, picture->height);
  CopyPlane(picture, 1, yuv->u, picture->width / 2, picture->height / 2);
  CopyPlane(picture, 2, yuv->v, picture->width / 2, picture->height / 2);
  picture->pts = writer->frames++;
  return Encode(writer, writer->video.get(), writer->video_stream, picture, error);
}

int32_t WriterAudio(H3rtMediaWriter* writer, const float* left, const float* right, int64_t samples,
                    H3rtMediaError* error) {
  if (writer->audio == nullptr) {
    return Fail(error, H3RT_MEDIA_INTERNAL, "sound for a clip that was opened without");
  }
  const int frame_size = writer->audio->frame_size;
  for (int64_t done = 0; done < samples;) {
    // The encoder may still hold the frame; a fresh buffer keeps what it holds.
    if (writer->sound_used == 0) {
      writer->sound->nb_samples = frame_size;
      if (av_frame_make_writable(writer->sound.get()) < 0) return OutOfMemory(error);
    }
    const int64_t n = std::min<int64_t>(samples - done, frame_size - writer->sound_used);
    const auto bytes = static_cast<size_t>(n) * sizeof(float);
    auto** planes = reinterpret_cast<float**>(writer->sound->extended_data);
    std::memcpy(planes[0] + writer->sound_used, left + done, bytes);
    std::memcpy(planes[1] + writer->sound_used, right + done, bytes);
    writer->sound_used += static_cast<int>(n);
    done += n;
    if (writer->sound_used < frame_size) continue;
    if (const int32_t code = EncodeSound(writer, error); code != H3RT_MEDIA_OK) return code;
  }
  return H3RT_MEDIA_OK;
}

int32_t WriterFinish(H3rtMediaWriter* writer, H3rtMediaError* error) {
  int32_t code = H3RT_MEDIA_OK;
  if (writer->audio != nullptr) {
    if (writer->sound_used > 0) code = EncodeSound(writer, error);
    if (code == H3RT_MEDIA_OK) {
      code = Encode(writer, writer->audio.get(), writer->audio_stream, nullptr, error);
    }
  }
  if (code == H3RT_MEDIA_OK) {
    code = Encode(writer, writer->video.get(), writer->video_stream, nullptr, error);
  }
  if (code != H3RT_MEDIA_OK) return code;
  int result = av_write_trailer(writer->format);
  avio_flush(writer->format->pb);
  if (result >= 0 && writer->format->pb->error < 0) result = writer->format->pb->error;
  return result < 0 ? FailAv(error, result, "cannot finish the MP4 file") : H3RT_MEDIA_OK;
}

void WriterFree(H3rtMediaWriter* writer) {
  if (writer == nullptr) return;
  if (writer->format != nullptr) {
    FreeIo(writer->format->pb);
    writer->format->pb = nullptr;
    avformat_free_context(writer->format);
  }
  delete writer;
}

}  // namespace h3rt::ffmpeg
