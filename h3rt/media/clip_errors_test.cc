// Clips that cannot be written: a typed error each, and never a file left behind.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "h3rt/base/file.h"
#include "h3rt/media/clip_reader.h"
#include "h3rt/media/clip_writer.h"
#include "h3rt/media/media_test_util.h"

namespace h3rt {
namespace {

// Whether clips go through FFmpeg or into Y4M and WAV: the same errors in both.
class ClipErrors : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (extension() == ".mp4") H3RT_NEEDS_FFMPEG();
  }
  std::string extension() const { return GetParam(); }
  std::string File() const { return folder_.File("clip" + extension()); }

  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Files, ClipErrors, testing::Values(".mp4", ".y4m"),
                         [](const auto& chosen) { return std::string(chosen.param + 1); });

TEST_P(ClipErrors, ATargetIsCheckedWithoutWriting) {
  const ClipOptions good = {.width = 32, .height = 32, .frames = 5};
  EXPECT_TRUE(CheckClipTarget(File(), good).ok());
  EXPECT_TRUE(CheckClipTarget(folder_.File("CLIP.MP4"), good).ok());
  EXPECT_EQ(CheckClipTarget(folder_.File("clip.xyz"), good).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckClipTarget(folder_.File("no/such/clip" + extension()), good).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckClipTarget(File(), {.width = 33, .height = 32, .frames = 5}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_NE(::access(File().c_str(), F_OK), 0);
  const std::string stem = folder_.File("clip");
  EXPECT_EQ(ClipFiles(File()), extension() == ".mp4"
                                   ? std::vector<std::string>{File()}
                                   : (std::vector<std::string>{stem + ".y4m", stem + ".wav"}));
}

TEST_P(ClipErrors, SizesThatTheEncoderCannotTakeAreRefused) {
  for (const auto& [w, h] : {std::pair<int64_t, int64_t>{33, 32},
                             {32, 33},
                             {0, 0},
                             {-32, 32},
                             {14, 32},
                             {16386, 32},
                             {16384, 16384},
                             {int64_t{1} << 40, int64_t{1} << 40}}) {
    const auto writer = ClipWriter::Create(File(), {.width = w, .height = h, .frames = 5});
    EXPECT_EQ(writer.status().code(), absl::StatusCode::kInvalidArgument) << w << "x" << h;
  }
  for (const int64_t frames : {int64_t{0}, int64_t{-5}, INT64_MAX}) {
    const auto writer = ClipWriter::Create(File(), {.width = 32, .height = 32, .frames = frames});
    EXPECT_EQ(writer.status().code(), absl::StatusCode::kInvalidArgument) << frames;
  }
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_P(ClipErrors, NamesAndMetadataAreChecked) {
  for (const char* name : {"clip", "clip.avi", ".mp4", "clip.mp4/"}) {
    const auto writer =
        ClipWriter::Create(folder_.File(name), {.width = 32, .height = 32, .frames = 5});
    EXPECT_EQ(writer.status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  std::vector<ClipMetadata> bad(6);
  bad[0].prompt = std::string("nul\0inside", 10);
  bad[1].prompt = "\xC3\x28";
  bad[2].prompt = "\xED\xA0\x80";  // a surrogate
  bad[3].prompt = "cut \xE7\x8C";
  bad[4].extra = {{"Bad Key", "x"}};
  bad[5].extra = {{"twice", "x"}, {"twice", "y"}};
  for (const ClipMetadata& metadata : bad) {
    const auto writer =
        ClipWriter::Create(File(), {.width = 32, .height = 32, .frames = 5, .metadata = metadata});
    EXPECT_EQ(writer.status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_P(ClipErrors, NanInAFrameNamesItAndLeavesNothing) {
  Tensor video = SmoothVideo(22, 32, 32);
  video.as<float>()[(1 * 22 + 17) * 1024 + 5] = std::nanf("");
  const auto written = WriteClip(File(), video.view(), Tones(29600, 440, 1000).view(), {});
  EXPECT_EQ(written.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(written.status()).find("frame 17"), std::string::npos) << written.status();
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_P(ClipErrors, NanOrInfinityInTheSoundNamesTheSampleAndLeavesNothing) {
  // Also beyond the part that is kept.
  for (const int64_t at : {int64_t{12345}, int64_t{29599}}) {
    Tensor sound = Tones(29600, 440, 1000);
    sound.as<float>()[29600 + at] = std::numeric_limits<float>::infinity();
    const auto written = WriteClip(File(), SmoothVideo(22, 32, 32).view(), sound.view(), {});
    EXPECT_EQ(written.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(MessageOf(written.status()).find("channel 1, sample " + std::to_string(at)),
              std::string::npos)
        << written.status();
    EXPECT_TRUE(folder_.Names().empty());
  }
}

TEST_P(ClipErrors, CancellationLeavesNothing) {
  const Tensor video = SmoothVideo(22, 32, 32);
  CancelToken cancel;
  const ClipOptions options{.width = 32, .height = 32, .frames = 22, .cancel = &cancel};
  auto writer = ClipWriter::Create(File(), options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->AddFrames(video.view().Slice(1, 0, 10)).ok());
  EXPECT_FALSE(folder_.Names().empty()) << "a temporary file is being written";
  cancel.Cancel();
  EXPECT_EQ(writer->AddFrames(video.view().Slice(1, 10, 22)).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(folder_.Names().empty()) << "removed at once, not only by the destructor";
  EXPECT_EQ(writer->Finish().status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(folder_.Names().empty());

  cancel.Reset();
  auto late = ClipWriter::Create(File(), options);
  ASSERT_TRUE(late.ok());
  ASSERT_TRUE(late->AddFrames(video.view()).ok());
  cancel.Cancel();
  EXPECT_EQ(late->Finish().status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_P(ClipErrors, AnUnfinishedWriterLeavesNothingAndTheOldClipStays) {
  ASSERT_TRUE(WriteFileAtomically(File(), "an older clip").ok());
  {
    auto writer = ClipWriter::Create(File(), {.width = 32, .height = 32, .frames = 5});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(writer->AddFrames(SmoothVideo(2, 32, 32).view()).ok());
  }
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"clip" + extension()});
  EXPECT_EQ(ReadFile(File()).value(), "an older clip");
}

TEST_P(ClipErrors, TheNumberOfFramesIsExactlyAsPromised) {
  const ClipOptions options{.width = 32, .height = 32, .frames = 5};
  auto few = ClipWriter::Create(File(), options);
  ASSERT_TRUE(few.ok()) << few.status();
  ASSERT_TRUE(few->AddFrames(SmoothVideo(4, 32, 32).view()).ok());
  EXPECT_EQ(few->Finish().status().code(), absl::StatusCode::kInvalidArgument);
  auto many = ClipWriter::Create(File(), options);
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(many->AddFrames(SmoothVideo(6, 32, 32).view()).code(),
            absl::StatusCode::kInvalidArgument);
  auto wrong = ClipWriter::Create(File(), options);
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ(wrong->AddFrames(SmoothVideo(5, 32, 34).view()).code(),
            absl::StatusCode::kInvalidArgument);
  auto mono = ClipWriter::Create(File(), options);
  ASSERT_TRUE(mono.ok());
  EXPECT_EQ(mono->AddAudio(Tones(10, 440, 1000).view().Slice(0, 0, 1)).code(),
            absl::StatusCode::kInvalidArgument);
  auto silent =
      ClipWriter::Create(File(), {.width = 32, .height = 32, .frames = 5, .audio = false});
  ASSERT_TRUE(silent.ok());
  EXPECT_EQ(silent->AddAudio(Tones(10, 440, 1000).view()).code(),
            absl::StatusCode::kInvalidArgument);
  auto twice = ClipWriter::Create(File(), options);
  ASSERT_TRUE(twice.ok());
  ASSERT_TRUE(twice->AddFrames(SmoothVideo(5, 32, 32).view()).ok());
  ASSERT_TRUE(twice->Finish().ok());
  EXPECT_EQ(twice->Finish().status().code(), absl::StatusCode::kFailedPrecondition);
}

// Every file of this process that grows past the limit fails as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_ = {};
  void (*old_handler_)(int) = SIG_DFL;
};

TEST_P(ClipErrors, AFullDiskIsResourceExhaustedAtAnyPointAndLeavesNothing) {
  const Tensor video = SmoothVideo(22, 64, 64);
  const Tensor sound = Tones(29600, 440, 1000);
  ASSERT_TRUE(WriteClip(File(), video.view(), sound.view(), {}).ok());
  const auto whole = static_cast<rlim_t>(ReadFile(File()).value().size());
  for (const std::string& name : folder_.Names()) ::unlink(folder_.File(name).c_str());
  // The last ones strike while the index moves to the front.
  for (const rlim_t limit : {rlim_t{0}, rlim_t{20}, rlim_t{4096}, whole / 2, whole - 1}) {
    absl::Status status;
    {
      const FileSizeLimit full(limit);
      status = WriteClip(File(), video.view(), sound.view(), {}).status();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted)
        << limit << " of " << whole << ": " << status;
    EXPECT_TRUE(folder_.Names().empty()) << limit;
  }
}

TEST_P(ClipErrors, FoldersThatAreMissingOrNotWritableAreIoErrors) {
  const Tensor video = SmoothVideo(5, 32, 32);
  ASSERT_TRUE(WriteFileAtomically(folder_.File("text"), "x").ok());
  for (const std::string& path :
       {folder_.File("no/such/clip" + extension()), folder_.File("text/clip" + extension()),
        "/proc/self/clip" + extension()}) {
    const auto code = WriteClip(path, video.view(), {}, {}).status().code();
    EXPECT_TRUE(code == absl::StatusCode::kNotFound || code == absl::StatusCode::kUnavailable)
        << path;
  }
  ASSERT_EQ(::mkdir(File().c_str(), 0700), 0);
  EXPECT_EQ(WriteClip(File(), video.view(), {}, {}).status().code(),
            absl::StatusCode::kUnavailable);
  ::rmdir(File().c_str());
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"text"});
}

TEST(ClipEncoder, AnEncoderThatFfmpegLacksIsNamed) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  for (const char* name : {"no_such_encoder", "png"}) {
    const auto writer = ClipWriter::Create(
        folder.File("a.mp4"), {.width = 32, .height = 32, .frames = 5, .video_encoder = name});
    EXPECT_EQ(writer.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(MessageOf(writer.status()).find(name), std::string::npos) << writer.status();
  }
  EXPECT_TRUE(folder.Names().empty());
}

TEST(ClipReader, WhatIsNoClipIsATypedError) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  EXPECT_EQ(ReadClip(folder.File("absent.mp4"), {}).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(folder.File("text.mp4"), "this is no clip").ok());
  const auto text = ReadClip(folder.File("text.mp4"), {});
  EXPECT_EQ(text.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(text.status()).find("text.mp4"), std::string::npos) << text.status();
  EXPECT_FALSE(ReadClip(folder.path(), {}).ok());
  EXPECT_FALSE(ReadClip("http://localhost/a.mp4", {}).ok());
  // Cut short: the index in front promises more than there is.
  ASSERT_TRUE(WriteClip(folder.File("a.mp4"), SmoothVideo(22, 64, 64).view(),
                        Tones(29600, 440, 1000).view(), {})
                  .ok());
  const std::string whole = ReadFile(folder.File("a.mp4")).value();
  for (const size_t n :
       {size_t{8}, size_t{100}, size_t{1000}, whole.size() / 2, whole.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(folder.File("cut.mp4"), whole.substr(0, n)).ok());
    EXPECT_EQ(ReadClip(folder.File("cut.mp4"), {}).status().code(), absl::StatusCode::kDataLoss)
        << n;
  }
}

TEST(ClipReader, LimitsAndCancellationEndARead) {
  H3RT_NEEDS_FFMPEG();
  const TempFolder folder;
  const std::string path = folder.File("a.mp4");
  ASSERT_TRUE(WriteClip(path, SmoothVideo(22, 64, 64).view(), {}, {}).ok());
  EXPECT_EQ(ReadClip(path, {.max_bytes = 64 * 64 * 3 * 10}).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto some = ReadClip(path, {.max_frames = 7});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->frames.size(), 7u);
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(ReadClip(path, {.cancel = &cancel}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ReadClip(path, {.sample_rate = 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadClipMetadata(path).ok(), true);
}

}  // namespace
}  // namespace h3rt
