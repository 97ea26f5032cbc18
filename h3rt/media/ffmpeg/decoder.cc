// Reads clips: RGB frames, stereo sound at the wanted rate, tags.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <vector>

#include "h3rt/media/ffmpeg/ffmpeg_util.h"

namespace h3rt::ffmpeg {
namespace {

struct Reader {
  const H3rtMediaClipSink* sink = nullptr;
  H3rtMediaError* error = nullptr;
  int sample_rate = 0;
  InputPtr input;
  AVStream* video_stream = nullptr;
  AVStream* audio_stream = nullptr;
  CodecPtr video;
  CodecPtr audio;
  FramePtr frame;
  PacketPtr packet;
  SwsPtr sws;
  SwrPtr swr;
  BytesPtr rgb;
  int row_bytes = 0;
  int64_t samples_left = 0;  // what the file's own duration allows
  std::vector<float> left;
  std::vector<float> right;
};

int32_t Stopped(Reader& r, int32_t code) {
  return Fail(r.error, code, "the caller stopped the read");
}

double DurationOf(const Reader& r, const AVStream* stream) {
  if (stream == nullptr) return 0;
  if (stream->duration != AV_NOPTS_VALUE) {
    return static_cast<double>(stream->duration) * av_q2d(stream->time_base);
  }
  const int64_t whole = r.input->duration;
  return whole == AV_NOPTS_VALUE ? 0 : static_cast<double>(whole) / AV_TIME_BASE;
}

int32_t OpenDecoder(Reader& r, AVStream* stream, CodecPtr* out) {
  const AVCodec* codec = avcodec_find_decoder(stream->codecpar->codec_id);
  if (codec == nullptr) {
    return Fail(r.error, H3RT_MEDIA_UNIMPLEMENTED,
                std::string("this FFmpeg has no decoder for ") +
                    avcodec_get_name(stream->codecpar->codec_id));
  }
  out->reset(avcodec_alloc_context3(codec));
  if (*out == nullptr || avcodec_parameters_to_context(out->get(), stream->codecpar) < 0) {
    return OutOfMemory(r.error);
  }
  (*out)->pkt_timebase = stream->time_base;
  (*out)->thread_count = 1;
  const int result = avcodec_open2(out->get(), codec, nullptr);
  return result < 0 ? FailAv(r.error, result, std::string("cannot open the decoder ") + codec->name)
                    : H3RT_MEDIA_OK;
}

void Name(char* to, size_t size, const char* from) {
  std::snprintf(to, size, "%s", from == nullptr ? "" : from);
}

int32_t ReportInfo(Reader& r) {
  H3rtMediaClipInfo info = {};
  Name(info.container, sizeof(info.container), r.input->iformat->name);
  if (const AVStream* s = r.video_stream; s != nullptr) {
    const AVCodecParameters* p = s->codecpar;
    info.has_video = 1;
    info.width = p->width;
    info.height = p->height;
    info.fps_num = s->avg_frame_rate.num;
    info.fps_den = s->avg_frame_rate.den;
    info.declared_frames = s->nb_frames;
    info.video_duration_s = DurationOf(r, s);
    Name(info.video_codec, sizeof(info.video_codec), avcodec_get_name(p->codec_id));
    Name(info.pixel_format, sizeof(info.pixel_format),
         av_get_pix_fmt_name(static_cast<AVPixelFormat>(p->format)));
    Name(info.color_space, sizeof(info.color_space), av_color_space_name(p->color_space));
    Name(info.color_range, sizeof(info.color_range), av_color_range_name(p->color_range));
  }
  if (const AVStream* s = r.audio_stream; s != nullptr) {
    const AVCodecParameters* p = s->codecpar;
    info.has_audio = 1;
    info.audio_duration_s = DurationOf(r, s);
    info.sample_rate = p->sample_rate;
    info.channels = p->ch_layout.nb_channels;
    Name(info.audio_codec, sizeof(info.audio_codec), avcodec_get_name(p->codec_id));
    Name(info.audio_profile, sizeof(info.audio_profile),
         avcodec_profile_name(p->codec_id, p->profile));
  }
  if (r.sink->info == nullptr) return H3RT_MEDIA_OK;
  const int32_t code = r.sink->info(r.sink->user, &info);
  return code == H3RT_MEDIA_OK ? code : Stopped(r, code);
}

int32_t ReportTags(Reader& r) {
  if (r.sink->tag == nullptr) return H3RT_MEDIA_OK;
  const AVDictionaryEntry* entry = nullptr;
  while ((entry = av_dict_get(r.input->metadata, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
    const int32_t code = r.sink->tag(r.sink->user, entry->key, entry->value);
    if (code != H3RT_MEDIA_OK) return Stopped(r, code);
  }
  return H3RT_MEDIA_OK;
}

// True when the index names samples beyond the end of the file. Without this a clip that was cut
// short would read as a shorter clip.
bool IsCutShort(const AVFormatContext* input) {
  const int64_t size = input->pb == nullptr ? -1 : avio_size(input->pb);
  if (size < 0) return false;
  for (unsigned i = 0; i < input->nb_streams; ++i) {
    AVStream* stream = input->streams[i];
    const int entries = avformat_index_get_entries_count(stream);
    for (int k = 0; k < entries; ++k) {
      const AVIndexEntry* entry = avformat_index_get_entry(stream, k);
      if (entry != nullptr && entry->pos + entry->size > size) return true;
    }
  }
  return false;
}

int32_t Open(Reader& r, const char* path) {
  // "file:" and the whitelist: a name such as "http://..." or a playlist reaches nothing else.
  const std::string url = std::string("file:") + path;
  AVDictionary* options = nullptr;
  av_dict_set(&options, "protocol_whitelist", "file", 0);
  AVFormatContext* input = nullptr;
  int result = avformat_open_input(&input, url.c_str(), nullptr, &options);
  av_dict_free(&options);
  if (result < 0) return FailAv(r.error, result, "cannot open the clip", H3RT_MEDIA_DATA_LOSS);
  r.input.reset(input);
  result = avformat_find_stream_info(input, nullptr);
  if (result < 0) return FailAv(r.error, result, "cannot read the clip", H3RT_MEDIA_DATA_LOSS);
  const int video = av_find_best_stream(input, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  const int audio = av_find_best_stream(input, AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
  for (unsigned i = 0; i < input->nb_streams; ++i) {
    const bool is_video = static_cast<int>(i) == video;
    const bool is_audio = static_cast<int>(i) == audio;
    if (is_video) r.video_stream = input->streams[i];
    if (is_audio) r.audio_stream = input->streams[i];
    const bool wanted =
        (is_video && r.sink->frame != nullptr) || (is_audio && r.sink->audio != nullptr);
    if (!wanted) input->streams[i]->discard = AVDISCARD_ALL;
  }
  if (r.video_stream == nullptr && r.audio_stream == nullptr) {
    return Fail(r.error, H3RT_MEDIA_DATA_LOSS, "the file holds neither video nor sound");
  }
  if (IsCutShort(input)) {
    return Fail(r.error, H3RT_MEDIA_DATA_LOSS, "the clip is cut short");
  }
  return H3RT_MEDIA_OK;
}

int32_t OnPicture(Reader& r) {
  const AVFrame* frame = r.frame.get();
  if (frame->width != r.video_stream->codecpar->width ||
      frame->height != r.video_stream->codecpar->height) {
    return Fail(r.error, H3RT_MEDIA_UNIMPLEMENTED, "the picture size changes within the clip");
  }
  if (r.rgb == nullptr) {
    r.row_bytes = (frame->width * 3 + 63) / 64 * 64;
    r.rgb.reset(static_cast<uint8_t*>(
        av_malloc(static_cast<size_t>(r.row_bytes) * static_cast<size_t>(frame->height) + 64)));
    if (r.rgb == nullptr) return OutOfMemory(r.error);
  }
  const int32_t code = ToRgb(frame, false, &r.sws, r.rgb.get(), r.row_bytes, r.error);
  if (code != H3RT_MEDIA_OK) return code;
  const double time =
      frame->best_effort_timestamp == AV_NOPTS_VALUE
          ? -1
          : static_cast<double>(frame->best_effort_timestamp) * av_q2d(r.video_stream->time_base);
  const int32_t stop = r.sink->frame(r.sink->user, r.rgb.get(), r.row_bytes, time);
  return stop == H3RT_MEDIA_OK ? stop : Stopped(r, stop);
}

// Makes the resampler for the frames of this file. Mono stays mono here and is repeated later:
// FFmpeg's own upmix would lower it by 3 dB.
int32_t OpenResampler(Reader& r) {
  const AVFrame* frame = r.frame.get();
  AVChannelLayout from = {};
  if (frame->ch_layout.order == AV_CHANNEL_ORDER_UNSPEC) {
    av_channel_layout_default(&from, frame->ch_layout.nb_channels);
  } else if (av_channel_layout_copy(&from, &frame->ch_layout) < 0) {
    return OutOfMemory(r.error);
  }
  AVChannelLayout to = {};
  av_channel_layout_default(&to, from.nb_channels == 1 ? 1 : 2);
  SwrContext* swr = nullptr;
  int result = swr_alloc_set_opts2(&swr, &to, AV_SAMPLE_FMT_FLTP, r.sample_rate, &from,
                                   static_cast<AVSampleFormat>(frame->format), frame->sample_rate,
                                   0, nullptr);
  if (result >= 0) result = swr_init(swr);
  r.swr.reset(swr);
  av_channel_layout_uninit(&from);
  av_channel_layout_uninit(&to);
  return result < 0 ? FailAv(r.error, result, "cannot resample the sound") : H3RT_MEDIA_OK;
}

// Resamples `frame`, or drains the resampler when it is null.
int32_t Resample(Reader& r, const AVFrame* frame) {
  if (r.swr == nullptr) return H3RT_MEDIA_OK;
  const int in = frame == nullptr ? 0 : frame->nb_samples;
  const int room = swr_get_out_samples(r.swr.get(), in);
  if (room < 0) return FailAv(r.error, room, "cannot resample the sound");
  r.left.resize(static_cast<size_t>(room) + 1);
  r.right.resize(static_cast<size_t>(room) + 1);
  uint8_t* out[2] = {reinterpret_cast<uint8_t*>(r.left.data()),
                     reinterpret_cast<uint8_t*>(r.right.data())};
  auto** data = frame == nullptr ? nullptr : const_cast<const uint8_t**>(frame->extended_data);
  const int n = swr_convert(r.swr.get(), out, room, data, in);
  if (n < 0) return FailAv(r.error, n, "cannot resample the sound");
  const int64_t kept = std::min<int64_t>(n, r.samples_left);
  r.samples_left -= kept;
  if (kept == 0) return H3RT_MEDIA_OK;
  const bool mono = r.audio_stream->codecpar->ch_layout.nb_channels == 1;
  const int32_t stop =
      r.sink->audio(r.sink->user, r.left.data(), mono ? r.left.data() : r.right.data(), kept);
  return stop == H3RT_MEDIA_OK ? stop : Stopped(r, stop);
}

int32_t OnSound(Reader& r) {
  if (r.frame->ch_layout.nb_channels != r.audio_stream->codecpar->ch_layout.nb_channels) {
    return Fail(r.error, H3RT_MEDIA_UNIMPLEMENTED, "the channel count changes within the clip");
  }
  if (r.swr == nullptr) {
    const int32_t code = OpenResampler(r);
    if (code != H3RT_MEDIA_OK) return code;
  }
  return Resample(r, r.frame.get());
}

// Sends a packet (null: the end) and hands on what comes out.
int32_t Decode(Reader& r, AVCodecContext* codec, const AVPacket* packet) {
  int result = avcodec_send_packet(codec, packet);
  if (result < 0 && result != AVERROR_EOF) {
    return FailAv(r.error, result, "cannot decode the clip", H3RT_MEDIA_DATA_LOSS);
  }
  for (;;) {
    result = avcodec_receive_frame(codec, r.frame.get());
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return H3RT_MEDIA_OK;
    if (result < 0) return FailAv(r.error, result, "cannot decode the clip", H3RT_MEDIA_DATA_LOSS);
    const int32_t code = codec == r.video.get() ? OnPicture(r) : OnSound(r);
    if (code != H3RT_MEDIA_OK) return code;
  }
}

int32_t DecodeAll(Reader& r) {
  int result = 0;
  while ((result = av_read_frame(r.input.get(), r.packet.get())) >= 0) {
    const int stream = r.packet->stream_index;
    AVCodecContext* codec = nullptr;
    if (r.video != nullptr && stream == r.video_stream->index) codec = r.video.get();
    if (r.audio != nullptr && stream == r.audio_stream->index) codec = r.audio.get();
    const int32_t code = codec == nullptr ? H3RT_MEDIA_OK : Decode(r, codec, r.packet.get());
    av_packet_unref(r.packet.get());
    if (code != H3RT_MEDIA_OK) return code;
  }
  if (result != AVERROR_EOF) {
    return FailAv(r.error, result, "cannot read the clip", H3RT_MEDIA_DATA_LOSS);
  }
  for (AVCodecContext* codec : {r.video.get(), r.audio.get()}) {
    if (codec == nullptr) continue;
    const int32_t code = Decode(r, codec, nullptr);
    if (code != H3RT_MEDIA_OK) return code;
  }
  return Resample(r, nullptr);
}

int32_t ReadInto(Reader& r, const char* path) {
  int32_t code = Open(r, path);
  if (code == H3RT_MEDIA_OK) code = ReportInfo(r);
  if (code == H3RT_MEDIA_OK) code = ReportTags(r);
  if (code != H3RT_MEDIA_OK) return code;
  if (r.sink->frame == nullptr && r.sink->audio == nullptr) return H3RT_MEDIA_OK;
  r.frame.reset(av_frame_alloc());
  r.packet.reset(av_packet_alloc());
  if (r.frame == nullptr || r.packet == nullptr) return OutOfMemory(r.error);
  if (r.video_stream != nullptr && r.sink->frame != nullptr) {
    code = OpenDecoder(r, r.video_stream, &r.video);
  }
  if (code == H3RT_MEDIA_OK && r.audio_stream != nullptr && r.sink->audio != nullptr) {
    code = OpenDecoder(r, r.audio_stream, &r.audio);
    // AAC decodes whole blocks; the file's duration says where the sound ends.
    r.samples_left =
        r.audio_stream->duration == AV_NOPTS_VALUE
            ? INT64_MAX
            : av_rescale_q(r.audio_stream->duration, r.audio_stream->time_base, {1, r.sample_rate});
  }
  return code == H3RT_MEDIA_OK ? DecodeAll(r) : code;
}

}  // namespace

int32_t ReadClip(const char* path, int32_t sample_rate, const H3rtMediaClipSink* sink,
                 H3rtMediaError* error) {
  try {
    Reader reader;
    reader.sink = sink;
    reader.error = error;
    reader.sample_rate = sample_rate;
    return ReadInto(reader, path);
  } catch (const std::exception&) {  // only vectors and strings can throw here
    return OutOfMemory(error);
  }
}

}  // namespace h3rt::ffmpeg
