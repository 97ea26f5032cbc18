// What the tests of the media library share.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numbers>
#include <string>
#include <vector>

#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/media/pixels.h"

namespace h3rt {

#ifdef H3RT_HAVE_FFMPEG
inline constexpr bool kFfmpegWasBuilt = true;
#else
inline constexpr bool kFfmpegWasBuilt = false;
#endif

// Where the module was built, its absence is a failure; elsewhere the test is skipped with a
// reason.
#define H3RT_NEEDS_FFMPEG()                                                      \
  do {                                                                           \
    const auto h3rt_api_ = FfmpegApi();                                          \
    if (kFfmpegWasBuilt) {                                                       \
      ASSERT_TRUE(h3rt_api_.ok()) << h3rt_api_.status();                         \
    } else if (!h3rt_api_.ok()) {                                                \
      GTEST_SKIP() << "built without FFmpeg: " << MessageOf(h3rt_api_.status()); \
    }                                                                            \
  } while (false)

// pixel(x, y, c) = ((37 x + 91 y + 53 c) xor (13 x y + 7 c)) mod 256: no smoothness to hide behind.
inline RgbImage FormulaImage(int64_t width, int64_t height) {
  RgbImage image{width, height, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        image.pixels.push_back(
            static_cast<uint8_t>(((x * 37 + y * 91 + c * 53) ^ (x * y * 13 + c * 7)) & 255));
      }
    }
  }
  return image;
}

// An empty folder that goes away with the object.
class TempFolder {
 public:
  TempFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/h3rt_media_test.XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    for (const std::string& name : Names()) ::unlink((path_ + "/" + name).c_str());
    ::rmdir(path_.c_str());
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // Everything in the folder, hidden files too.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    DIR* folder = ::opendir(path_.c_str());
    if (folder == nullptr) return names;
    while (const dirent* entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(folder);
    return names;
  }

 private:
  std::string path_;
};

// Sets an environment variable for the life of the object.
class ScopedEnv {
 public:
  ScopedEnv(std::string name, const std::string& value) : name_(std::move(name)) {
    const char* old = std::getenv(name_.c_str());
    had_ = old != nullptr;
    if (had_) old_ = old;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;
  ~ScopedEnv() {
    if (had_) {
      ::setenv(name_.c_str(), old_.c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

 private:
  std::string name_;
  std::string old_;
  bool had_ = false;
};

// F32 [3, F, H, W]: smooth colour ramps that drift with time, in [0, 1].
inline Tensor SmoothVideo(int64_t frames, int64_t height, int64_t width) {
  Tensor video = Tensor::Create(DType::kF32, Shape{3, frames, height, width}).value();
  float* out = video.as<float>();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t f = 0; f < frames; ++f) {
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          const double u = static_cast<double>(x) / static_cast<double>(width);
          const double v = static_cast<double>(y) / static_cast<double>(height);
          const double phase =
              2.0 * std::numbers::pi *
              (u * static_cast<double>(c == 0) + v * static_cast<double>(c == 1) +
               0.5 * (u + v) * static_cast<double>(c == 2) + static_cast<double>(f) / 48.0);
          *out++ = static_cast<float>(0.5 + 0.35 * std::sin(phase));
        }
      }
    }
  }
  return video;
}

// F32 [2, n] at 32 kHz: a sine of `left_hz` and one of `right_hz`, amplitude 0.5.
inline Tensor Tones(int64_t samples, double left_hz, double right_hz) {
  Tensor sound = Tensor::Create(DType::kF32, Shape{2, samples}).value();
  float* out = sound.as<float>();
  for (const double hz : {left_hz, right_hz}) {
    for (int64_t i = 0; i < samples; ++i) {
      *out++ = static_cast<float>(
          0.5 * std::sin(2.0 * std::numbers::pi * hz * static_cast<double>(i) / 32000.0));
    }
  }
  return sound;
}

}  // namespace h3rt
