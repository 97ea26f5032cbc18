#include "h3rt/io/random_values.h"

#include <cmath>
#include <numbers>

#include "h3rt/base/check.h"

namespace h3rt {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

// FNV-1a: gives every name a stream of its own.
uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

uint64_t SplitMix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Modified Bessel function of the first kind, order 0, by its power series.
double BesselI0(double x) {
  double sum = 1.0;
  double term = 1.0;
  for (int k = 1; k < 64; ++k) {
    term *= (x / 2) / k * ((x / 2) / k);
    sum += term;
  }
  return sum;
}

bool EndsWith(const SourceTensor& tensor, std::string_view suffix) {
  return tensor.target.ends_with(suffix) || tensor.key.ends_with(suffix);
}

// Inputs that one output sums over.
double FanIn(const SourceTensor& tensor) {
  double fan = 1.0;
  for (int i = 1; i < tensor.shape.rank(); ++i) fan *= static_cast<double>(tensor.shape[i]);
  return fan;
}

float MatrixDeviation(const SourceTensor& tensor) {
  double gain = 1.0;
  if (tensor.key.starts_with("proj_out.") || tensor.key.starts_with("audio_proj_out.")) gain = 0.5;
  // Modulation around 0: gates and scales stay well below 1.
  if (tensor.key.find("adaln_proj.") != std::string::npos ||
      tensor.key.starts_with("norm_out.linear.")) {
    gain = 0.3;
  }
  // Pixels live around 0 with a deviation of about 1 in the network's space.
  if (tensor.key == "decoder.proj_out.weight") gain = 0.5;
  return static_cast<float>(gain / std::sqrt(FanIn(tensor)));
}

// The length of a weight-normed row is its gain: residual branches are short, so that 21 of them in
// a row do not blow the signal up, and the last layer keeps samples inside +-1.
float GainMean(const SourceTensor& tensor) {
  if (tensor.key.starts_with("decoder.conv_post.")) return 0.1f;
  if (tensor.key.find(".convs2.") != std::string::npos) return 0.3f;
  if (tensor.key.starts_with("encoder.block.") && tensor.key.ends_with(".block.3.weight_v")) {
    return 0.3f;
  }
  return 1.0f;
}

}  // namespace

ValueRule RuleOf(const SourceTensor& tensor, bool gain) {
  if (gain) return {.mean = GainMean(tensor), .deviation = 0.1f * GainMean(tensor)};
  switch (tensor.role) {
    case Role::kMatrix:
      return {.mean = 0.0f, .deviation = MatrixDeviation(tensor)};
    case Role::kBias:
      // Modulation needs gates that are not 0 where the time embedding is small.
      return {.mean = 0.0f, .deviation = EndsWith(tensor, "adaln_proj.linear.bias") ? 0.1f : 0.02f};
    case Role::kNorm:
    case Role::kAlpha:
    case Role::kGain:
      return {.mean = 1.0f, .deviation = 0.1f};
    case Role::kScale:
      return {.mean = 0.2f, .deviation = 0.05f};
    case Role::kToken:
      return {.mean = 0.0f, .deviation = 0.2f};
    case Role::kTable:
      return {.mean = 0.0f, .deviation = 0.5f};
    case Role::kLogAlpha:
      return {.mean = 0.0f, .deviation = 0.1f};
    case Role::kFilter:
      return {.filter = true};
    case Role::kFrequencies:
    case Role::kZero:
      return {};
  }
  H3RT_CHECK(false);
}

void FillLowPass(std::span<float> taps) {
  constexpr int kTaps = 12;
  H3RT_CHECK(taps.size() == kTaps);
  constexpr double kCutoff = 0.25;
  constexpr double kHalfWidth = 0.3;
  const double attenuation = 2.285 * (kTaps / 2.0 - 1) * std::numbers::pi * (4 * kHalfWidth) + 7.95;
  const double beta = 0.1102 * (attenuation - 8.7);
  double values[kTaps] = {};
  double sum = 0.0;
  for (int k = 0; k < kTaps; ++k) {
    const double position = 2.0 * k / (kTaps - 1) - 1.0;
    const double window = BesselI0(beta * std::sqrt(1.0 - position * position)) / BesselI0(beta);
    const double x = std::numbers::pi * 2 * kCutoff * (k - (kTaps - 1) / 2.0);
    values[k] = 2 * kCutoff * window * std::sin(x) / x;
    sum += values[k];
  }
  for (int k = 0; k < kTaps; ++k)
    taps[static_cast<size_t>(k)] = static_cast<float>(values[k] / sum);
}

void FillRandom(uint64_t seed, std::string_view name, const ValueRule& rule, int64_t begin,
                std::span<float> out) {
  if (rule.filter) {
    H3RT_CHECK(begin == 0);
    FillLowPass(out);
    return;
  }
  if (rule.deviation == 0.0f) {
    for (float& value : out) value = rule.mean;
    return;
  }
  const uint64_t base = seed * kGolden + HashName(name) * 0xD1B54A32D192ED03u;
  // The sum of four uniforms has the deviation sqrt(4/3) after the division by 32768.
  const float factor =
      static_cast<float>(static_cast<double>(rule.deviation) * std::sqrt(3.0) / 2.0 / 32768.0);
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t z =
        SplitMix(base + (static_cast<uint64_t>(begin) + static_cast<uint64_t>(i)) * kGolden);
    const auto sum =
        static_cast<int32_t>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    out[i] = rule.mean + static_cast<float>(sum - 131070) * factor;
  }
}

}  // namespace h3rt
