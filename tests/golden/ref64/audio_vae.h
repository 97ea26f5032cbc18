// The audio VAE in float64. Source: spec h3 section 7, C8, C9.
#pragma once

#include <cstdint>

#include "h3rt/io/model_config.h"
#include "tests/golden/ref64/array.h"
#include "tests/golden/ref64/weights.h"

namespace h3rt::ref64 {

// Faults that a test plants on purpose, to show that a comparison would see them.
struct AudioVaeFaults {
  bool filter_off_by_one = false;  // the anti-aliasing filters begin one tap late
  bool not_causal = false;         // the encoder's attention sees the future
};

// Raw latents z [channels, latent_channels, a] -> samples [channels, a * hop], clamped to [-1, 1].
// `unclamped`, when not null, receives the samples before the clamp.
Array AudioDecode(const AudioVaeConfig& config, const Weights& weights, const Array& z,
                  const AudioVaeFaults& faults = {}, Array* unclamped = nullptr);

// Samples [channels, n] -> posterior means [channels, latent_channels, ceil(n / hop)].
Array AudioEncode(const AudioVaeConfig& config, const Weights& weights, const Array& samples,
                  const AudioVaeFaults& faults = {});

// The 12 taps of the anti-aliasing filter from their formula: a sinc with cutoff 1/4 under a
// symmetric Kaiser window of half-width 0.3, normalised to sum 1.
Array KaiserSincFilter();

}  // namespace h3rt::ref64
