#include "h3rt/media/clip_sinks.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "h3rt/base/file.h"
#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/media/wav.h"

namespace h3rt {
namespace {

constexpr int32_t kAudioBitsPerSecond = 192'000;

class Mp4Sink : public ClipSink {
 public:
  static absl::StatusOr<std::unique_ptr<ClipSink>> Make(const H3rtMediaApi* api,
                                                        const std::string& path,
                                                        const ClipOptions& options) {
    H3RT_ASSIGN_OR_RETURN(PendingFile file, PendingFile::Create(path));
    std::unique_ptr<Mp4Sink> sink(new Mp4Sink(api, path, std::move(file)));
    H3RT_RETURN_IF_ERROR(sink->Open(options));
    return std::unique_ptr<ClipSink>(std::move(sink));
  }

  Mp4Sink(const Mp4Sink&) = delete;
  Mp4Sink& operator=(const Mp4Sink&) = delete;

  ~Mp4Sink() override {
    api_->writer_free(writer_);  // before the file goes
    if (read_fd_ >= 0) ::close(read_fd_);
  }

  absl::Status AddPicture(const Yuv420& picture) override {
    const H3rtMediaYuv yuv = {picture.y.data(), picture.u.data(), picture.v.data()};
    H3rtMediaError error = {};
    return Check(api_->writer_video(writer_, &yuv, &error), error);
  }

  absl::Status AddSound(const float* left, const float* right, int64_t samples) override {
    H3rtMediaError error = {};
    return Check(api_->writer_audio(writer_, left, right, samples, &error), error);
  }

  absl::StatusOr<WrittenClip> Finish() override {
    H3rtMediaError error = {};
    H3RT_RETURN_IF_ERROR(Check(api_->writer_finish(writer_, &error), error));
    H3RT_RETURN_IF_ERROR(file_.Commit());
    return WrittenClip{{path_}, false, ""};
  }

 private:
  Mp4Sink(const H3rtMediaApi* api, std::string path, PendingFile file)
      : api_(api), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Open(const ClipOptions& options) {
    // Moving the index to the front reads what was written.
    read_fd_ = ::open(file_.temporary_path().c_str(), O_RDONLY | O_CLOEXEC);
    if (read_fd_ < 0) return ErrnoStatus(errno, "read back", path_);
    const ClipTags tags = MetadataToTags(options.metadata);
    std::vector<H3rtMediaTag> c_tags;
    for (const auto& [key, value] : tags) c_tags.push_back({key.c_str(), value.c_str()});
    H3rtMediaClipSpec spec = {};
    spec.width = static_cast<int32_t>(options.width);
    spec.height = static_cast<int32_t>(options.height);
    spec.fps_num = kClipFps;
    spec.fps_den = 1;
    spec.crf = options.crf;
    spec.has_audio = options.audio ? 1 : 0;
    spec.sample_rate = kClipSampleRate;
    spec.audio_bits_per_second = kAudioBitsPerSecond;
    spec.video_encoder = options.video_encoder.empty() ? nullptr : options.video_encoder.c_str();
    spec.tags = c_tags.data();
    spec.tag_count = static_cast<int64_t>(c_tags.size());
    const H3rtMediaIo io = {this, &Mp4Sink::WriteAt, &Mp4Sink::ReadAt};
    H3rtMediaError error = {};
    return Check(api_->writer_open(&spec, &io, &writer_, &error), error);
  }

  // A failed write of ours says more than what FFmpeg makes of it.
  absl::Status Check(int32_t code, const H3rtMediaError& error) const {
    if (!io_status_.ok()) return io_status_;
    return code == H3RT_MEDIA_OK ? absl::OkStatus() : StatusOfModule(error, path_);
  }

  static int64_t WriteAt(void* user, int64_t offset, const uint8_t* data, int64_t bytes) {
    auto* sink = static_cast<Mp4Sink*>(user);
    if (sink->io_status_.ok()) {
      sink->io_status_ = sink->file_.WriteAt(
          static_cast<uint64_t>(offset),
          std::as_bytes(std::span<const uint8_t>(data, static_cast<size_t>(bytes))));
    }
    return sink->io_status_.ok() ? bytes : -EIO;
  }

  static int64_t ReadAt(void* user, int64_t offset, uint8_t* data, int64_t bytes) {
    const auto* sink = static_cast<Mp4Sink*>(user);
    ssize_t n = -1;
    do {
      n = ::pread(sink->read_fd_, data, static_cast<size_t>(bytes), static_cast<off_t>(offset));
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
  }

  const H3rtMediaApi* api_;
  std::string path_;
  PendingFile file_;
  int read_fd_ = -1;
  H3rtMediaWriter* writer_ = nullptr;
  absl::Status io_status_;
};

class Y4mSink : public ClipSink {
 public:
  static absl::StatusOr<std::unique_ptr<ClipSink>> Make(const std::string& stem,
                                                        const ClipOptions& options,
                                                        const std::string& note) {
    H3RT_ASSIGN_OR_RETURN(PendingFile video, PendingFile::Create(stem + ".y4m"));
    std::optional<WavWriter> sound;
    WavSpec spec;
    spec.samples = ClipSamples(options.frames);
    spec.sample_rate = kClipSampleRate;
    spec.note = TagsToJson(MetadataToTags(options.metadata));
    if (options.audio) {
      H3RT_ASSIGN_OR_RETURN(sound, WavWriter::Create(stem + ".wav", spec));
    }
    const std::string header = "YUV4MPEG2 W" + std::to_string(options.width) + " H" +
                               std::to_string(options.height) + " F" + std::to_string(kClipFps) +
                               ":1 Ip A1:1 C420mpeg2 XYSCSS=420MPEG2 XCOLORRANGE=LIMITED\n";
    H3RT_RETURN_IF_ERROR(video.Write(header));
    return std::unique_ptr<ClipSink>(new Y4mSink(stem, std::move(video), std::move(sound), note));
  }

  absl::Status AddPicture(const Yuv420& picture) override {
    H3RT_RETURN_IF_ERROR(video_.Write("FRAME\n"));
    for (const std::span<uint8_t> plane : {picture.y, picture.u, picture.v}) {
      H3RT_RETURN_IF_ERROR(video_.Write(std::as_bytes(plane)));
    }
    return absl::OkStatus();
  }

  absl::Status AddSound(const float* left, const float* right, int64_t samples) override {
    // One channel after the other in a buffer of a fixed size; WavWriter wants one view.
    constexpr int64_t kPiece = 4096;
    std::array<float, 2 * kPiece> piece;
    for (int64_t done = 0; done < samples; done += kPiece) {
      const int64_t n = std::min(kPiece, samples - done);
      std::copy_n(left + done, n, piece.data());
      std::copy_n(right + done, n, piece.data() + n);
      H3RT_RETURN_IF_ERROR(sound_->Append(ConstTensorView::Of(piece.data(), Shape{2, n})));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<WrittenClip> Finish() override {
    WrittenClip clip{{stem_ + ".y4m"}, true, note_};
    if (sound_.has_value()) H3RT_RETURN_IF_ERROR(sound_->Commit());
    const absl::Status status = video_.Commit();
    if (sound_.has_value()) {
      clip.files.push_back(stem_ + ".wav");
      if (!status.ok()) ::unlink(clip.files.back().c_str());  // no half of a clip is left
    }
    H3RT_RETURN_IF_ERROR(status);
    return clip;
  }

 private:
  Y4mSink(std::string stem, PendingFile video, std::optional<WavWriter> sound, std::string note)
      : stem_(std::move(stem)),
        video_(std::move(video)),
        sound_(std::move(sound)),
        note_(std::move(note)) {}

  std::string stem_;
  PendingFile video_;
  std::optional<WavWriter> sound_;
  std::string note_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClipSink>> MakeMp4Sink(const H3rtMediaApi* api,
                                                      const std::string& path,
                                                      const ClipOptions& options) {
  return Mp4Sink::Make(api, path, options);
}

absl::StatusOr<std::unique_ptr<ClipSink>> MakeY4mSink(const std::string& stem,
                                                      const ClipOptions& options,
                                                      const std::string& note) {
  return Y4mSink::Make(stem, options, note);
}

}  // namespace h3rt
