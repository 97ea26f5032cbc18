// Samples as bytes of a blob.
#include "h3rt/lab/stats.h"

namespace h3rt::lab {
namespace {

constexpr size_t kSampleBytes = 16;

void PutBytes(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
}

uint64_t GetBytes(std::string_view text, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(text[at + static_cast<size_t>(i)]))
             << (8 * i);
  }
  return value;
}

}  // namespace

std::string PackSamples(std::span<const Sample> samples) {
  std::string out;
  out.reserve(samples.size() * kSampleBytes);
  for (const Sample& sample : samples) {
    PutBytes(out, sample.process, 2);
    PutBytes(out, sample.quad, 2);
    PutBytes(out, sample.slot, 1);
    PutBytes(out, sample.arm, 1);
    PutBytes(out, sample.role, 1);
    PutBytes(out, sample.flags, 1);
    PutBytes(out, static_cast<uint64_t>(sample.picoseconds), 8);
  }
  return out;
}

std::vector<Sample> UnpackSamples(std::string_view packed, std::string& reason) {
  reason.clear();
  if (packed.empty() || packed.size() % kSampleBytes != 0) {
    reason = std::to_string(packed.size()) + " bytes are no whole number of 16-byte samples";
    return {};
  }
  std::vector<Sample> samples;
  samples.reserve(packed.size() / kSampleBytes);
  for (size_t at = 0; at < packed.size(); at += kSampleBytes) {
    Sample sample;
    sample.process = static_cast<uint16_t>(GetBytes(packed, at, 2));
    sample.quad = static_cast<uint16_t>(GetBytes(packed, at + 2, 2));
    sample.slot = static_cast<uint8_t>(GetBytes(packed, at + 4, 1));
    sample.arm = static_cast<uint8_t>(GetBytes(packed, at + 5, 1));
    sample.role = static_cast<uint8_t>(GetBytes(packed, at + 6, 1));
    sample.flags = static_cast<uint8_t>(GetBytes(packed, at + 7, 1));
    sample.picoseconds = static_cast<int64_t>(GetBytes(packed, at + 8, 8));
    const bool known = sample.slot <= 3 && sample.arm <= 1 && sample.role <= 1 && sample.flags <= 1;
    // Above 2^53 a time is the bits of a float or of a NaN, not some hours of picoseconds.
    if (!known || sample.picoseconds <= 0 || sample.picoseconds > (int64_t{1} << 53)) {
      reason = "sample " + std::to_string(at / kSampleBytes) +
               (known ? " has a time of " + std::to_string(sample.picoseconds) + " ps"
                      : std::string(" has a slot, arm, role or flag that does not exist"));
      return {};
    }
    samples.push_back(sample);
  }
  return samples;
}

}  // namespace h3rt::lab
