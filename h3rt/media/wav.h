// WAV files, 16-bit PCM and 32-bit float, without FFmpeg.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/file.h"
#include "h3rt/base/status.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

enum class WavFormat {
  kPcm16,    // round(32768 x), half to even, clamped to -32768..32767
  kFloat32,  // the samples as they are
};

struct WavSpec {
  WavFormat format = WavFormat::kPcm16;
  int64_t channels = 2;
  int64_t sample_rate = 32000;  // Hz
  int64_t samples = 0;          // per channel; Finish refuses another number
  std::string note = {};        // JSON kept in a chunk named "h3rt" in front of the samples
};

// Writes a WAV file piece by piece; it appears under its name only after Commit().
class WavWriter {
 public:
  // kInvalidArgument for bad counts; kUnimplemented when the file would pass the 4 GiB that RIFF's
  // 32-bit sizes allow; the errors of PendingFile::Create.
  static absl::StatusOr<WavWriter> Create(const std::string& path, const WavSpec& spec);

  // F32 [channels, n], any strides. kDataLoss when a sample is NaN or infinite, with its place;
  // kInvalidArgument for another shape or more samples than promised.
  absl::Status Append(const ConstTensorView& samples);
  absl::Status Commit();

 private:
  WavWriter(PendingFile file, WavSpec spec) : file_(std::move(file)), spec_(std::move(spec)) {}

  PendingFile file_;
  WavSpec spec_;
  int64_t written_ = 0;
  std::vector<std::byte> buffer_;
};

// F32 [channels, n] in one go.
absl::Status WriteWav(const std::string& path, const ConstTensorView& samples, int64_t sample_rate,
                      WavFormat format);

struct WavData {
  WavFormat format = WavFormat::kPcm16;
  int64_t sample_rate = 0;
  Tensor samples;    // F32 [channels, n]; 16-bit values are divided by 32768
  std::string note;  // of the chunk "h3rt", empty when there is none
};

// Reads 16-bit PCM or 32-bit float, plain or WAVE_FORMAT_EXTENSIBLE. Errors: kDataLoss for what is
// not a WAV file or is cut short, kUnimplemented for another sample format, and those of ReadFile.
absl::StatusOr<WavData> ReadWav(const std::string& path);
absl::StatusOr<WavData> ParseWav(std::string_view bytes, std::string_view where);

}  // namespace h3rt
