#include "h3rt/media/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace h3rt {
namespace {

constexpr uint64_t kRiffLimit = 0xFFFFFFFFu;
constexpr uint16_t kTagPcm = 1;
constexpr uint16_t kTagFloat = 3;
constexpr uint16_t kTagExtensible = 0xFFFE;
static_assert(std::endian::native == std::endian::little, "samples are copied as they lie");

template <typename T>
void Put(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

template <typename T>
T Get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

int64_t BytesOf(WavFormat format) { return format == WavFormat::kPcm16 ? 2 : 4; }

std::string Header(const WavSpec& spec, uint64_t data_bytes) {
  const bool pcm = spec.format == WavFormat::kPcm16;
  const auto block = static_cast<uint16_t>(spec.channels * BytesOf(spec.format));
  std::string body = "WAVEfmt ";
  Put<uint32_t>(&body, pcm ? 16 : 18);
  Put<uint16_t>(&body, pcm ? kTagPcm : kTagFloat);
  Put<uint16_t>(&body, static_cast<uint16_t>(spec.channels));
  Put<uint32_t>(&body, static_cast<uint32_t>(spec.sample_rate));
  Put<uint32_t>(&body, static_cast<uint32_t>(spec.sample_rate * block));
  Put<uint16_t>(&body, block);
  Put<uint16_t>(&body, static_cast<uint16_t>(8 * BytesOf(spec.format)));
  if (!pcm) {
    Put<uint16_t>(&body, 0);
    body += "fact";
    Put<uint32_t>(&body, 4);
    Put<uint32_t>(&body, static_cast<uint32_t>(spec.samples));
  }
  if (!spec.note.empty()) {
    body += "h3rt";
    Put<uint32_t>(&body, static_cast<uint32_t>(spec.note.size()));
    body += spec.note;
    if (spec.note.size() % 2 == 1) body += '\0';  // chunks begin at even places
  }
  body += "data";
  Put<uint32_t>(&body, static_cast<uint32_t>(data_bytes));
  std::string out = "RIFF";
  Put<uint32_t>(&out, static_cast<uint32_t>(body.size() + data_bytes + data_bytes % 2));
  return out + body;
}

absl::Status Damaged(std::string_view what, std::string_view where) {
  return DataLoss(
      {.what = "not a readable WAV file", .got = std::string(what), .where = std::string(where)});
}

struct Chunks {
  std::string_view fmt;
  std::string_view note;
  std::string_view data;
};

absl::StatusOr<Chunks> FindChunks(std::string_view bytes, std::string_view where) {
  if (bytes.size() < 12 || bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE") {
    return Damaged("no RIFF/WAVE header", where);
  }
  Chunks chunks;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const std::string_view id = bytes.substr(at, 4);
    const size_t size = Get<uint32_t>(bytes, at + 4);
    at += 8;
    if (size > bytes.size() - at) {
      return Damaged("chunk '" + std::string(id) + "' of " + std::to_string(size) +
                         " bytes is cut short at " + std::to_string(bytes.size() - at),
                     where);
    }
    if (id == "fmt ") chunks.fmt = bytes.substr(at, size);
    if (id == "h3rt") chunks.note = bytes.substr(at, size);
    if (id == "data") chunks.data = bytes.substr(at, size);
    at += size + size % 2;
  }
  if (chunks.fmt.size() < 16) return Damaged("no 'fmt ' chunk", where);
  if (chunks.data.data() == nullptr) return Damaged("no 'data' chunk", where);
  return chunks;
}

}  // namespace

absl::StatusOr<WavWriter> WavWriter::Create(const std::string& path, const WavSpec& spec) {
  if (spec.channels < 1 || spec.channels > 64 || spec.sample_rate < 1 ||
      spec.sample_rate > 1'000'000 || spec.samples < 0) {
    return InvalidArgument({.what = "cannot write a WAV file",
                            .got = std::to_string(spec.channels) + " channels, " +
                                   std::to_string(spec.sample_rate) + " Hz, " +
                                   std::to_string(spec.samples) + " samples",
                            .wanted = "1 to 64 channels, 1 to 1000000 Hz, no negative length",
                            .where = path});
  }
  const auto block = static_cast<uint64_t>(spec.channels * BytesOf(spec.format));
  constexpr uint64_t kHeaderRoom = 128;
  if (spec.note.size() > kRiffLimit / 2 ||
      static_cast<uint64_t>(spec.samples) > (kRiffLimit - kHeaderRoom - spec.note.size()) / block) {
    return Unimplemented(
        {.what = "sound is too long for a WAV file",
         .got = std::to_string(spec.samples) + " samples of " + std::to_string(block) + " bytes",
         .wanted = "under 4 GiB",
         .where = path});
  }
  H3RT_ASSIGN_OR_RETURN(PendingFile file, PendingFile::Create(path));
  H3RT_RETURN_IF_ERROR(file.Write(Header(spec, static_cast<uint64_t>(spec.samples) * block)));
  return WavWriter(std::move(file), spec);
}

absl::Status WavWriter::Append(const ConstTensorView& samples) {
  if (samples.dtype() != DType::kF32 || samples.rank() != 2 || samples.dim(0) != spec_.channels) {
    return InvalidArgument(
        {.what = "sound",
         .got = std::string(NameOf(samples.dtype())) + " " + samples.shape().ToString(),
         .wanted = "F32 [" + std::to_string(spec_.channels) + ", n]"});
  }
  const int64_t n = samples.dim(1);
  if (n > spec_.samples - written_) {
    return InvalidArgument({.what = "too many samples",
                            .got = std::to_string(written_ + n),
                            .wanted = std::to_string(spec_.samples)});
  }
  const bool pcm = spec_.format == WavFormat::kPcm16;
  buffer_.resize(static_cast<size_t>(n * spec_.channels * BytesOf(spec_.format)));
  std::byte* out = buffer_.data();
  const float* data = n == 0 ? nullptr : samples.as<float>();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < spec_.channels; ++c) {
      const float value = data[c * samples.stride(0) + i * samples.stride(1)];
      if (!std::isfinite(value)) {
        return DataLoss(
            {.what = "sound is not finite",
             .got = std::isnan(value) ? "NaN" : "infinity",
             .where = "channel " + std::to_string(c) + ", sample " + std::to_string(written_ + i)});
      }
      if (pcm) {
        const float scaled = std::clamp(value * 32768.0f, -32768.0f, 32767.0f);
        const auto sample = static_cast<int16_t>(std::lrint(scaled));
        std::memcpy(out, &sample, 2);
        out += 2;
      } else {
        std::memcpy(out, &value, 4);
        out += 4;
      }
    }
  }
  written_ += n;
  return file_.Write(buffer_);
}

absl::Status WavWriter::Commit() {
  if (written_ != spec_.samples) {
    return InvalidArgument({.what = "sound is incomplete",
                            .got = std::to_string(written_) + " samples",
                            .wanted = std::to_string(spec_.samples)});
  }
  return file_.Commit();
}

absl::Status WriteWav(const std::string& path, const ConstTensorView& samples, int64_t sample_rate,
                      WavFormat format) {
  if (samples.rank() != 2) {
    return InvalidArgument(
        {.what = "sound", .got = samples.shape().ToString(), .wanted = "[c, n]"});
  }
  WavSpec spec;
  spec.format = format;
  spec.channels = samples.dim(0);
  spec.sample_rate = sample_rate;
  spec.samples = samples.dim(1);
  H3RT_ASSIGN_OR_RETURN(WavWriter writer, WavWriter::Create(path, spec));
  H3RT_RETURN_IF_ERROR(writer.Append(samples));
  return writer.Commit();
}

absl::StatusOr<WavData> ParseWav(std::string_view bytes, std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Chunks chunks, FindChunks(bytes, where));
  auto tag = Get<uint16_t>(chunks.fmt, 0);
  const int64_t channels = Get<uint16_t>(chunks.fmt, 2);
  const auto bits = Get<uint16_t>(chunks.fmt, 14);
  if (tag == kTagExtensible && chunks.fmt.size() >= 40) tag = Get<uint16_t>(chunks.fmt, 24);
  WavData wav;
  wav.sample_rate = Get<uint32_t>(chunks.fmt, 4);
  wav.note = std::string(chunks.note);
  if (tag == kTagPcm && bits == 16) {
    wav.format = WavFormat::kPcm16;
  } else if (tag == kTagFloat && bits == 32) {
    wav.format = WavFormat::kFloat32;
  } else {
    return Unimplemented(
        {.what = "WAV sample format",
         .got = "format " + std::to_string(tag) + ", " + std::to_string(bits) + " bits",
         .wanted = "16-bit PCM or 32-bit float",
         .where = std::string(where)});
  }
  if (channels == 0 || wav.sample_rate == 0) return Damaged("no channels or no rate", where);
  const int64_t width = BytesOf(wav.format);
  const int64_t n = static_cast<int64_t>(chunks.data.size()) / (channels * width);
  H3RT_ASSIGN_OR_RETURN(wav.samples, Tensor::Create(DType::kF32, Shape{channels, n}));
  float* out = wav.samples.as<float>();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<size_t>((i * channels + c) * width);
      out[c * n + i] = wav.format == WavFormat::kFloat32
                           ? Get<float>(chunks.data, at)
                           : static_cast<float>(Get<int16_t>(chunks.data, at)) / 32768.0f;
    }
  }
  return wav;
}

absl::StatusOr<WavData> ReadWav(const std::string& path) {
  H3RT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kRiffLimit + 8));
  return ParseWav(bytes, path);
}

}  // namespace h3rt
