// Samples as the bytes of a blob: two little-endian words each.
#include "h3rt/lab/stats.h"

namespace h3rt::lab {
namespace {

constexpr size_t kSampleBytes = 16;

void PutWord(std::string& out, uint64_t word) {
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>((word >> shift) & 0xFF));
  }
}

uint64_t WordOf(std::string_view text) {
  uint64_t word = 0;
  for (size_t i = 0; i < 8; ++i) word |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  return word;
}

}  // namespace

std::string PackSamples(std::span<const Sample> samples) {
  std::string out;
  out.reserve(samples.size() * kSampleBytes);
  for (const Sample& s : samples) {
    PutWord(out, uint64_t{s.process} | uint64_t{s.quad} << 16 | uint64_t{s.slot} << 32 |
                     uint64_t{s.arm} << 40 | uint64_t{s.role} << 48 | uint64_t{s.flags} << 56);
    PutWord(out, static_cast<uint64_t>(s.picoseconds));
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
  for (; !packed.empty(); packed.remove_prefix(kSampleBytes)) {
    const uint64_t place = WordOf(packed);
    const Sample s = {.process = static_cast<uint16_t>(place),
                      .quad = static_cast<uint16_t>(place >> 16),
                      .slot = static_cast<uint8_t>(place >> 32),
                      .arm = static_cast<uint8_t>(place >> 40),
                      .role = static_cast<uint8_t>(place >> 48),
                      .flags = static_cast<uint8_t>(place >> 56),
                      .picoseconds = static_cast<int64_t>(WordOf(packed.substr(8)))};
    const bool known = s.slot <= 3 && s.arm <= 1 && s.role <= 1 && s.flags <= 1;
    // Above 2^53 a time is the bits of a float or of a NaN, not some hours of picoseconds.
    if (!known || s.picoseconds <= 0 || s.picoseconds > (int64_t{1} << 53)) {
      reason = "sample " + std::to_string(samples.size()) +
               (known ? " has a time of " + std::to_string(s.picoseconds) + " ps"
                      : " has a slot, arm, role or flag that does not exist");
      return {};
    }
    samples.push_back(s);
  }
  return samples;
}

}  // namespace h3rt::lab
