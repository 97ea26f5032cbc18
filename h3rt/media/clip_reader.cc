#include "h3rt/media/clip_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/media/wav.h"

namespace h3rt {
namespace {

struct Collector {
  const ClipReadOptions* options = nullptr;
  Clip clip;
  std::vector<float> left;
  std::vector<float> right;
  int64_t bytes = 0;

  // A code other than OK ends the read.
  int32_t Take(int64_t more) {
    if (options->cancel != nullptr && options->cancel->cancelled()) return H3RT_MEDIA_CANCELLED;
    bytes += more;
    return bytes > options->max_bytes ? H3RT_MEDIA_RESOURCE_EXHAUSTED : H3RT_MEDIA_OK;
  }
};

int32_t OnInfo(void* user, const H3rtMediaClipInfo* info) {
  Clip& clip = static_cast<Collector*>(user)->clip;
  clip.has_video = info->has_video != 0;
  clip.has_audio = info->has_audio != 0;
  clip.width = info->width;
  clip.height = info->height;
  clip.fps_num = info->fps_num;
  clip.fps_den = info->fps_den;
  clip.declared_frames = info->declared_frames;
  clip.video_duration_s = info->video_duration_s;
  clip.audio_duration_s = info->audio_duration_s;
  clip.source_sample_rate = info->sample_rate;
  clip.source_channels = info->channels;
  clip.container = info->container;
  clip.video_codec = info->video_codec;
  clip.pixel_format = info->pixel_format;
  clip.color_space = info->color_space;
  clip.color_range = info->color_range;
  clip.audio_codec = info->audio_codec;
  clip.audio_profile = info->audio_profile;
  return H3RT_MEDIA_OK;
}

int32_t OnTag(void* user, const char* key, const char* value) {
  static_cast<Collector*>(user)->clip.tags.emplace_back(key, value);
  return H3RT_MEDIA_OK;
}

int32_t OnFrame(void* user, const uint8_t* rgb, int64_t row_bytes, double time_s) {
  auto* collector = static_cast<Collector*>(user);
  Clip& clip = collector->clip;
  const int64_t limit = collector->options->max_frames;
  if (limit > 0 && static_cast<int64_t>(clip.frames.size()) >= limit) {
    return collector->Take(0);
  }
  const int64_t row = clip.width * 3;
  if (const int32_t code = collector->Take(row * clip.height); code != H3RT_MEDIA_OK) return code;
  try {
    RgbImage image{clip.width, clip.height, {}};
    image.pixels.reserve(static_cast<size_t>(row * clip.height));
    for (int64_t y = 0; y < clip.height; ++y) {
      image.pixels.insert(image.pixels.end(), rgb + y * row_bytes, rgb + y * row_bytes + row);
    }
    clip.frames.push_back(std::move(image));
    clip.frame_times_s.push_back(time_s);
  } catch (const std::bad_alloc&) {
    return H3RT_MEDIA_RESOURCE_EXHAUSTED;
  }
  return H3RT_MEDIA_OK;
}

int32_t OnAudio(void* user, const float* left, const float* right, int64_t samples) {
  auto* collector = static_cast<Collector*>(user);
  if (const int32_t code = collector->Take(samples * 8); code != H3RT_MEDIA_OK) return code;
  try {
    collector->left.insert(collector->left.end(), left, left + samples);
    collector->right.insert(collector->right.end(), right, right + samples);
  } catch (const std::bad_alloc&) {
    return H3RT_MEDIA_RESOURCE_EXHAUSTED;
  }
  return H3RT_MEDIA_OK;
}

absl::StatusOr<Clip> Read(const std::string& path, const ClipReadOptions& options, bool only_tags) {
  if (options.sample_rate < 1000 || options.sample_rate > 768'000) {
    return InvalidArgument({.what = "sample rate",
                            .got = std::to_string(options.sample_rate),
                            .wanted = "1000 to 768000 Hz"});
  }
  H3RT_ASSIGN_OR_RETURN(const H3rtMediaApi* api, FfmpegApi());
  if (::access(path.c_str(), R_OK) != 0) return ErrnoStatus(errno, "open", path);
  Collector collector;
  collector.options = &options;
  const bool video = options.video && !only_tags;
  const bool audio = options.audio && !only_tags;
  const H3rtMediaClipSink sink = {&collector, &OnInfo, &OnTag, video ? &OnFrame : nullptr,
                                  audio ? &OnAudio : nullptr};
  H3rtMediaError error = {};
  const int32_t code =
      api->read_clip(path.c_str(), static_cast<int32_t>(options.sample_rate), &sink, &error);
  if (code == H3RT_MEDIA_RESOURCE_EXHAUSTED && collector.bytes > options.max_bytes) {
    return ResourceExhausted({.what = "clip is too large to read whole",
                              .wanted = "at most " + std::to_string(options.max_bytes) + " bytes",
                              .where = path});
  }
  if (code != H3RT_MEDIA_OK) return StatusOfModule(error, path);
  if (video && collector.clip.has_video && collector.clip.frames.empty()) {
    return DataLoss({.what = "clip is damaged", .got = "no picture in it", .where = path});
  }
  if (audio && collector.clip.has_audio) {
    const auto n = static_cast<int64_t>(collector.left.size());
    H3RT_ASSIGN_OR_RETURN(collector.clip.audio, Tensor::Create(DType::kF32, Shape{2, n}));
    float* out = collector.clip.audio.as<float>();
    std::copy(collector.left.begin(), collector.left.end(), out);
    std::copy(collector.right.begin(), collector.right.end(), out + n);
  }
  return std::move(collector.clip);
}

}  // namespace

absl::StatusOr<Clip> ReadClip(const std::string& path, const ClipReadOptions& options) {
  return Read(path, options, /*only_tags=*/false);
}

absl::StatusOr<ClipMetadata> ReadClipMetadata(const std::string& path) {
  std::string ending = path.substr(path.size() - std::min<size_t>(4, path.size()));
  for (char& c : ending) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (ending == ".wav") {
    H3RT_ASSIGN_OR_RETURN(const WavData wav, ReadWav(path));
    if (wav.note.empty()) {
      return NotFound({.what = "no metadata of h3rt in this file", .where = path});
    }
    H3RT_ASSIGN_OR_RETURN(const ClipTags tags, TagsFromJson(wav.note, path));
    return MetadataFromTags(tags, path);
  }
  H3RT_ASSIGN_OR_RETURN(const Clip clip, Read(path, {}, /*only_tags=*/true));
  return MetadataFromTags(clip.tags, path);
}

}  // namespace h3rt
